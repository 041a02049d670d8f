"""Keeps unexplained departures: signed with our keys, found by the scan, and without a row in this database.

After a database lost its last commits, they show what those had paid. An unexplained departure that pays an open order
becomes that order's spend and is followed like any other (models.spends.tracking); the others wait for an operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from psycopg2.extras import Json

from core.catalogue.families import Claim
from core.ids import uuid7
from models.db.base import column, execute, is_true, rows, touched, value
from models.db.table import BY_DATABASE, Big, Numeric, Table, Units
from models.deposits.cursors import window_is_over
from models.spends import held_coins, signing_stops
from models.spends.coins import Outpoint
from models.spends.rows import SpendRow

Status = Literal["unread", "unexplained", "adopted", "written_off", "dismissed"]
SETTLED_PER_STEP: Final = 200

OPEN: Final[tuple[Status, ...]] = ("unread", "unexplained")
IS_OPEN: Final = f"status IN {OPEN}"
"""Of departures that are not settled; some of the unread ones were read in a block that a reorg took."""
WAITS_UNREAD: Final = (
    "d.status = 'unread' AND d.block_height IS NOT NULL AND NOT EXISTS (SELECT FROM spend_attempts a"
    " WHERE (a.network, a.txid) = (d.network, d.txid))"
)
"""Of a departure d in a block, without a row: no node has shown yet what it moved."""
BEGUN_AGAIN: Final = "settled_by = '', reason = '', settled_at = NULL"
"""Sets a departure whose end no longer counts, as a block has it again."""
WAITS: Final = f"(d.status = 'unexplained' OR {WAITS_UNREAD})"
"""Of a departure d that is not settled; not of an unread one that a reorg took."""


class Part(NamedTuple):
    """An output of an unexplained departure: the amount for one recipient, in the token's own units."""

    recipient: str
    units: int
    has_effect: bool = True
    # The payout that an operator named for it.
    payout_id: UUID | None = None
    # '' in families whose transfers carry no memo.
    memo: str = ""
    # Payouts that ask for the same transfer; an operator stated that this output did not pay them.
    not_paid: tuple[UUID, ...] = ()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Part:
        """Return the part that a JSON object describes."""
        named = values["payout_id"]
        return cls(
            values["recipient"], values["units"], values["has_effect"], UUID(named) if named else None,
            values["memo"], tuple(map(UUID, values["not_paid"])),
        )  # fmt: skip

    @property
    def asked(self) -> tuple[str, int, str]:
        """Return the recipient, the units and the memo that were signed."""
        return self.recipient, self.units, self.memo

    def to_json(self) -> dict[str, Any]:
        """Return the part as a JSON object."""
        payout_id = str(self.payout_id) if self.payout_id else None
        return self._asdict() | {"payout_id": payout_id, "not_paid": [str(each) for each in self.not_paid]}


