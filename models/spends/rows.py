"""Reads and writes spends, their attempts, and each sender's next slot. For actors.signer.sign.

Nothing here decides: models.spends.tracking changes a spend's state and runs its hooks. Every write is conditional on
the state that it starts from, so that of two workers with the same write only one succeeds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args
from uuid import UUID

from models.db.base import execute, is_true, rows, touched, value
from models.db.clock import FUTURE_MAX_S
from models.db.table import BY_DATABASE, Big, Numeric, Table, Units, derived
from models.deposits.cursors import window_is_over
from models.spends import held_coins
from models.spends import outputs as spend_outputs
from models.spends.coins import Outpoint
from models.spends.outputs import TOLD, Effect, Ending, Moved, OutputRow, read_outputs

Purpose = Literal["payout", "gas", "sweep", "cold", "filler", "join", "lost"]
State = Literal["signed", "sent", "mined", "confirmed", "failed", "dead"]

# Limits the settled spends that one step follows again.
SETTLED_MAX: Final = 50
CHECK_LATER_MAX_S: Final = 3_600
_OF_SENDER: Final = "network = %(network)s AND sender = %(sender)s"
PURPOSES: Final[frozenset[str]] = frozenset(get_args(Purpose))


class SpendRow(Table, table="spends s"):
    """A spend; with its outputs if it was read. Units are the token's own; addresses are in the stored form."""

    id: UUID
    network: str
    purpose: Purpose
    sender: str
    # The wallet that signs too and pays the fee; '' if the sender pays.
    payer: str = ""
    # The deposit address whose key signs, by its ordinal; None for the hot wallet.
    key_ordinal: Big | None = None
    currency: str
    contract: str | None
    decimals: int
    # Of all outputs together.
    token_units: Units
    # NULL in families without slots.
    slot: Big | None
    state: State = "signed"
    attempts: int = BY_DATABASE
    mined_txid: str | None = BY_DATABASE
    mined_height: Big | None = BY_DATABASE
    mined_hash: str | None = BY_DATABASE
    # Of all outputs together, as all below; whether their effect is "exact".
    is_success: bool | None = BY_DATABASE
    effect: Effect | None = BY_DATABASE
    # Only if the effect is "other": the amounts that left the sender and reached the recipients, in the token's units.
    left_units: Units | None = BY_DATABASE
    arrived_units: Units | None = BY_DATABASE
    # The gateway's loss, in the ledger's units; negative if it gained.
    lost_units: Numeric = BY_DATABASE
    # Negative if closing an account brought the payer more than the chain took.
    chain_fee_units: Numeric | None = BY_DATABASE
    booked_fee_units: Numeric = BY_DATABASE
    problem: str = BY_DATABASE
    # Of a payout without effect: True if the token refuses every transfer from this sender; None until that was tried.
    is_own_refusal: bool | None = BY_DATABASE
    check_at: datetime = BY_DATABASE
    signed_height: Big | None = BY_DATABASE
    created_at: datetime = BY_DATABASE
    sent_at: datetime | None = BY_DATABASE
    bumped_at: datetime | None = BY_DATABASE
    mined_at: datetime | None = BY_DATABASE
    ended_at: datetime | None = BY_DATABASE
    settled_at: datetime | None = BY_DATABASE
    # True if all its attempts ended in no block, so that its slot is another spend's.
    is_slot_free: bool = BY_DATABASE
    # Number of times its block left the chain after it was settled.
    reopened: int = BY_DATABASE
    # Charged to merchants for failed payouts that took effect after all, in the ledger's units.
    charged_units: Units = BY_DATABASE
    # The newest attempt's.
    txid: str = derived(
        "COALESCE((SELECT a.txid FROM spend_attempts a WHERE a.spend_id = s.id ORDER BY a.number DESC LIMIT 1), '')"
    )
    # Ordered by place.
    outputs: tuple[OutputRow, ...] = derived(TOLD, made=read_outputs)

    @property
    def counter(self) -> int:
        """Return the spend's slot. Raises LookupError if its family has no slots."""
        if self.slot is None:
            raise LookupError(f"spend {self.id} has no number among those of its sender")
        return self.slot

    @property
    def fee_payer(self) -> str:
        """Return the address that pays the fee."""
        return self.payer or self.sender

    @property
    def is_waiting(self) -> bool:
        """Return True if no known block includes the spend: before its first block, or since a reorg."""
        return self.settled_at is None and self.mined_txid is None


