"""Keeps spends: rows and reads of what the signer sends, and a sender's numbering of slots. For actors.signer.spend.

Nothing here decides: models.spends.tracking moves a spend on, with what hangs on it. Every write is guarded by the
state that it starts from, so that two who do the same at once do it once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args
from uuid import UUID

from models.db.base import execute, is_true, rows, touched, value
from models.db.clock import FUTURE_MAX_S
from models.db.table import BY_DATABASE, Big, Numeric, Table, Units, derived
from models.spends import held_coins
from models.spends import outputs as spend_outputs
from models.spends.coins import Outpoint
from models.spends.outputs import TOLD, Effect, Ending, Moved, OutputRow, told_outputs

Purpose = Literal["payout", "gas", "sweep", "cold", "filler", "join", "lost"]
State = Literal["signed", "sent", "mined", "confirmed", "failed", "dead"]

# So many settled spends are followed again in one step.
SETTLED_MAX: Final = 50
CHECK_LATER_MAX_S: Final = 3_600
PURPOSES: Final[frozenset[str]] = frozenset(get_args(Purpose))


class SpendRow(Table, table="spends s"):
    """A spend, with its outputs where it is read. Units are the token's own; addresses are in the stored form."""

    id: UUID
    network: str
    purpose: Purpose
    sender: str
    # Whose key signs: the deposit address of that ordinal, None for the hot wallet.
    key_ordinal: Big | None = None
    currency: str
    contract: str | None
    decimals: int
    # Of all outputs together.
    token_units: Units
    # NULL where the family counts nothing.
    slot: Big | None
    state: State = "signed"
    attempts: int = BY_DATABASE
    mined_txid: str | None = BY_DATABASE
    mined_height: Big | None = BY_DATABASE
    mined_hash: str | None = BY_DATABASE
    # Of all outputs together, as all below; whether their effect is "exact".
    is_success: bool | None = BY_DATABASE
    effect: Effect | None = BY_DATABASE
    # Of another effect alone: what left the sender and came to the recipients, in the token's own units.
    left_units: Units | None = BY_DATABASE
    arrived_units: Units | None = BY_DATABASE
    # What the gateway bears of that, in the ledger's units; negative where it gained.
    lost_units: Numeric = BY_DATABASE
    chain_fee_units: Units | None = BY_DATABASE
    booked_fee_units: Units = BY_DATABASE
    problem: str = BY_DATABASE
    # Of a payout without effect: whether the token refuses whatever leaves its sender; None until that was tried.
    is_own_refusal: bool | None = BY_DATABASE
    check_at: datetime = BY_DATABASE
    signed_height: Big | None = BY_DATABASE
    created_at: datetime = BY_DATABASE
    sent_at: datetime | None = BY_DATABASE
    bumped_at: datetime | None = BY_DATABASE
    mined_at: datetime | None = BY_DATABASE
    ended_at: datetime | None = BY_DATABASE
    settled_at: datetime | None = BY_DATABASE
    # How often its block left the chain after it was settled.
    reopened: int = BY_DATABASE
    # What merchants were charged for failed payouts that took effect after all, in the ledger's units.
    charged_units: Units = BY_DATABASE
    # What the version before reads of the one output; the database fills them.
    payout_id: UUID | None = BY_DATABASE
    recipient: str | None = BY_DATABASE
    memo: str = BY_DATABASE
    # The newest attempt's.
    txid: str = derived(
        "COALESCE((SELECT a.txid FROM spend_attempts a WHERE a.spend_id = s.id ORDER BY a.number DESC LIMIT 1), '')"
    )
    # What it brings to whom, in their order.
    outputs: tuple[OutputRow, ...] = derived(TOLD, made=told_outputs)

    @property
    def counter(self) -> int:
        """Return its number among all that its sender sends. LookupError where its family counts nothing."""
        if self.slot is None:
            raise LookupError(f"spend {self.id} has no number among those of its sender")
        return self.slot

    @property
    def is_waiting(self) -> bool:
        """Return whether it is in no block, as far as is known: before its first, or since a reorg."""
        return self.settled_at is None and self.mined_txid is None


