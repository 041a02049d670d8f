"""Keeps the outputs of spends: what each brings to whom, what it moved, and how it ended, each by itself.

Changed under the lock of its spend alone, by models.spends.rows and models.spends.tracking. What the row of a spend
says of its effect, of what left and of losses sums up its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

from models.db.base import execute, touched
from models.db.table import BY_DATABASE, Numeric, Table, Units

# What an included spend moved; see chains.spending.Effect.
Effect = Literal["none", "exact", "other"]
Ending = Literal["confirmed", "failed", "dead"]
OutputState = Literal["open", Ending]


class OutputRow(Table, table="spend_outputs o"):
    """A part of a spend that goes to one recipient. Units are the token's own; addresses are in the stored form."""

    spend_id: UUID
    place: int = 0
    payout_id: UUID | None = None
    recipient: str
    token_units: Units
    memo: str = ""
    state: OutputState = BY_DATABASE
    effect: Effect | None = BY_DATABASE
    # Of another effect alone: what left the sender and came to the recipient.
    left_units: Units | None = BY_DATABASE
    arrived_units: Units | None = BY_DATABASE
    # What the gateway bears of that, in the ledger's units; negative where it gained.
    lost_units: Numeric = BY_DATABASE
    # What a merchant was charged for a failed payout that took effect after all, in the ledger's units.
    charged_units: Units = BY_DATABASE
    problem: str = BY_DATABASE

    @classmethod
    def told(cls, values: Mapping[str, Any]) -> Self:
        """Return the output that a JSON object of LIST tells."""
        keys = {name: UUID(values[name]) for name in ("spend_id", "payout_id") if values[name]}
        return cls(**(dict(values) | keys))


def told_outputs(told: Iterable[Mapping[str, Any]] | None) -> tuple[OutputRow, ...]:
    """Return the outputs that TOLD gives."""
    return tuple(map(OutputRow.told, told or ()))


# All outputs of a spend s as one value, in their order.
TOLD = (
    f"(SELECT json_agg(told ORDER BY told.place) FROM (SELECT {OutputRow.LIST} FROM spend_outputs o"
    " WHERE o.spend_id = s.id) told)"
)


class Moved(NamedTuple):
    """What a receipt says that one output moved; of another effect with what left and what arrived, in token units."""

    effect: Effect
    left_units: int | None = None
    arrived_units: int | None = None
    problem: str = ""


def sum_up(outputs: Sequence[OutputRow], moved: Sequence[Moved]) -> Moved:
    """Return what a whole spend moved. Several outputs that differ have another effect together."""
    pairs = list(zip(outputs, moved, strict=True))
    problem = next((each.problem for each in moved if each.problem), "")
    effects = {each.effect for each in moved}
    if len(effects) == 1 and "other" not in effects:
        return Moved(effects.pop(), problem=problem)
    left = sum(_units(output, each.effect, each.left_units) for output, each in pairs)
    arrived = sum(_units(output, each.effect, each.arrived_units) for output, each in pairs)
    return Moved("other", left, arrived, problem)


def _units(output: OutputRow, effect: Effect, told: int | None) -> int:
    return output.token_units if effect == "exact" else told or 0


def note_moved(spend_id: UUID, moved: Iterable[Moved]) -> None:
    """Note what the outputs of a spend moved, in their order."""
    for place, each in enumerate(moved):
        execute(
            "UPDATE spend_outputs SET effect = %s, left_units = %s, arrived_units = %s, problem = %s"
            " WHERE spend_id = %s AND place = %s",
            (each.effect, each.left_units, each.arrived_units, each.problem[:500], spend_id, place),
        )


def forget_moved(spend_id: UUID) -> None:
    """Note that a spend is in no block, so that its outputs moved nothing."""
    execute(
        "UPDATE spend_outputs SET effect = NULL, left_units = NULL, arrived_units = NULL, problem = ''"
        " WHERE spend_id = %s",
        (spend_id,),
    )


def end(output: OutputRow, ending: Ending, *, lost_units: int = 0) -> bool:
    """End an output, read under its spend's lock, with what the gateway bears of it; False if it has ended."""
    is_ended = touched(
        "UPDATE spend_outputs SET state = %s, lost_units = %s WHERE spend_id = %s AND place = %s AND state = 'open'",
        (ending, lost_units, output.spend_id, output.place),
    )
    if lost_units or output.lost_units:
        _add_up(output.spend_id)
    return is_ended


def note_lost(output: OutputRow, lost_units: int, *, problem: str = "") -> None:
    """Note what the gateway bears of an output that ended, read under its spend's lock.

    problem: its outcome, if that is not what was announced.
    """
    if lost_units == output.lost_units and problem in {"", output.problem}:
        return
    execute(
        "UPDATE spend_outputs SET lost_units = %s, problem = CASE WHEN %s = '' THEN problem ELSE %s END"
        " WHERE spend_id = %s AND place = %s",
        (lost_units, problem, problem, output.spend_id, output.place),
    )
    _add_up(output.spend_id)


def note_charged(output: OutputRow, units: int) -> None:
    """Note what a merchant is charged for a failed payout that took effect after all, all in all."""
    execute(
        "UPDATE spend_outputs SET charged_units = %s WHERE spend_id = %s AND place = %s",
        (units, output.spend_id, output.place),
    )
    _add_up(output.spend_id)


def _add_up(spend_id: UUID) -> None:
    """Let a spend say what its outputs lost and charged together."""
    execute(
        "UPDATE spends s SET lost_units = o.lost, charged_units = o.charged FROM (SELECT sum(lost_units) AS lost,"
        " sum(charged_units) AS charged FROM spend_outputs WHERE spend_id = %s) o WHERE s.id = %s"
        " AND (s.lost_units, s.charged_units) <> (o.lost, o.charged)",
        (spend_id, spend_id),
    )