class AttemptRow(Table, table="spend_attempts"):
    """An attempt: signed bytes and the fee that they offer."""

    spend_id: UUID
    number: int = 0
    network: str
    txid: str
    raw: bytes  # type: ignore[assignment]  # covers a method of peewee's that no row needs
    # The highest possible cost, in base units of the gas coin; and the family's own fee figures, by name.
    ceiling_units: Units
    # The most gas coin that it brings to its payer.
    gain_units: Units = 0
    terms: dict[str, int]
    # Identifies its transfers to the scan; '' if the txid does.
    mark: str = ""
    # The end of its claim, after which no block can include it; None if it never ends.
    expires_at: datetime | None = None
    expires_height: Big | None = None
    expires_block: Big | None = None
    # True if the scan has passed that end. The signer asks for its fate all the same.
    is_over: bool = derived(
        "EXISTS (SELECT FROM chain_cursors c WHERE c.network = spend_attempts.network"
        f" AND {window_is_over('spend_attempts')})"
    )
    created_at: datetime = BY_DATABASE
    sent_at: datetime | None = BY_DATABASE
    last_error: str = BY_DATABASE
    # Moves nothing; only uses up the slot of a failed spend.
    is_void: bool = False
    # Seconds since it was last sent to the nodes; None if it never was.
    seconds_silent: int | None = derived("extract(epoch FROM app_now() - sent_at)::bigint")


class SpendAccount(Table, table="spend_accounts a"):
    """A sender's next slot."""

    network: str
    sender: str
    next_slot: Big


class Movement(NamedTuple):
    """A spend's effect on any address by the chain's account: signed token units of one coin."""

    address: str
    currency: str
    units: int


class Inclusion(NamedTuple):
    """A receipt of a spend: its block and what it moved. The fee is in base units of the gas coin."""

    txid: str
    height: int
    block_hash: str
    # In the order of the spend's outputs.
    outputs: tuple[Moved, ...]
    fee_units: int
    movements: tuple[Movement, ...]


# Writing ----------------------------------------------------------------------------------------------------


def take_slot(network: str, sender: str, *, at_least: int) -> int:
    """Take the sender's next slot; other callers wait until this transaction ends.

    A rollback returns the slot, so that every used slot has signed bytes. at_least: the first slot that the chain has
    not used; it can only raise the number.
    """
    slot: int = value(
        "INSERT INTO spend_accounts AS a (network, sender, next_slot) VALUES (%s, %s, %s + 1)"
        " ON CONFLICT (network, sender) DO UPDATE SET next_slot = GREATEST(a.next_slot + 1, EXCLUDED.next_slot)"
        " RETURNING next_slot - 1",
        (network, sender, at_least),
    )
    return slot


def lock_account(network: str, sender: str) -> None:
    """Lock a sender's account until the caller's transaction ends, as take_slot does."""
    execute("SELECT 1 FROM spend_accounts WHERE network = %s AND sender = %s FOR UPDATE", (network, sender))


def raise_slot(network: str, sender: str, next_slot: int) -> None:
    """Raise a sender's next slot to at least this one, in the caller's transaction."""
    SpendAccount(network=network, sender=sender, next_slot=next_slot).write(
        "ON CONFLICT (network, sender) DO UPDATE SET next_slot = GREATEST(a.next_slot, EXCLUDED.next_slot)"
    )