class AttemptRow(Table, table="spend_attempts"):
    """Signed bytes with what they offer."""

    spend_id: UUID
    number: int = 0
    network: str
    txid: str
    raw: bytes  # type: ignore[assignment]  # covers a method of peewee's that no row needs
    # The most that it can cost, in base units of the gas coin; and the family's own figures, by name.
    ceiling_units: Units
    terms: dict[str, int]
    # By which the scan knows its transfers; '' where that is the txid.
    mark: str = ""
    # Past its end it can be included no more; None for never.
    expires_at: datetime | None = None
    expires_height: Big | None = None
    # Whether what was scanned lies past its end. Its fate is asked for all the same.
    is_over: bool = derived(
        "EXISTS (SELECT FROM chain_cursors c WHERE c.network = spend_attempts.network"
        " AND (c.height > spend_attempts.expires_height OR c.block_time > spend_attempts.expires_at))"
    )
    # What the version before reads of the terms; the database fills them.
    price_units: Units = BY_DATABASE
    tip_units: Units = BY_DATABASE
    gas_limit: Big = BY_DATABASE
    data_units: Units = BY_DATABASE
    created_at: datetime = BY_DATABASE
    sent_at: datetime | None = BY_DATABASE
    last_error: str = BY_DATABASE
    # Moves nothing, so that the slot of a failed spend is used up.
    is_void: bool = False
    # Since it was last given to the nodes, None for never.
    seconds_silent: int | None = derived("extract(epoch FROM app_now() - sent_at)::bigint")


class SpendAccount(Table, table="spend_accounts a"):
    """A sender's next slot."""

    network: str
    sender: str
    next_slot: Big


class Movement(NamedTuple):
    """What a chain says that a spend did to an address, which may be anybody's: signed token units of a coin."""

    address: str
    currency: str
    units: int


class Inclusion(NamedTuple):
    """Where a receipt says that a spend stands, and what it moved; the fee is in base units of the gas coin."""

    txid: str
    height: int
    block_hash: str
    # In the order of the spend's outputs.
    outputs: tuple[Moved, ...]
    fee_units: int
    movements: tuple[Movement, ...]


# Writing ----------------------------------------------------------------------------------------------------


def take_slot(network: str, sender: str, *, at_least: int) -> int:
    """Return the sender's next slot and keep it; others wait until the caller's transaction ends.

    A transaction that rolls back gives the slot back, so that none is left without signed bytes. at_least: what the
    chain has not used yet; it only ever moves the number up.
    """
    slot: int = value(
        "INSERT INTO spend_accounts AS a (network, sender, next_slot) VALUES (%s, %s, %s + 1)"
        " ON CONFLICT (network, sender) DO UPDATE SET next_slot = GREATEST(a.next_slot + 1, EXCLUDED.next_slot)"
        " RETURNING next_slot - 1",
        (network, sender, at_least),
    )
    return slot


def lock_account(network: str, sender: str) -> None:
    """Let others who sign for a sender wait until the caller's transaction ends, as take_slot does."""
    execute("SELECT 1 FROM spend_accounts WHERE network = %s AND sender = %s FOR UPDATE", (network, sender))


def raise_slot(network: str, sender: str, next_slot: int) -> None:
    """Let a sender's next slot be at least this one, in the caller's transaction."""
    SpendAccount(network=network, sender=sender, next_slot=next_slot).write(
        "ON CONFLICT (network, sender) DO UPDATE SET next_slot = GREATEST(a.next_slot, EXCLUDED.next_slot)"
    )


