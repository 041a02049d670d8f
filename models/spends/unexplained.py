"""Keeps unexplained departures: signed with our keys, found by the scan, and without a row in this database.

After a database lost its last commits, they show what those had paid. An unexplained departure that pays an open order
becomes that order's spend and is followed like any other (models.spends.tracking); the others wait for an operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from psycopg2.extras import Json

from core.ids import uuid7
from models.db.base import column, execute, is_true, rows, touched, value
from models.db.table import BY_DATABASE, Big, Table, Units
from models.spends import held_coins, signing_stops
from models.spends.coins import Outpoint
from models.spends.rows import SpendRow

Status = Literal["open", "matched", "order", "written_off", "gone"]
SETTLED_PER_STEP: Final = 200


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
            values.get("memo", ""), tuple(map(UUID, values.get("not_paid", ()))),
        )  # fmt: skip

    def tells(self) -> dict[str, Any]:
        """Return the part as a JSON object."""
        payout_id = str(self.payout_id) if self.payout_id else None
        return self._asdict() | {"payout_id": payout_id, "not_paid": [str(each) for each in self.not_paid]}


class UnexplainedRow(Table, table="unknown_spends"):
    """An unexplained departure. Units are the token's own; addresses are in the stored form."""

    id: UUID = BY_DATABASE
    network: str
    txid: str
    sender: str
    key_ordinal: Big | None
    # NULL in families without slots.
    slot: Big | None
    # Of a single output. '' if there are several; then the units are the sum of all.
    recipient: str
    currency: str
    contract: str | None
    decimals: int
    token_units: Units
    is_transfer: bool
    raw: bytes  # type: ignore[assignment]  # covers a method of peewee's that no row needs
    # The fee that it offered, as in an attempt.
    ceiling_units: Units
    terms: dict[str, int]
    is_success: bool
    chain_fee_units: Units
    # NULL while a reorg has taken it out of its block.
    block_height: Big | None
    block_hash: str | None
    status: Status = BY_DATABASE
    spend_id: UUID | None = BY_DATABASE
    settled_by: str = BY_DATABASE
    reason: str = BY_DATABASE
    outputs: list[dict[str, Any]] = BY_DATABASE
    # Our coins that it spends, as (txid, vout), if the family spends coins.
    spends: list[list[Any]] = BY_DATABASE
    # The end of its window, if the family's claim is a window.
    expires_at: datetime | None = BY_DATABASE
    expires_height: Big | None = BY_DATABASE
    # As of an attempt.
    mark: str = BY_DATABASE
    settled_at: datetime | None = BY_DATABASE
    noted_at: datetime = BY_DATABASE

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return its outputs, without those to our own addresses."""
        if not self.outputs:
            return (Part(self.recipient, self.token_units, has_effect=self.is_success),)
        return tuple(Part.from_json(each) for each in self.outputs)

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
    """Return the transactions that no attempt has and that are not noted as unexplained in a block either."""
    if not txids:
        return set()
    lacking = column(
        "SELECT seen.txid FROM unnest(%s::text[]) AS seen (txid)"
        " WHERE NOT EXISTS (SELECT 1 FROM spend_attempts a WHERE a.network = %s AND a.txid = seen.txid)"
        " AND NOT EXISTS (SELECT 1 FROM unknown_spends u WHERE u.network = %s AND u.txid = seen.txid"
        "   AND u.block_height IS NOT NULL)",
        (list(txids), network, network),
    )
    return set(lacking)


def note(new: UnexplainedRow) -> bool:
    """Record an unexplained departure and stop the signing; False if it was known.

    Call inside the transaction that records its block.
    """
    fields = vars(new)
    values = fields | {name: Json(fields[name]) for name in ("terms", "outputs", "spends") if name in fields}
    noted = touched(
        f"INSERT INTO unknown_spends AS u (id, {', '.join(values)}) SELECT %s, {', '.join(['%s'] * len(values))}"
        " WHERE NOT EXISTS (SELECT 1 FROM spend_attempts WHERE network = %s AND txid = %s)"
        " ON CONFLICT (network, txid) DO UPDATE SET block_height = EXCLUDED.block_height,"
        " block_hash = EXCLUDED.block_hash, is_success = EXCLUDED.is_success,"
        " chain_fee_units = EXCLUDED.chain_fee_units, outputs = EXCLUDED.outputs, status = 'open'"
        " WHERE u.status IN ('open', 'gone') AND u.block_height IS NULL",
        (uuid7(), *values.values(), new.network, new.txid),
    )
    if noted:
        signing_stops.stop(new.network, reason="unexplained departures left our addresses", sender="")
    return noted


def take_out(network: str) -> int:
    """Take the open transactions above the cursor out of their blocks, after a reorg moved it back; return how many."""
    return execute(
        "UPDATE unknown_spends u SET block_height = NULL, block_hash = NULL FROM chain_cursors c"
        " WHERE c.network = %s AND u.network = c.network AND u.status = 'open' AND u.block_height > c.height",
        (network,),
    )


def open_ones(network: str, *, limit: int = SETTLED_PER_STEP) -> list[UnexplainedRow]:
    """Return the transactions that are not settled, in the order of the chain; those in no block come last."""
    return UnexplainedRow.read(
        "network = %s AND status = 'open' ORDER BY block_height, slot LIMIT %s", (network, limit)
    )


def listing(network: str, *, limit: int) -> list[UnexplainedRow]:
    """Return all unexplained departures ever noted, newest first."""
    return UnexplainedRow.read("network = %s ORDER BY id DESC LIMIT %s", (network, limit))


def waiting() -> dict[str, int]:
    """Return the number of unexplained departures by network, with those that are not read yet."""
    return dict(
        rows(
            "SELECT network, count(*) FROM (SELECT network FROM unknown_spends WHERE status = 'open'"
            " UNION ALL SELECT network FROM stranger_spends t WHERE block_height IS NOT NULL"
            "   AND NOT EXISTS (SELECT FROM spend_attempts a WHERE (a.network, a.txid) = (t.network, t.txid))"
            "   AND NOT EXISTS (SELECT FROM unknown_spends u WHERE (u.network, u.txid) = (t.network, t.txid)))"
            " waiting GROUP BY network"
        )
    )


def find(network: str, txid: str) -> UnexplainedRow | None:
    """Return an unexplained departure by its id."""
    return UnexplainedRow.first("network = %s AND txid = %s", (network, txid))


def lock(departure_id: UUID) -> UnexplainedRow | None:
    """Lock an unexplained departure until the caller's commit and return it; None if it is settled."""
    if not is_true("SELECT 1 FROM unknown_spends WHERE id = %s AND status = 'open' FOR UPDATE", (departure_id,)):
        return None
    return UnexplainedRow.first("id = %s", (departure_id,))