def give_back_slot(spend: SpendRow) -> None:
    """Let a sender's next spend take the slot of one that ended in no block. Locks the sender's account.

    If later slots are in use, theirs are given back first: the slot is then a gap, which the signer fills.
    """
    lock_account(spend.network, spend.sender)
    execute("UPDATE spends SET is_slot_free = true WHERE id = %s AND slot IS NOT NULL", (spend.id,))
    execute(
        "UPDATE spend_accounts a SET next_slot = LEAST(a.next_slot, free.slot) FROM ("
        f"   SELECT min(slot) AS slot FROM spends WHERE {_OF_SENDER} AND is_slot_free AND slot > GREATEST(-1,"
        f"     (SELECT max(slot) FROM spends WHERE {_OF_SENDER} AND state <> 'dead' AND NOT is_slot_free),"
        f"     (SELECT max(slot) FROM spends WHERE {_OF_SENDER} AND state = 'dead' AND NOT is_slot_free),"
        f"     (SELECT max(slot) FROM unexplained_departures WHERE {_OF_SENDER} AND status <> 'dismissed'))"
        f" ) free WHERE {_OF_SENDER} AND free.slot IS NOT NULL",
        {"network": spend.network, "sender": spend.sender},
    )


def insert(
    new: SpendRow, outputs: Sequence[OutputRow], attempt: AttemptRow, *, claimed: Collection[Outpoint] = ()
) -> bool:
    """Write a spend with its outputs and its first attempt.

    claimed: the coins that it holds from now on. False if one of them is not free; the caller has to roll back. Raises
    a unique violation if the slot or a payout has a spend already.
    """
    values = vars(new)
    execute(
        f"INSERT INTO spends ({', '.join(values)}, signed_height) VALUES ({', '.join(['%s'] * len(values))},"
        " (SELECT height FROM chain_cursors WHERE network = %s))",
        (*values.values(), new.network),
    )
    OutputRow.write_all(outputs)
    # Before the attempt: another process that drafted the same spend of the same coins has signed the same bytes.
    if claimed and not held_coins.hold(new.id, claimed):
        return False
    if not add_attempt(attempt):
        raise LookupError(f"spend {new.id} vanished while it was written")
    return True


def add_attempt(attempt: AttemptRow) -> bool:
    """Write the next attempt of a spend that no block includes; False if another process wrote this number first."""
    if not touched(
        "UPDATE spends SET attempts = attempts + 1, bumped_at = CASE WHEN attempts > 0 THEN app_now() END"
        " WHERE id = %s AND attempts = %s AND settled_at IS NULL AND mined_txid IS NULL",
        (attempt.spend_id, attempt.number),
    ):
        return False
    return attempt.write() > 0


def note_tried(spend_id: UUID, number: int, *, error: str) -> None:
    """Record that an attempt was sent to the nodes now, and the error, if any."""
    execute(
        "UPDATE spend_attempts SET sent_at = app_now(), last_error = %s WHERE spend_id = %s AND number = %s",
        (error[:500], spend_id, number),
    )


def is_refused_since(spend_id: UUID, number: int, *, error: str) -> bool:
    """Return True if an attempt's last sending had this error and the scan has reached the head since."""
    return is_true(
        "SELECT 1 FROM spend_attempts a JOIN chain_cursors c ON c.network = a.network"
        " WHERE a.spend_id = %s AND a.number = %s AND a.last_error = %s AND c.head_reached_at > a.sent_at",
        (spend_id, number, error),
    )


def are_all_over(spend_id: UUID, *, depth: int = 1) -> bool:
    """Return True if a scanned block of this depth is past the end of every attempt of a spend."""
    if depth == 1:
        return all(attempt.is_over for attempt in attempts_of(spend_id))
    return is_true(
        "SELECT 1 FROM chain_cursors c JOIN chain_blocks b ON b.network = c.network AND b.height <= c.height - %s + 1"
        " WHERE c.network = (SELECT network FROM spends WHERE id = %s) AND NOT EXISTS (SELECT FROM spend_attempts a"
        f"   WHERE a.spend_id = %s AND {window_is_over('a', 'b')} IS NOT TRUE) LIMIT 1",
        (depth, spend_id, spend_id),
    )


