"""Keeps the outputs of spends: recipient, amount, effect and ending of each.

Only models.spends.rows and models.spends.tracking change them, under the lock of their spend. The spend's own columns
of effect, amounts and losses sum up its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

from models.db.base import execute, touched
from models.db.table import BY_DATABASE, Numeric, Table, Units

# The effect of an included spend; see chains.spending.Effect.
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
    # Only if the effect is "other": the amounts that left the sender and reached the recipient.
    left_units: Units | None = BY_DATABASE
    arrived_units: Units | None = BY_DATABASE
    # The gateway's loss, in the ledger's units; negative if it gained.
    lost_units: Numeric = BY_DATABASE
    # Charged to a merchant for a failed payout that took effect after all, in the ledger's units.
    charged_units: Units = BY_DATABASE
    problem: str = BY_DATABASE

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return an output from a JSON object with the columns of LIST."""
        keys = {name: UUID(values[name]) for name in ("spend_id", "payout_id") if values[name]}
        return cls(**(dict(values) | keys))


def read_outputs(values: Iterable[Mapping[str, Any]] | None) -> tuple[OutputRow, ...]:
    """Return the outputs in a value of TOLD."""
    return tuple(map(OutputRow.from_json, values or ()))


# All outputs of a spend s as one value, in their order.
TOLD = (
    f"(SELECT json_agg(told ORDER BY told.place) FROM (SELECT {OutputRow.LIST} FROM spend_outputs o"
    " WHERE o.spend_id = s.id) told)"
)


class Moved(NamedTuple):
    """The effect of one output by a receipt; if "other", with the amounts that left and arrived, in token units.

    Without an effect it has left our wallet for good, and has not ended.
    """

    effect: Effect | None
    left_units: int | None = None
    arrived_units: int | None = None
    problem: str = ""


def sum_up(outputs: Sequence[OutputRow], moved: Sequence[Moved]) -> Moved:
    """Return the effect of a whole spend; "other" if its outputs' effects differ, None while one has not ended."""
    pairs = list(zip(outputs, moved, strict=True))
    problem = next((each.problem for each in moved if each.problem), "")
    effects = {each.effect for each in moved}
    if effects in ({"none"}, {"exact"}):
        return Moved(effects.pop(), problem=problem)
    left = sum(
        output.token_units if each.effect is None else _units(output, each, each.left_units) for output, each in pairs
    )
    arrived = sum(_units(output, each, each.arrived_units) for output, each in pairs)
    return Moved(None if None in effects else "other", left, arrived, problem)


def _units(output: OutputRow, moved: Moved, reported_units: int | None) -> int:
    return output.token_units if moved.effect == "exact" else reported_units or 0


def note_moved(spend_id: UUID, moved: Iterable[Moved]) -> None:
    """Record the effects of a spend's outputs, in their order."""
    for place, each in enumerate(moved):
        execute(
            "UPDATE spend_outputs SET effect = %s, left_units = %s, arrived_units = %s, problem = %s"
            " WHERE spend_id = %s AND place = %s",
            (each.effect, each.left_units, each.arrived_units, each.problem[:500], spend_id, place),
        )


def forget_moved(spend_id: UUID) -> None:
    """Clear the effects of a spend's outputs, because no block includes it."""
    execute(
        "UPDATE spend_outputs SET effect = NULL, left_units = NULL, arrived_units = NULL, problem = ''"
        " WHERE spend_id = %s",
        (spend_id,),
    )


def end(output: OutputRow, ending: Ending, *, lost_units: int = 0) -> bool:
    """End an output that was read under its spend's lock, and record the gateway's loss; False if it had ended."""
    is_ended = touched(
        "UPDATE spend_outputs SET state = %s, lost_units = %s WHERE spend_id = %s AND place = %s AND state = 'open'",
        (ending, lost_units, output.spend_id, output.place),
    )
    if lost_units or output.lost_units:
        _add_up(output.spend_id)
    return is_ended


def note_lost(output: OutputRow, lost_units: int, *, problem: str = "") -> None:
    """Record the gateway's loss by an ended output that was read under its spend's lock.

    problem: its outcome, if another one was announced.
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
    """Record the total that a merchant is charged for a failed payout that took effect after all."""
    execute(
        "UPDATE spend_outputs SET charged_units = %s WHERE spend_id = %s AND place = %s",
        (units, output.spend_id, output.place),
    )
    _add_up(output.spend_id)


def _add_up(spend_id: UUID) -> None:
    """Update a spend's sums of its outputs' losses and charges."""
    execute(
        "UPDATE spends s SET lost_units = o.lost, charged_units = o.charged FROM (SELECT sum(lost_units) AS lost,"
        " sum(charged_units) AS charged FROM spend_outputs WHERE spend_id = %s) o WHERE s.id = %s"
        " AND (s.lost_units, s.charged_units) <> (o.lost, o.charged)",
        (spend_id, spend_id),
    )
