"""Tells when what came counts as here for good, so that it may leave.

Used by models.deposits.crediting, models.payouts.queue and models.treasury.topups.
Buried by the scan to the network's maturity depth, and final by the chain's own word where it has one.
"""

from __future__ import annotations

from typing import Final

from core.catalogue.catalogue import Network

# The chain's own word is waited for up to so many times the maturity depth, in blocks, and in the time that they take
# since it last moved. A tag that no node moves would hold everybody's money; one that moves is waited for, however many
# blocks a provider makes up meanwhile.
FINALITY_PATIENCE: Final = 2
MS_PER_S: Final = 1_000


def condition(alias: str) -> str:
    """Return SQL that is true of a row with a block_height, beside its network's chain_cursors c; bounds() fills it."""
    return (
        f"({alias}.block_height <= c.height - %(maturity)s + 1"
        f" AND ({alias}.block_height <= COALESCE(c.final_height, {alias}.block_height)"
        f" OR ({alias}.block_height <= c.height - %(patience)s + 1"
        f" AND c.final_moved_at <= app_now() - make_interval(secs => %(patience_s)s))))"
    )


def bounds(network: Network) -> dict[str, object]:
    """Return the parameters of condition(), in blocks and in seconds."""
    patience = FINALITY_PATIENCE * network.maturity
    return {
        "maturity": network.maturity,
        "patience": patience,
        "patience_s": patience * network.block_time_ms // MS_PER_S,
    }