def mark_sent(spend_id: UUID) -> bool:
    """Record that a node accepted a spend; False if that was known."""
    return touched(
        "UPDATE spends SET state = 'sent', sent_at = app_now() WHERE id = %s AND state = 'signed'", (spend_id,)
    )


def mark_mined(before: SpendRow, inclusion: Inclusion) -> bool:
    """Record the block of a spend and its effects; False if they were known. A spend that ended keeps its state."""
    place = (inclusion.txid, inclusion.height, inclusion.block_hash, inclusion.fee_units)
    whole = spend_outputs.sum_up(before.outputs, inclusion.outputs)
    effects, left, arrived, _ = (list(column) for column in zip(*inclusion.outputs, strict=True))
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
        spend_outputs.note_moved(before.id, inclusion.outputs)
    return is_new


def note_refusal(spend: SpendRow, *, is_own: bool) -> bool:
    """Record whether the token refuses every transfer from a spend's sender.

    False if another block includes the spend now than when it was read.
    """
    return touched(
        "UPDATE spends SET is_own_refusal = %s WHERE id = %s AND state = 'mined'"
        " AND (mined_txid, mined_hash) = (%s, %s)",
        (is_own, spend.id, spend.mined_txid, spend.mined_hash),
    )


def give_up(output: OutputRow) -> None:
    """Detach the payout of an output of a locked spend that moved nothing, so that it can be signed again.

    The spend becomes a lost one with its last payout. If a reorg beyond maturity makes it move something after all, the
    gateway bears that.
    """
    execute(
        "UPDATE spend_outputs SET payout_id = NULL WHERE spend_id = %s AND place = %s", (output.spend_id, output.place)
    )
    execute(
        "UPDATE spends SET purpose = 'lost' WHERE id = %s AND NOT EXISTS (SELECT FROM spend_outputs o"
        " WHERE o.spend_id = spends.id AND o.payout_id IS NOT NULL)",
        (output.spend_id,),
    )


def name_payout(output: OutputRow, payout_id: UUID) -> SpendRow:
    """Attach a payout to an output of a locked spend that has none; return the changed spend."""
    execute(
        "UPDATE spend_outputs SET payout_id = %s WHERE spend_id = %s AND place = %s AND payout_id IS NULL",
        (payout_id, output.spend_id, output.place),
    )
    execute("UPDATE spends SET purpose = 'payout' WHERE id = %s", (output.spend_id,))
    spend = find(output.spend_id)
    if spend is None:
        raise LookupError(f"spend {output.spend_id} vanished while it was locked")
    return spend


def is_noted(spend: SpendRow, inclusion: Inclusion) -> bool:
    """Return True if a spend, as it was read, already has everything from a receipt. Nothing is to be written then."""
    place = (spend.mined_txid, spend.mined_height, spend.mined_hash, spend.chain_fee_units)
    moved = [(output.effect, output.left_units, output.arrived_units) for output in spend.outputs]
    noted = [(each.effect, each.left_units, each.arrived_units) for each in inclusion.outputs]
    return (place, moved) == ((inclusion.txid, inclusion.height, inclusion.block_hash, inclusion.fee_units), noted)


def take_out(spend_id: UUID) -> bool:
    """Record that no block includes a spend any longer, and that nodes may lack its bytes.

    A confirmed spend stays confirmed. False if no block included it, or it is settled.
    """
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
    """End a spend whose outputs have ended; False if it changed since it was read. A confirmed one is still watched."""
    return touched(
        "UPDATE spends SET state = %s, ended_at = app_now(), booked_fee_units = %s,"
        " settled_at = CASE WHEN %s = 'confirmed' THEN NULL ELSE app_now() END"
        " WHERE id = %s AND state = %s AND settled_at IS NULL",
        (state, booked_fee_units, state, before.id, before.state),
    )