def insert(
    new: SpendRow, outputs: Sequence[OutputRow], attempt: AttemptRow, *, claimed: Collection[Outpoint] = ()
) -> bool:
    """Write a spend with its first attempt. A unique violation if the slot or a payout has one already.

    claimed: the coins that it holds from now on. False where one of them is not free; the caller has to roll back.
    """
    values = vars(new)
    execute(
        f"INSERT INTO spends ({', '.join(values)}, signed_height) VALUES ({', '.join(['%s'] * len(values))},"
        " (SELECT height FROM chain_cursors WHERE network = %s))",
        (*values.values(), new.network),
    )
    OutputRow.write_all(outputs)
    # Before the attempt: whoever drafted the same for the same coins has signed the same bytes.
    if claimed and not held_coins.hold(new.id, claimed):
        return False
    if not add_attempt(attempt):
        raise LookupError(f"spend {new.id} vanished while it was written")
    return True


def add_attempt(attempt: AttemptRow) -> bool:
    """Write the next attempt of a spend that is in no block; False if somebody has written one of its number."""
    if not touched(
        "UPDATE spends SET attempts = attempts + 1, bumped_at = CASE WHEN attempts > 0 THEN app_now() END"
        " WHERE id = %s AND attempts = %s AND settled_at IS NULL AND mined_txid IS NULL",
        (attempt.spend_id, attempt.number),
    ):
        return False
    return attempt.write() > 0


def note_tried(spend_id: UUID, number: int, *, error: str) -> None:
    """Note that an attempt's bytes were given to the nodes now, and what was wrong with that."""
    execute(
        "UPDATE spend_attempts SET sent_at = app_now(), last_error = %s WHERE spend_id = %s AND number = %s",
        (error[:500], spend_id, number),
    )


def is_refused_since(spend_id: UUID, number: int, *, error: str) -> bool:
    """Return whether an attempt was refused like this when it was last given, and the scan was at the head since."""
    return is_true(
        "SELECT 1 FROM spend_attempts a JOIN chain_cursors c ON c.network = a.network"
        " WHERE a.spend_id = %s AND a.number = %s AND a.last_error = %s AND c.head_reached_at > a.sent_at",
        (spend_id, number, error),
    )


def are_all_over(spend_id: UUID) -> bool:
    """Return whether what was scanned lies past the window of every attempt of a spend."""
    return all(attempt.is_over for attempt in attempts_of(spend_id))


def mark_sent(spend_id: UUID) -> bool:
    """Note that a node took it; False if that was known."""
    return touched(
        "UPDATE spends SET state = 'sent', sent_at = app_now() WHERE id = %s AND state = 'signed'", (spend_id,)
    )


def mark_mined(before: SpendRow, found: Inclusion) -> bool:
    """Note where a spend stands in the chain; False if that was known. One that ended keeps its state."""
    place = (found.txid, found.height, found.block_hash, found.fee_units)
    whole = spend_outputs.sum_up(before.outputs, found.outputs)
    effects, left, arrived, _ = (list(column) for column in zip(*found.outputs, strict=True))
    is_new = touched(
        "UPDATE spends SET state = CASE WHEN state IN ('signed', 'sent') THEN 'mined' ELSE state END,"
        " mined_txid = %s, mined_height = %s, mined_hash = %s, chain_fee_units = %s, effect = %s, left_units = %s,"
        " arrived_units = %s, problem = %s, is_success = %s, is_own_refusal = NULL, mined_at = app_now()"
        " WHERE id = %s AND settled_at IS NULL AND ((mined_txid, mined_height, mined_hash, chain_fee_units)"
        "   IS DISTINCT FROM (%s, %s::bigint, %s, %s::numeric) OR EXISTS (SELECT FROM unnest(%s::text[],"
        "   %s::numeric[], %s::numeric[]) WITH ORDINALITY AS f (effect, left_units, arrived_units, nth)"
        "   JOIN spend_outputs o ON o.spend_id = spends.id AND o.place = f.nth - 1 WHERE (o.effect, o.left_units,"
        "   o.arrived_units) IS DISTINCT FROM (f.effect, f.left_units, f.arrived_units)))",
        (*place, *whole[:3], whole.problem[:500], whole.effect == "exact", before.id, *place, effects, left, arrived),
    )
    if is_new:
        spend_outputs.note_moved(before.id, found.outputs)
    return is_new


