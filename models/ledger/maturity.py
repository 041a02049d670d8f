"""Decides when money that came counts as here for good, so that it may leave.

Used by models.deposits.crediting, models.payouts.queue and models.treasury.topups.
It is at the network's maturity depth in the scan, and final if the chain reports finality.
"""

from __future__ import annotations

from typing import Final

from core.catalogue.catalogue import Network

# Limits the wait for the chain's finality: this multiple of the maturity depth, in blocks, and also in their time since
# the final height last moved. A final height that no node moves would hold all money. If it still moves, the wait goes
# on, even if a provider invents blocks meanwhile.
FINALITY_PATIENCE: Final = 2
MS_PER_S: Final = 1_000


def condition(alias: str) -> str:
    """Return an SQL condition on a row's block_height, joined with its network's chain_cursors c; bounds() fills it."""
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
