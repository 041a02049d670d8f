"""When what came counts as here for good, so that it may leave. Used by models.crediting and models.payout_queue.

Buried by the scan to the network's maturity depth, and final by the chain's own word where it has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.catalogue import Network

# The chain's own word is waited for up to so many times the maturity depth: a tag that no node moves would hold
# everybody's money.
FINALITY_PATIENCE: Final = 2


def condition(alias: str) -> str:
    """Return SQL that is true of a row with a block_height, beside its network's chain_cursors c; bounds() fills it."""
    return (
        f"({alias}.block_height <= c.height - %(maturity)s + 1"
        f" AND ({alias}.block_height <= COALESCE(c.final_height, {alias}.block_height)"
        f" OR {alias}.block_height <= c.height - %(patience)s + 1))"
    )


def bounds(network: Network) -> dict[str, object]:
    """Return the parameters of condition(), in blocks."""
    return {"maturity": network.maturity, "patience": FINALITY_PATIENCE * network.maturity}
