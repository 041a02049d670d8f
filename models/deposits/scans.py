"""Reads the state of networks' scans: begun or not, lag, halted or not. For gauges, checks and the API.

One rule for all networks: a dead node reports no new head while its chain goes on, so idle time counts as lag too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from core.catalogue.catalogue import Network
from models.db.base import rows
from models.db.query import descending
from models.deposits.rows import HEIGHT_MAX, Deposit

# A scan is asked for a few times a block and takes its time: a pause so long is no lag.
IDLE_GRACE_S: Final = 10.0
# Who is further behind than its chain makes blocks in so long finds payments too late to be offered.
LAG_MAX_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A scan that has begun."""

    # Between it and its chain's head; see blocks_behind().
    lag_blocks: float
    idle_s: float
    is_halted: bool
    block_time_ms: int
    # Those that the second reading has given up.
    unread_blocks: int = 0

    @property
    def is_current(self) -> bool:
        """Return True if the scan finds payments made now in time."""
        return not self.is_halted and self.lag_blocks * self.block_time_ms <= LAG_MAX_S * 1000


def read(networks: Mapping[str, Network]) -> dict[str, Scan]:
    """Return the scans of these networks, without those that have not begun."""
    return {
        code: Scan(
            lag_blocks=blocks_behind(lag_blocks, idle_s=idle_s, block_time_ms=networks[code].block_time_ms),
            idle_s=idle_s,
            is_halted=is_halted,
            block_time_ms=networks[code].block_time_ms,
            unread_blocks=unread_blocks,
        )
        for code, lag_blocks, idle_s, is_halted, unread_blocks in rows(
            "SELECT network, head_height - height, extract(epoch FROM app_now() - moved_at)::float8,"
            " halted_reason <> '', unread_blocks FROM chain_cursors"
        )
        if code in networks
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A scan as an operator sees it."""

    network: str
    height: int
    hash: str
    head_height: int
    halted_reason: str
    halted_at: datetime | None
    # The lowest block that is kept for walking back, None of none.
    kept_from: int | None
    kept_blocks: int


def states() -> list[State]:
    """Return all scans that have begun, by network."""
    return [
        State(
            network=network,
            height=height,
            hash=block_hash,
            head_height=head_height,
            halted_reason=halted_reason,
            halted_at=halted_at,
            kept_from=kept_from,
            kept_blocks=kept_blocks,
        )
        for network, height, block_hash, head_height, halted_reason, halted_at, kept_from, kept_blocks in rows(
            "SELECT network, height, hash, head_height, halted_reason, halted_at,"
            " (SELECT min(b.height) FROM chain_blocks b WHERE b.network = c.network),"
            " (SELECT count(*) FROM chain_blocks b WHERE b.network = c.network)"
            " FROM chain_cursors c ORDER BY network"
        )
    ]


def state(network: str) -> State | None:
    """Return a network's scan, None before its first."""
    return next((each for each in states() if each.network == network), None)


def deposits_above(network: str, height: int, *, status: str | None = None) -> int:
    """Return how many deposits count in blocks above a height, of one status or of all."""
    # Of two bounds a planner expects few rows.
    above = (Deposit.block_height > height) & (Deposit.block_height < HEIGHT_MAX)
    deposits = Deposit.select(Deposit.id).where(Deposit.network == network, above, Deposit.status != "reversed")
    return deposits.where(status is None or Deposit.status == status).count()


def newest_deposit_block(network: str, *, low: int, high: int) -> tuple[int, str] | None:
    """Return (height, hash) of the highest block up to `high`, above `low`, whose deposits count; None without any."""
    between = (Deposit.block_height > low) & (Deposit.block_height <= high)
    blocks = Deposit.select(Deposit.block_height, Deposit.block_hash).where(Deposit.network == network, between)
    return blocks.where(Deposit.status != "reversed").order_by(descending(Deposit.block_height)).first()


def blocks_behind(lag_blocks: int, *, idle_s: float, block_time_ms: int) -> float:
    """Return a scan's lag in blocks: by the last reported head or by the time since it moved, whichever is more."""
    return max(lag_blocks, (idle_s - IDLE_GRACE_S) * 1000 // block_time_ms)
