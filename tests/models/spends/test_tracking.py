"""Steps without a change to make, and cases in which a spend is not buried."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from core.ids import uuid7
from models.db.base import transaction
from models.spends import hooks, tracking, unexplained
from models.spends.outputs import Moved
from models.spends.rows import Inclusion
from tests.models.builders import CATALOGUE
from tests.models.spends.departures import a_departure
from tests.models.spends.test_rows import SENDER, read, spend

FOUND = Inclusion(txid="0x1", height=7, block_hash="0xb", outputs=(Moved("exact"),), fee_units=1, movements=())


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database


@pytest.mark.parametrize(
    "step",
    [
        lambda nobody: tracking.note_sent(CATALOGUE, nobody),
        lambda nobody: tracking.note_mined(CATALOGUE, nobody, FOUND),
        lambda nobody: tracking.note_taken_out(CATALOGUE, nobody),
        tracking.reopen,
        lambda nobody: tracking.ripen(CATALOGUE, nobody),
        lambda nobody: tracking.settle_by_hand(CATALOGUE, nobody, 0, is_paid=True),
        lambda nobody: tracking.bury(CATALOGUE, nobody, attempts=1),
    ],
)
def test_an_unexplained_departure_is_ignored(step: Callable[[UUID], object]) -> None:
    with transaction():
        assert step(uuid7()) is None


def test_the_same_transfer_in_its_slot_buries_no_spend() -> None:
    """It becomes an attempt of the spend, since it made the intended payment."""
    row = spend()
    same = a_departure(
        sender=SENDER,
        slot=row.slot,
        recipient=row.outputs[0].recipient,
        contract=row.contract,
        token_units=row.token_units,
    )
    with transaction():
        assert unexplained.note(same)
        assert unexplained.user_of_slot(row) is not None
        assert tracking.bury(CATALOGUE, row.id, attempts=1) is None
    assert read(row.id) == row


def test_a_spend_of_an_unregistered_purpose_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = spend()
    monkeypatch.setattr(hooks, "_HOOKS", {})

    with pytest.raises(LookupError, match="what a gas is for"), transaction():
        tracking.note_sent(CATALOGUE, row.id)
    assert read(row.id) == row