def note_refusal(spend: SpendRow, *, is_own: bool) -> bool:
    """Note for whose sake a spend had no effect in the block in which it was read; False if it stands elsewhere now."""
    return touched(
        "UPDATE spends SET is_own_refusal = %s WHERE id = %s AND state = 'mined'"
        " AND (mined_txid, mined_hash) = (%s, %s)",
        (is_own, spend.id, spend.mined_txid, spend.mined_hash),
    )


def give_up(spend_id: UUID) -> None:
    """Let a locked spend that moved nothing pay no payout any more: what it was signed for is signed anew.

    It is a lost one then. If a reorg beyond its maturity lets it move something after all, the gateway bears that.
    """
    execute("UPDATE spend_outputs SET payout_id = NULL WHERE spend_id = %s", (spend_id,))
    execute("UPDATE spends SET purpose = 'lost', payout_id = NULL WHERE id = %s", (spend_id,))


def name_payout(output: OutputRow, payout_id: UUID) -> SpendRow:
    """Let an output of a locked spend that pays no payout pay this one; return the changed spend."""
    execute(
        "UPDATE spend_outputs SET payout_id = %s WHERE spend_id = %s AND place = %s AND payout_id IS NULL",
        (payout_id, output.spend_id, output.place),
    )
    execute(
        "UPDATE spends SET purpose = 'payout', payout_id = CASE WHEN recipient IS NULL THEN NULL ELSE %s::uuid END"
        " WHERE id = %s",
        (payout_id, output.spend_id),
    )
    found = find(output.spend_id)
    if found is None:
        raise LookupError(f"spend {output.spend_id} vanished while it was locked")
    return found


def is_noted(spend: SpendRow, found: Inclusion) -> bool:
    """Return whether a spend says already what a receipt tells of it, as it was read: nothing is to be written then."""
    place = (spend.mined_txid, spend.mined_height, spend.mined_hash, spend.chain_fee_units)
    moved = [(output.effect, output.left_units, output.arrived_units) for output in spend.outputs]
    told = [(each.effect, each.left_units, each.arrived_units) for each in found.outputs]
    return (place, moved) == ((found.txid, found.height, found.block_hash, found.fee_units), told)


def take_out(spend_id: UUID) -> bool:
    """Note that a spend is in no block any more, nor need any node have its bytes; a confirmed one stays confirmed."""
    is_out = touched(
        "UPDATE spends SET state = CASE WHEN state = 'mined' THEN 'sent' ELSE state END, mined_txid = NULL,"
        " mined_height = NULL, mined_hash = NULL, is_success = NULL, effect = NULL, left_units = NULL,"
        " arrived_units = NULL, chain_fee_units = NULL, problem = '', is_own_refusal = NULL, mined_at = NULL"
        " WHERE id = %s AND mined_txid IS NOT NULL AND settled_at IS NULL",
        (spend_id,),
    )
    if is_out:
        spend_outputs.forget_moved(spend_id)
        execute("DELETE FROM spend_movements WHERE spend_id = %s", (spend_id,))
        execute("UPDATE spend_attempts SET sent_at = NULL WHERE spend_id = %s", (spend_id,))
    return is_out


def finish(before: SpendRow, state: Ending, *, booked_fee_units: int) -> bool:
    """End a spend whose outputs have ended, if it is as it was read; False if not. A confirmed one is watched on."""
    return touched(
        "UPDATE spends SET state = %s, ended_at = app_now(), booked_fee_units = %s,"
        " settled_at = CASE WHEN %s = 'confirmed' THEN NULL ELSE app_now() END"
        " WHERE id = %s AND state = %s AND settled_at IS NULL",
        (state, booked_fee_units, state, before.id, before.state),
    )