class UnexplainedRow(Table, table="unexplained_departures d"):
    """A departure without a row when the scan met it. Units are the token's own; addresses are in the stored form."""

    id: UUID = BY_DATABASE
    network: str
    txid: str
    # As of its family's traits.
    claim: Claim
    # '' if the chain names none.
    sender: str
    # NULL while a reorg has taken it out of its block, and once it is dismissed.
    block_height: Big | None
    block_hash: str | None
    status: Status = BY_DATABASE
    spend_id: UUID | None = BY_DATABASE
    settled_by: str = BY_DATABASE
    reason: str = BY_DATABASE
    settled_at: datetime | None = BY_DATABASE
    noted_at: datetime = BY_DATABASE
    # All below is empty, 0 or false until a node has shown what it moved.
    key_ordinal: Big | None = BY_DATABASE
    # NULL except where senders number their transactions.
    slot: Big | None = BY_DATABASE
    currency: str = BY_DATABASE
    contract: str | None = BY_DATABASE
    decimals: int = BY_DATABASE
    is_transfer: bool = BY_DATABASE
    raw: bytes = BY_DATABASE  # type: ignore[assignment]  # covers a method of peewee's that no row needs
    is_success: bool = BY_DATABASE
    chain_fee_units: Numeric = BY_DATABASE
    # Who paid that; '' for the sender.
    payer: str = BY_DATABASE
    # The fee that it offered, as in an attempt.
    ceiling_units: Units = BY_DATABASE
    terms: dict[str, int] = BY_DATABASE
    outputs: list[dict[str, Any]] = BY_DATABASE
    # Our coins that it spends, as (txid, vout); empty where money lies at addresses.
    spends: list[list[Any]] = BY_DATABASE
    # The end of its window; NULL where it has none.
    expires_at: datetime | None = BY_DATABASE
    expires_height: Big | None = BY_DATABASE
    expires_block: Big | None = BY_DATABASE
    # As of an attempt.
    mark: str = BY_DATABASE

    @property
    def is_open(self) -> bool:
        """Return True if it is not settled."""
        return self.status in OPEN

    @property
    def holds_up(self) -> bool:
        """Return True if nothing is signed before it is settled: it is in a block, or only it can use its slot."""
        return self.block_height is not None or self.slot is not None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return its outputs, without those to our own addresses."""
        return tuple(Part.from_json(each) for each in self.outputs)

    @property
    def recipient(self) -> str:
        """Return the recipient of its only output; '' if there are several."""
        return self.parts[0].recipient if len(self.outputs) == 1 else ""

    @property
    def token_units(self) -> int:
        """Return the sum of its outputs."""
        return sum(part.units for part in self.parts)

    @property
    def may_pay(self) -> bool:
        """Return True if its outputs may pay orders.

        If some of its coins are ours, all may be: a restored address pool may lack the addresses of the others.
        """
        return self.is_transfer or bool(self.spends)

    @property
    def outpoints(self) -> list[Outpoint]:
        """Return our coins that it spends."""
        return [(txid, vout) for txid, vout in self.spends]


def own(network: str, family: str, addresses: Collection[str]) -> dict[str, int | None]:
    """Return our own among these addresses, with the ordinal of each key; None is the hot wallet's key."""
    if not addresses:
        return {}
    ordinals: dict[str, int | None] = dict(
        rows(
            "SELECT p.address, p.ordinal FROM unnest(%s::text[]) AS seen (address)"
            " JOIN pool_addresses p ON p.family = %s AND p.address = seen.address",
            (list(addresses), family),
        )
    )
    hot = value("SELECT address FROM treasury_addresses WHERE network = %s AND role = 'hot' AND is_current", (network,))
    if hot in addresses:
        ordinals[hot] = None
    return ordinals


def without_row(network: str, txids: Collection[str]) -> set[str]:
    """Return the transactions that no attempt has and that were not read as unexplained in a block either."""
    if not txids:
        return set()
    lacking = column(
        "SELECT seen.txid FROM unnest(%s::text[]) AS seen (txid)"
        " WHERE NOT EXISTS (SELECT 1 FROM spend_attempts a WHERE a.network = %s AND a.txid = seen.txid)"
        " AND NOT EXISTS (SELECT 1 FROM unexplained_departures d WHERE d.network = %s AND d.txid = seen.txid"
        "   AND d.block_height IS NOT NULL AND d.status <> 'unread')",
        (list(txids), network, network),
    )
    return set(lacking)


def note(new: UnexplainedRow) -> bool:
    """Record an unexplained departure as a node has shown it, and stop the signing; False if that was known.

    Call inside the transaction that records its block, or while its block is part of the scanned chain. Payouts that
    operators named for its outputs stay named.
    """
    fields = vars(new) | {"outputs": [part.to_json() for part in _with_orders(new)]}
    values = fields | {name: Json(fields[name]) for name in ("terms", "outputs", "spends") if name in fields}
    noted = touched(
        f"INSERT INTO unexplained_departures AS d (id, {', '.join(values)})"
        f" SELECT %s, {', '.join(['%s'] * len(values))}"
        " WHERE NOT EXISTS (SELECT 1 FROM spend_attempts WHERE network = %s AND txid = %s)"
        f" ON CONFLICT (network, txid) DO UPDATE SET status = 'unexplained', {BEGUN_AGAIN},"
        f" {', '.join(f'{name} = EXCLUDED.{name}' for name in values)}"
        " WHERE d.status = 'unread' OR d.status IN ('unexplained', 'dismissed') AND d.block_height IS NULL",
        (uuid7(), *values.values(), new.network, new.txid),
    )
    if noted:
        signing_stops.stop(new.network, reason="unexplained departures left our addresses", sender="")
    return noted