def settle(departure: UnexplainedRow, status: Status, *, spend_id: UUID | None, by: str, reason: str) -> None:
    """Record the outcome of a locked transaction: its spend, who decided, and why."""
    execute(
        "UPDATE unknown_spends SET status = %s, spend_id = %s, settled_by = %s, reason = %s, settled_at = app_now()"
        " WHERE id = %s AND status = 'open'",
        (status, spend_id, by, reason, departure.id),
    )


def note_not_paid(network: str, txid: str, payout_ids: Collection[UUID]) -> None:
    """Record which payouts a transaction did not pay, as an operator stated; inside the caller's transaction."""
    execute("SELECT 1 FROM unknown_spends WHERE network = %s AND txid = %s FOR UPDATE", (network, txid))
    departure = find(network, txid)
    if departure is None:
        raise LookupError(f"{txid} vanished while it was locked")
    parts = [part._replace(not_paid=tuple({*part.not_paid, *payout_ids})) for part in departure.parts]
    outputs = Json([part.tells() for part in parts])
    execute("UPDATE unknown_spends SET outputs = %s WHERE id = %s", (outputs, departure.id))


def reclaim(departure: UnexplainedRow, *, by: str, reason: str) -> None:
    """Record that an operator found the orders of a transaction that was written off."""
    execute(
        "UPDATE unknown_spends SET status = 'order', settled_by = %s, reason = %s WHERE id = %s"
        " AND status = 'written_off'",
        (by, reason, departure.id),
    )