def settle(spend_id: UUID, *, booked_fee_units: int, problem: str = "") -> bool:
    """Stop following a spend that ended. problem: its outcome, if another one was announced."""
    return touched(
        "UPDATE spends SET settled_at = app_now(), booked_fee_units = %s,"
        " problem = CASE WHEN %s = '' THEN problem ELSE %s END"
        " WHERE id = %s AND state IN ('confirmed', 'failed') AND settled_at IS NULL",
        (booked_fee_units, problem, problem, spend_id),
    )


def reopen(spend_id: UUID) -> bool:
    """Follow a settled spend again; False if it is followed already, or dead."""
    return touched(
        "UPDATE spends SET settled_at = NULL, reopened = reopened + 1, check_at = app_now()"
        " WHERE id = %s AND state IN ('confirmed', 'failed') AND settled_at IS NOT NULL",
        (spend_id,),
    )


def check_later(spend_id: UUID, *, seconds: int) -> None:
    """Set a spend's next check to this many seconds from now, at most CHECK_LATER_MAX_S."""
    execute(
        "UPDATE spends SET check_at = app_now() + make_interval(secs => %s) WHERE id = %s AND settled_at IS NULL",
        (min(seconds, CHECK_LATER_MAX_S), spend_id),
    )


# Reading ----------------------------------------------------------------------------------------------------


def find(spend_id: UUID) -> SpendRow | None:
    """Return a spend."""
    return SpendRow.first("s.id = %s", (spend_id,))


def lock(spend_id: UUID) -> SpendRow | None:
    """Lock a spend until the transaction ends, and return it as read under the lock. Take this lock before others."""
    execute("SELECT 1 FROM spends WHERE id = %s FOR NO KEY UPDATE", (spend_id,))
    return find(spend_id)


def of_payout(payout_id: UUID) -> SpendRow | None:
    """Return the spend that pays a payout, None if it has no spend yet. Dead spends do not count."""
    return SpendRow.first(
        "s.id = (SELECT o.spend_id FROM spend_outputs o WHERE o.payout_id = %s AND o.state <> 'dead')", (payout_id,)
    )


def next_slot(network: str, sender: str) -> int:
    """Return a sender's next slot by our own count; the chain may have used more."""
    return known_slot(network, sender) or 0


def known_slot(network: str, sender: str) -> int | None:
    """Return a sender's next slot; None if our rows have no spend of that sender."""
    account = SpendAccount.first("network = %s AND sender = %s", (network, sender))
    return account.next_slot if account else None


def is_attempt(network: str, txid: str) -> bool:
    """Return True if any attempt has this transaction id."""
    return is_true("SELECT 1 FROM spend_attempts WHERE network = %s AND txid = %s", (network, txid))


def settled_in(network: str, sender: str, slots: range) -> dict[int, UUID]:
    """Return the settled spends in a range of slots, by slot."""
    pairs = rows(
        "SELECT slot, id FROM spends WHERE network = %s AND sender = %s AND slot >= %s AND slot < %s"
        " AND state <> 'dead' AND NOT is_slot_free AND settled_at IS NOT NULL ORDER BY slot LIMIT %s",
        (network, sender, slots.start, slots.stop, SETTLED_MAX),
    )
    return dict(pairs)


def to_watch(network: str, *, limit: int) -> list[SpendRow]:
    """Return the spends to look at now: the longest unvisited first, a sender's in slot order."""
    return SpendRow.read(
        "s.network = %s AND s.settled_at IS NULL"
        # A time further ahead than the longest pause was written before the clock was set back.
        " AND (s.check_at <= app_now() OR s.check_at > app_now() + make_interval(secs => %s))"
        " ORDER BY s.check_at, s.sender, s.slot LIMIT %s",
        (network, CHECK_LATER_MAX_S + FUTURE_MAX_S, limit),
    )


def attempts_of(spend_id: UUID) -> list[AttemptRow]:
    """Return a spend's attempts, newest first."""
    return AttemptRow.read("spend_id = %s ORDER BY number DESC", (spend_id,))