def _with_orders(new: UnexplainedRow) -> list[Part]:
    """Return the outputs of a departure, with the payouts that were named for them in an earlier block. Locks the row.

    The signed bytes decide the outputs, so they are the same in each block.
    """
    known = UnexplainedRow.first("d.network = %s AND d.txid = %s FOR UPDATE", (new.network, new.txid))
    earlier = known.parts if known is not None else ()
    return [
        part._replace(payout_id=before.payout_id) if before is not None and before.asked == part.asked else part
        for part, before in zip_longest(new.parts, earlier[: len(new.parts)])
    ]


def take_out(network: str) -> int:
    """Take the open departures above the cursor out of their blocks, after a reorg moved it back; return how many.

    One that was read keeps what it moved.
    """
    return execute(
        "UPDATE unexplained_departures d SET block_height = NULL, block_hash = NULL,"
        " status = CASE WHEN d.raw = '' THEN d.status ELSE 'unexplained' END FROM chain_cursors c"
        f" WHERE c.network = %s AND d.network = c.network AND d.{IS_OPEN} AND d.block_height > c.height",
        (network,),
    )


def open_ones(network: str, *, limit: int = SETTLED_PER_STEP) -> list[UnexplainedRow]:
    """Return the read and unsettled departures, in the order of the chain; those in no block come last."""
    return UnexplainedRow.read(
        "d.network = %s AND d.status = 'unexplained' ORDER BY d.block_height, d.slot LIMIT %s", (network, limit)
    )


def listing(network: str, *, limit: int) -> list[UnexplainedRow]:
    """Return all departures that were ever read: those that are unexplained first, then the newest."""
    return UnexplainedRow.read(
        "d.network = %s AND d.raw <> '' ORDER BY d.status = 'unexplained' DESC, d.id DESC LIMIT %s", (network, limit)
    )


def waiting() -> dict[str, int]:
    """Return the number of unexplained departures by network, with those that are not read yet."""
    return dict(rows(f"SELECT d.network, count(*) FROM unexplained_departures d WHERE {WAITS} GROUP BY d.network"))


def find(network: str, txid: str) -> UnexplainedRow | None:
    """Return a departure that was read, by its id."""
    return UnexplainedRow.first("d.network = %s AND d.txid = %s AND d.raw <> ''", (network, txid))


def lock(departure_id: UUID) -> UnexplainedRow | None:
    """Lock an unexplained departure until the caller's commit and return it; None if it is settled or unread."""
    return UnexplainedRow.first("d.id = %s AND d.status = 'unexplained' FOR UPDATE", (departure_id,))


def settle(departure: UnexplainedRow, status: Status, *, spend_id: UUID | None, by: str, reason: str) -> None:
    """Record the outcome of a locked transaction: its spend, who decided, and why."""
    execute(
        "UPDATE unexplained_departures SET status = %s, spend_id = %s, settled_by = %s, reason = %s,"
        " settled_at = app_now() WHERE id = %s AND status = 'unexplained'",
        (status, spend_id, by, reason, departure.id),
    )


def note_not_paid(network: str, txid: str, payout_ids: Collection[UUID]) -> None:
    """Record which payouts a transaction did not pay, as an operator stated; inside the caller's transaction."""
    execute("SELECT 1 FROM unexplained_departures WHERE network = %s AND txid = %s FOR UPDATE", (network, txid))
    departure = find(network, txid)
    if departure is None:
        raise LookupError(f"{txid} vanished while it was locked")
    parts = [part._replace(not_paid=tuple({*part.not_paid, *payout_ids})) for part in departure.parts]
    outputs = Json([part.to_json() for part in parts])
    execute("UPDATE unexplained_departures SET outputs = %s WHERE id = %s", (outputs, departure.id))