def settle(spend_id: UUID, *, booked_fee_units: int, problem: str = "") -> bool:
    """Stop following a spend that ended. problem: its outcome, if that is not what was announced."""
    return touched(
        "UPDATE spends SET settled_at = app_now(), booked_fee_units = %s,"
        " problem = CASE WHEN %s = '' THEN problem ELSE %s END"
        " WHERE id = %s AND state IN ('confirmed', 'failed') AND settled_at IS NULL",
        (booked_fee_units, problem, problem, spend_id),
    )


def reopen(spend_id: UUID) -> bool:
    """Follow a settled spend again; False if it is followed. One that is dead stays so."""
    return touched(
        "UPDATE spends SET settled_at = NULL, reopened = reopened + 1, check_at = app_now()"
        " WHERE id = %s AND state IN ('confirmed', 'failed') AND settled_at IS NOT NULL",
        (spend_id,),
    )


def check_later(spend_id: UUID, *, seconds: int) -> None:
    """Look at a spend again after this time, at most CHECK_LATER_MAX_S."""
    execute(
        "UPDATE spends SET check_at = app_now() + make_interval(secs => %s) WHERE id = %s AND settled_at IS NULL",
        (min(seconds, CHECK_LATER_MAX_S), spend_id),
    )


# Reading ----------------------------------------------------------------------------------------------------


def find(spend_id: UUID) -> SpendRow | None:
    """Return a spend."""
    return SpendRow.first("s.id = %s", (spend_id,))


def lock(spend_id: UUID) -> SpendRow | None:
    """Lock a spend until the transaction ends, and return it as it is then. Take this lock before any other."""
    execute("SELECT 1 FROM spends WHERE id = %s FOR NO KEY UPDATE", (spend_id,))
    return find(spend_id)


def of_payout(payout_id: UUID) -> SpendRow | None:
    """Return the spend that pays a payout, None while there is none; those that are dead do not count."""
    return SpendRow.first(
        "s.id = (SELECT o.spend_id FROM spend_outputs o WHERE o.payout_id = %s AND o.state <> 'dead')", (payout_id,)
    )


def next_slot(network: str, sender: str) -> int:
    """Return which slot a sender gets next, by our own count: the chain may have used more."""
    return known_slot(network, sender) or 0


def known_slot(network: str, sender: str) -> int | None:
    """Return a sender's next slot, None for one who never signed anything by our rows."""
    found = SpendAccount.first("network = %s AND sender = %s", (network, sender))
    return found.next_slot if found else None


def is_attempt(network: str, txid: str) -> bool:
    """Return whether we signed a transaction by any row."""
    return is_true("SELECT 1 FROM spend_attempts WHERE network = %s AND txid = %s", (network, txid))


def settled_in(network: str, sender: str, slots: range) -> dict[int, UUID]:
    """Return, by slot, the settled spends that have some slots."""
    found = rows(
        "SELECT slot, id FROM spends WHERE network = %s AND sender = %s AND slot >= %s AND slot < %s"
        " AND state <> 'dead' AND settled_at IS NOT NULL ORDER BY slot LIMIT %s",
        (network, sender, slots.start, slots.stop, SETTLED_MAX),
    )
    return dict(found)


def to_watch(network: str, *, limit: int) -> list[SpendRow]:
    """Return the spends to look at now: the longest unvisited first, a sender's in slot order."""
    return SpendRow.read(
        "s.network = %s AND s.settled_at IS NULL"
        # A time further ahead than any pause was written before the clock was set back.
        " AND (s.check_at <= app_now() OR s.check_at > app_now() + make_interval(secs => %s))"
        " ORDER BY s.check_at, s.sender, s.slot LIMIT %s",
        (network, CHECK_LATER_MAX_S + FUTURE_MAX_S, limit),
    )


def attempts_of(spend_id: UUID) -> list[AttemptRow]:
    """Return a spend's attempts, newest first."""
    return AttemptRow.read("spend_id = %s ORDER BY number DESC", (spend_id,))