def name_payout(departure: UnexplainedRow, place: int, payout_id: UUID) -> UnexplainedRow:
    """Record the payout that an operator named for an output of a locked transaction; return the changed row."""
    parts = list(departure.parts)
    parts[place] = parts[place]._replace(payout_id=payout_id)
    outputs = Json([part.tells() for part in parts])
    execute("UPDATE unknown_spends SET outputs = %s WHERE id = %s AND status = 'open'", (outputs, departure.id))
    updated = UnexplainedRow.first("id = %s", (departure.id,))
    if updated is None:
        raise LookupError(f"{departure.txid} vanished while it was locked")
    return updated


def named_payouts(network: str, *, but: UUID) -> set[UUID]:
    """Return the payouts that operators named for outputs of unsettled transactions other than `but`."""
    payout_ids = column(
        "SELECT o ->> 'payout_id' FROM unknown_spends u, jsonb_array_elements(u.outputs) o"
        " WHERE u.network = %s AND u.status = 'open' AND u.id <> %s AND o ->> 'payout_id' IS NOT NULL",
        (network, but),
    )
    return {UUID(payout_id) for payout_id in payout_ids}


def user_of_slot(spend: SpendRow) -> UnexplainedRow | None:
    """Return the unexplained departure that used a spend's slot in a block; None if there is none."""
    return UnexplainedRow.first(
        "network = %s AND sender = %s AND slot = %s AND block_height IS NOT NULL LIMIT 1",
        (spend.network, spend.sender, spend.slot),
    )


def may_be(departure: UnexplainedRow, spend: SpendRow) -> bool:
    """Return True if a transaction moves the same as a spend: the same amount and memo to each recipient."""
    asked = sorted((output.recipient, output.token_units, output.memo) for output in spend.outputs)
    moved = sorted((part.recipient, part.units, part.memo) for part in departure.parts)
    return (asked, spend.contract) == (moved, departure.contract)


def holders(departure: UnexplainedRow) -> list[UUID]:
    """Return our spends that share a transaction's claim and are not dead."""
    if departure.slot is None:
        return held_coins.holders(departure.network, departure.outpoints)
    return column(
        "SELECT id FROM spends WHERE network = %s AND sender = %s AND slot = %s AND state <> 'dead'",
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
    """Return True if, by our own scan, no block can ever include this transaction, which is in none now."""
    if departure.spends and held_coins.are_spent_otherwise(departure.network, departure.outpoints, departure.txid):
        return True
    if departure.slot is not None:
        return _is_slot_used_otherwise(departure)
    return is_true(
        "SELECT 1 FROM chain_cursors c JOIN unknown_spends u ON u.network = c.network"
        " WHERE u.id = %s AND (c.height > u.expires_height OR c.block_time > u.expires_at)",
        (departure.id,),
    )


def _is_slot_used_otherwise(departure: UnexplainedRow) -> bool:
    return is_true(
        "SELECT 1 FROM spends WHERE network = %s AND sender = %s AND slot = %s AND mined_txid <> %s"
        " UNION ALL SELECT 1 FROM unknown_spends WHERE network = %s AND sender = %s AND slot = %s AND txid <> %s"
        "   AND block_height IS NOT NULL LIMIT 1",
        (departure.network, departure.sender, departure.slot, departure.txid) * 2,
    )