def reclaim(departure: UnexplainedRow, *, by: str, reason: str) -> None:
    """Record that an operator found the orders of a transaction that was written off."""
    execute(
        "UPDATE unexplained_departures SET status = 'adopted', settled_by = %s, reason = %s WHERE id = %s"
        " AND status = 'written_off'",
        (by, reason, departure.id),
    )


def name_payout(departure: UnexplainedRow, place: int, payout_id: UUID) -> UnexplainedRow:
    """Record the payout that an operator named for an output of a locked transaction; return the changed row."""
    parts = list(departure.parts)
    parts[place] = parts[place]._replace(payout_id=payout_id)
    outputs = Json([part.to_json() for part in parts])
    execute(
        "UPDATE unexplained_departures SET outputs = %s WHERE id = %s AND status = 'unexplained'",
        (outputs, departure.id),
    )
    updated = UnexplainedRow.first("d.id = %s", (departure.id,))
    if updated is None:
        raise LookupError(f"{departure.txid} vanished while it was locked")
    return updated


def named_payouts(network: str, *, but: UUID) -> set[UUID]:
    """Return the payouts that operators named for outputs of unsettled transactions other than `but`."""
    payout_ids = column(
        "SELECT o ->> 'payout_id' FROM unexplained_departures d, jsonb_array_elements(d.outputs) o"
        f" WHERE d.network = %s AND d.{IS_OPEN} AND d.id <> %s AND o ->> 'payout_id' IS NOT NULL",
        (network, but),
    )
    return {UUID(payout_id) for payout_id in payout_ids}


def user_of_slot(spend: SpendRow) -> UnexplainedRow | None:
    """Return the unexplained departure that used a spend's slot in a block; None if there is none."""
    return UnexplainedRow.first(
        "d.network = %s AND d.sender = %s AND d.slot = %s AND d.block_height IS NOT NULL LIMIT 1",
        (spend.network, spend.sender, spend.slot),
    )


def may_be(departure: UnexplainedRow, spend: SpendRow) -> bool:
    """Return True if a transaction moves the same as a spend: the same amount and memo to each recipient."""
    asked = sorted((output.recipient, output.token_units, output.memo) for output in spend.outputs)
    moved = sorted(part.asked for part in departure.parts)
    return (asked, spend.contract) == (moved, departure.contract)


def holders(departure: UnexplainedRow) -> list[UUID]:
    """Return our spends that share a transaction's claim and are not dead."""
    if departure.slot is None:
        return held_coins.holders(departure.network, departure.outpoints)
    return column(
        "SELECT id FROM spends WHERE network = %s AND sender = %s AND slot = %s AND state <> 'dead'"
        " AND NOT is_slot_free",
        (departure.network, departure.sender, departure.slot),
    )


def hindered(departure: UnexplainedRow, *, depth: int) -> list[UUID]:
    """Return our spends that have to be dead before a transaction may have its claim.

    A spend that claims one of the coins only with a later attempt can do without it, and does not count once a block at
    this depth spends the coin.
    """
    if departure.slot is None:
        return held_coins.needing(departure.network, departure.outpoints, depth=depth)
    return holders(departure)


def is_void(departure: UnexplainedRow) -> bool:
    """Return True if, by our own scan, no block can ever include this departure, which is in none now."""
    if departure.spends:
        return held_coins.are_spent_otherwise(departure.network, departure.outpoints, departure.txid)
    if departure.slot is not None and _is_slot_used_otherwise(departure):
        return True
    return is_true(
        "SELECT 1 FROM chain_cursors c JOIN unexplained_departures d ON d.network = c.network"
        f" WHERE d.id = %s AND {window_is_over('d')}",
        (departure.id,),
    )


def _is_slot_used_otherwise(departure: UnexplainedRow) -> bool:
    return is_true(
        "SELECT 1 FROM spends WHERE network = %s AND sender = %s AND slot = %s AND mined_txid <> %s"
        " UNION ALL SELECT 1 FROM unexplained_departures WHERE network = %s AND sender = %s AND slot = %s"
        "   AND txid <> %s AND block_height IS NOT NULL LIMIT 1",
        (departure.network, departure.sender, departure.slot, departure.txid) * 2,
    )
