"""Computes what our addresses should hold, and keeps the latest comparisons with the chain.

For actors.treasury.reconcile. All figures are as of one scanned block: everything up to it counts, even if noted later.
A spend counts at the height where the chain included it, whatever its row's state is by now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Literal
from uuid import UUID

from core.ids import uuid7
from models.db.base import column, execute, is_true, rows, rows_as, transaction, value
from models.deposits import cursors
from models.deposits.cursors import Cursor
from models.ledger import acts
from models.spends.rows import SpendRow
from models.treasury import addresses, moves, topups
from models.treasury.cold_books import COOLED, RETURNED
from models.treasury.rows import Place, Reconciliation, Topup
from models.treasury.topup_doubts import OPEN

# This many wrong comparisons in a row cannot come from a lagging provider.
MISSES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Flow:
    """The net effect of spends and charges on the hot or the cold wallet in one coin, in token units."""

    currency: str
    decimals: int
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The rows about a network's hot wallet on one snapshot, as of a scanned block."""

    cursor: Cursor
    hot: str
    cold: str | None
    # Top-ups, by coin, in the ledger's units; apart from them those that only one provider has shown.
    topup_units: Mapping[str, int]
    doubted_units: Mapping[str, int]
    # Losses that an operator wrote off without a transaction, by coin, in the ledger's units.
    written_off_units: Mapping[str, int]
    # Amounts moved to the cold address, without zero ones; and amounts that came back from there or were carried on to
    # another network.
    cooled: list[Flow]
    returned_units: Mapping[str, int]
    flows: list[Flow]
    # Spends whose block the rows do not know.
    open: list[SpendRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One comparison; amounts are the ledger's units.

    detail: what is wrong and where, '' if nothing is. waiting_ids: of the hot wallet, the spends under way that its
    balance does not show yet.
    """

    currency: str
    place: Place
    height: int
    chain_units: int
    expected_units: int
    detail: str = ""
    address: str = ""
    waiting_ids: list[UUID] = field(default_factory=list)


def read_books(network: str, *, at: Cursor | None = None) -> Books | None:
    """Read all rows about the hot wallet on one snapshot; None before there is a hot wallet and a scan.

    at: a block that the scan has passed; by default the cursor's block.
    """
    with transaction():
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor, hot = at or cursors.read(network), addresses.address(network, "hot")
        if cursor is None or hot is None:
            return None
        return Books(
            cursor=cursor,
            hot=hot,
            cold=addresses.address(network, "cold"),
            topup_units=_topups(network, cursor.height),
            doubted_units=_topups(network, cursor.height, is_doubted=True),
            written_off_units=_written_off(network),
            cooled=_cooled(network, cursor.height),
            returned_units=_returned(network, cursor.height),
            flows=_flows(network, hot, cursor.height),
            open=_open(network, hot, cursor.height),
        )


def compared_networks() -> set[str]:
    """Return the networks whose hot wallet was ever compared with the chain."""
    return set(column("SELECT DISTINCT network FROM reconciliations WHERE place = 'hot'"))


def _is_unchanged(network: str, books: Books, currency: str) -> bool:
    """Return True if the figures that explain the hot wallet's balance of a coin are as they were read.

    Open spends may have got their blocks since: the comparison asked the chain for these.
    """
    height, kept = books.cursor.height, (books.topup_units, books.doubted_units, books.written_off_units)
    now = (_topups(network, height), _topups(network, height, is_doubted=True), _written_off(network))
    if [each.get(currency, 0) for each in now] != [each.get(currency, 0) for each in kept]:
        return False
    flows = _flows(network, books.hot, height, without=[spend.id for spend in books.open])
    return _flows_in(currency, flows) == _flows_in(currency, books.flows)


def _flows_in(currency: str, flows: Iterable[Flow]) -> frozenset[Flow]:
    return frozenset(flow for flow in flows if flow.currency == currency)


def _written_off(network: str) -> dict[str, int]:
    """Return the losses written off without a transaction, by coin, in the ledger's units."""
    sums = rows(
        "SELECT currency, sum(unexplained_units) FROM treasury_writeoffs WHERE network = %s GROUP BY currency",
        (network,),
    )
    return dict(sums)


def _topups(network: str, height: int, *, is_doubted: bool = False) -> dict[str, int]:
    sums = rows(
        "SELECT currency, sum(units) FROM treasury_topups t WHERE network = %s AND status <> 'reversed'"
        f" AND block_height <= %s AND {OPEN} = %s GROUP BY currency",
        (network, height, is_doubted),
    )
    return dict(sums)


def _returned(network: str, height: int) -> Counter[str]:
    back = rows(
        f"SELECT currency, sum({RETURNED}) FROM treasury_topups t WHERE network = %s AND status <> 'reversed'"
        f" AND block_height <= %s AND origin = 'cold' AND NOT {OPEN} GROUP BY currency",
        (network, height),
    )
    return Counter(dict(back)) + Counter(moves.moved_units(network))


def _cooled(network: str, height: int) -> list[Flow]:
    return rows_as(
        Flow,
        f"SELECT m.currency, m.decimals, sum(m.units) AS units FROM {COOLED}"
        " WHERE s.network = %s AND m.height <= %s GROUP BY m.currency, m.decimals",
        (network, height),
    )


# A spend whose block the scan has replaced counts as open.
_MISPLACED = (
    "(s.mined_height IS NULL OR EXISTS (SELECT 1 FROM chain_blocks b WHERE b.network = s.network"
    " AND b.height = s.mined_height AND b.hash <> s.mined_hash))"
)


def _flows(network: str, hot: str, height: int, *, without: Collection[UUID] = ()) -> list[Flow]:
    # All movements, less charges and the movements of the few spends whose block the scan has replaced: the sum itself
    # needs no spends.
    return rows_as(
        Flow,
        "SELECT currency, decimals, sum(units) AS units FROM (SELECT currency, decimals, units FROM spend_movements"
        "   WHERE network = %s AND address = %s AND height <= %s"
        "   UNION ALL SELECT currency, decimals, -units FROM charges"
        "   WHERE network = %s AND address = %s AND block_height <= %s AND status IN ('pending', 'booked')"
        "   UNION ALL SELECT m.currency, m.decimals, -m.units FROM spends s JOIN spend_movements m ON m.spend_id = s.id"
        f"   WHERE s.network = %s AND s.settled_at IS NULL AND {_MISPLACED} AND m.address = %s AND m.height <= %s"
        "   AND s.id <> ALL(%s::uuid[])"
        "   UNION ALL SELECT m.currency, m.decimals, -m.units FROM spend_movements m WHERE m.spend_id = ANY(%s::uuid[])"
        "   AND m.network = %s AND m.address = %s AND m.height <= %s) m"
        " GROUP BY currency, decimals HAVING sum(units) <> 0",
        (*(network, hot, height) * 3, list(without), list(without), network, hot, height),
    )


def _open(network: str, hot: str, height: int) -> list[SpendRow]:
    return SpendRow.read(
        "s.network = %s AND s.settled_at IS NULL"
        f" AND s.state <> 'dead' AND (s.sender = %s OR EXISTS (SELECT FROM spend_outputs o WHERE o.spend_id = s.id"
        "   AND o.recipient = %s) OR EXISTS (SELECT FROM spend_movements m WHERE m.spend_id = s.id AND m.address = %s))"
        f" AND {_MISPLACED}"
        " AND COALESCE(s.mined_height, 0) <= %s ORDER BY s.id",
        (network, hot, hot, hot, height),
    )


def ended_after(network: str, hot: str, height: int, *, limit: int) -> list[SpendRow]:
    """Return the spends that moved anything at the hot wallet by a block above a height."""
    return SpendRow.read(
        "s.network = %(network)s AND s.mined_height > %(height)s AND s.id IN (SELECT m.spend_id FROM spend_movements m"
        "   WHERE m.network = %(network)s AND m.address = %(hot)s AND m.height > %(height)s)"
        " ORDER BY s.id LIMIT %(limit)s",
        {"network": network, "hot": hot, "height": height, "limit": limit},
    )


def on_their_way(network: str, hot: str, *, limit: int) -> list[SpendRow]:
    """Return the spends from or to the hot wallet of which an output has left its sender and not ended."""
    return SpendRow.read(
        "s.network = %s AND s.settled_at IS NULL AND s.effect IS NULL AND s.mined_height IS NOT NULL"
        " AND (s.sender = %s OR EXISTS (SELECT FROM spend_outputs o WHERE o.spend_id = s.id AND o.recipient = %s))"
        " ORDER BY s.id LIMIT %s",
        (network, hot, hot, limit),
    )


def is_scanned(network: str, cursor: Cursor) -> bool:
    """Return True if the scanned chain still has a block; if not, what was read at it proves nothing."""
    return cursors.kept_hash(network, cursor.height) == cursor.hash


def last_height(network: str) -> int:
    """Return the height of the newest comparison of the hot wallet, -1 before the first."""
    return int(
        value("SELECT COALESCE(max(height), -1) FROM reconciliations WHERE network = %s AND place = 'hot'", (network,))
    )


def note(network: str, finding: Finding) -> int:
    """Store a comparison; return the number of wrong ones in a row, at rising heights."""
    is_sound = finding.detail == ""
    new = Reconciliation(network=network, is_sound=is_sound, misses=int(not is_sound), **asdict(finding))
    kept = new.stored(
        "ON CONFLICT (network, currency, place) DO UPDATE SET height = EXCLUDED.height,"
        " chain_units = EXCLUDED.chain_units, expected_units = EXCLUDED.expected_units, is_sound = EXCLUDED.is_sound,"
        # A change from too much to too little begins a new count. Otherwise a sender of coin in every block could use
        # up the tolerated misses, so that the first wrong answer of the other kind would freeze payouts.
        " misses = CASE WHEN EXCLUDED.is_sound THEN 0 WHEN NOT r.is_sound"
        " AND (EXCLUDED.chain_units > EXCLUDED.expected_units) <> (r.chain_units > r.expected_units) THEN 1"
        " ELSE r.misses + (EXCLUDED.height > r.height)::integer END,"
        " address = EXCLUDED.address, detail = EXCLUDED.detail, waiting_ids = EXCLUDED.waiting_ids,"
        " checked_at = app_now()"
    )
    return kept.misses if kept else 0


def is_near_freeze(network: str) -> bool:
    """Return True if one more wrong comparison of a network would freeze its payouts."""
    return is_true(
        "SELECT EXISTS (SELECT 1 FROM reconciliations WHERE network = %s AND place <> 'cold' AND misses >= %s)",
        (network, MISSES_MAX - 1),
    )


def forget_misses(network: str) -> None:
    """Reset the count of a network's wrong comparisons, after an operator has looked and lifted its freeze."""
    execute("UPDATE reconciliations SET misses = 0 WHERE network = %s", (network,))


def short_address(network: str, currency: str) -> str:
    """Return the deposit address that holds too little of a coin by the last comparison, '' if none does."""
    comparison = Reconciliation.first("network = %s AND currency = %s AND place = 'deposits'", (network, currency))
    return comparison.address if comparison else ""


def was_compared(network: str, currency: str) -> bool:
    """Return True if the hot wallet's balance of a coin was ever compared."""
    return is_true(
        "SELECT 1 FROM reconciliations WHERE network = %s AND currency = %s AND place = 'hot'", (network, currency)
    )


def adopt(network: str, currency: str, units: int, books: Books, *, origin: Literal["balance", "adopted"]) -> bool:
    """Record a surplus of the hot wallet over its books as a top-up; it is booked like any top-up, at the same depth.

    False if the scanned chain no longer has the books' block, or if the books have changed since they were read: the
    same money may be in them by now, as another top-up or as a spend. Then it has to be compared again.
    """
    with transaction():
        return _adopt(network, currency, units, books, origin)


def adopt_surplus(network: str, currency: str, units: int, books: Books, *, by: str) -> bool:
    """Record a surplus as adopt() does, by an operator, whose act is recorded."""
    with transaction():
        is_new = _adopt(network, currency, units, books, "adopted")
        if is_new:
            acts.record("surplus.adopted", f"{currency} on {network}", by=by, details=f"{units} units")
    return is_new


def _adopt(network: str, currency: str, units: int, books: Books, origin: Literal["balance", "adopted"]) -> bool:
    cursor = books.cursor
    # Locks the cursor: adoptions, and the scan's top-ups, take turns.
    if not cursors.is_scanned(network, height=cursor.height, block_hash=cursor.hash):
        return False
    if topups.is_adopted_after(network, currency, cursor.height) or not _is_unchanged(network, books, currency):
        return False
    return topups.record(
        Topup(
            id=uuid7(),
            network=network,
            txid="",
            ordinal=topups.balance_ordinal(currency, cursor.height),
            currency=currency,
            units=units,
            sender="",
            address=addresses.address(network, "hot") or "",
            origin=origin,
            block_height=cursor.height,
            block_hash=cursor.hash,
        )
    )


def listing(network: str | None = None) -> list[Reconciliation]:
    """Return the last comparisons, of one network or all."""
    comparisons = Reconciliation.select().where(network is None or Reconciliation.network == network)
    return comparisons.order_by(Reconciliation.network, Reconciliation.currency, Reconciliation.place).all()


def measures() -> list[tuple[str, str, str, float, float, float]]:
    """Return (network, currency, place, whole coins on the chain, misses, age in seconds) for metrics."""
    return rows(
        "SELECT r.network, r.currency, r.place, (r.chain_units / 10::numeric ^ s.scale)::float8,"
        " r.misses::float8, extract(epoch FROM app_now() - r.checked_at)::float8"
        " FROM reconciliations r JOIN ledger_scales s ON s.currency = r.currency ORDER BY 1, 2, 3"
    )
