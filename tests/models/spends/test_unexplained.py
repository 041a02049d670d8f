"""An unexplained departure is noted, read, taken out of its block and found again; its row fits its claim."""

from __future__ import annotations

from typing import Any

import psycopg2.errors
import pytest

from core.catalogue.families import TRAITS
from core.ids import uuid7
from models.db.base import execute, rows, transaction, value
from models.deposits import cursors
from models.deposits.rows import ChainBlock
from models.recovery import adoption
from models.spends import matching, signing_stops, unexplained, unread_departures
from models.spends.unexplained import Part, UnexplainedRow
from tests.models.builders import CATALOGUE
from tests.models.spends.departures import DISMISSED, OUT_OF_BLOCKS, SENDER, a_departure

pytestmark = pytest.mark.usefixtures("database")

WINDOWED: dict[str, Any] = {"slot": None, "block_height": 8, "block_hash": "0x8"}


def note(txid: str = "0xlost", *, height: int = 8) -> int:
    """Note a transaction of our sender in a block, without its movements."""
    with transaction():
        return unread_departures.note("ethereum", "window", {txid: SENDER}, height=height, block_hash=f"0x{height}")


def read(**others: Any) -> bool:
    """Read the movements of the noted transaction."""
    with transaction():
        return unexplained.note(a_departure(**(WINDOWED | others)))


def states() -> list[tuple[Any, ...]]:
    return rows("SELECT status, block_height, settled_by FROM unexplained_departures")


def the_unread() -> UnexplainedRow:
    (unread,) = unread_departures.waiting("ethereum", limit=9)
    return unread


def found_again() -> UnexplainedRow:
    """Read a departure, let a reorg take it and another block have it; return its row."""
    assert (note(), read()) == (1, True)
    execute(OUT_OF_BLOCKS)
    assert note(height=9) == 1
    return the_unread()


def has_moved() -> bool:
    return matching.has_moved(CATALOGUE, network="ethereum", currency="ETH", units=10**30)


def test_a_noted_departure_has_no_movements_until_it_is_read() -> None:
    assert (note(), note()) == (1, 0)
    assert (the_unread().parts, unexplained.find("ethereum", "0xlost")) == ((), None)
    assert (unexplained.listing("ethereum", limit=9), unexplained.open_ones("ethereum")) == ([], [])
    assert unexplained.without_row("ethereum", ["0xlost"]) == {"0xlost"}
    assert (signing_stops.has_unexplained("ethereum"), unexplained.waiting()) == (True, {"ethereum": 1})

    assert (read(), read()) == (True, False)
    assert unread_departures.waiting("ethereum", limit=9) == []
    departure = unexplained.find("ethereum", "0xlost")
    assert departure is not None
    assert vars(departure) == vars(departure) | vars(a_departure(**WINDOWED))
    assert unexplained.without_row("ethereum", ["0xlost"]) == set()
    assert (signing_stops.has_unexplained("ethereum"), unexplained.waiting()) == (True, {"ethereum": 1})


def test_a_departure_that_another_block_has_is_adopted_once_it_is_read_there() -> None:
    again = found_again()
    with transaction():
        assert unexplained.lock(again.id) is None
        assert not adoption.adopt(CATALOGUE, again.id)
    assert (unexplained.open_ones("ethereum"), has_moved()) == ([], True), "money waits for it all the same"

    assert read(block_height=9, block_hash="0x9", is_success=False)
    assert [(each.block_height, each.is_success) for each in unexplained.open_ones("ethereum")] == [(9, False)]


def test_a_reorg_keeps_the_movements_of_a_departure_that_was_read() -> None:
    found_again()
    at = value("SELECT app_now()")
    cursors.start(
        ChainBlock(network="ethereum", height=8, hash="0x8", parent_height=7, parent_hash="0x7", block_time=at)
    )
    note("0xunread", height=9)
    assert unexplained.take_out("ethereum") == 2
    assert rows("SELECT txid, status FROM unexplained_departures WHERE block_height IS NULL ORDER BY 1") == [
        ("0xlost", "unexplained"), ("0xunread", "unread"),
    ]  # fmt: skip
    assert (signing_stops.has_unexplained("ethereum"), unexplained.waiting(), has_moved()) == (
        False,
        {"ethereum": 1},
        True,
    )


def test_a_dismissed_departure_begins_again_in_a_block() -> None:
    assert note() == 1
    unread = the_unread()
    assert unread_departures.dismiss(unread, by="operator", reason="r")
    assert not unread_departures.dismiss(unread, by="another", reason="r")
    assert states() == [("dismissed", None, "operator")]
    assert not signing_stops.has_unexplained("ethereum")
    assert note(height=9) == 1
    assert states() == [("unread", 9, "")]
    assert signing_stops.has_unexplained("ethereum")
    assert not unread_departures.dismiss(unread, by="operator", reason="r"), "another block has it"

    assert read(block_height=9, block_hash="0x9")
    execute(DISMISSED)
    assert note() == 1
    assert states() == [("unread", 8, "")]


def test_a_departure_of_a_slot_begins_again_in_a_block() -> None:
    with transaction():
        assert unexplained.note(a_departure())
        execute(DISMISSED)
        assert unexplained.note(a_departure(block_height=9))
    assert states() == [("unexplained", 9, "")]


def test_a_departure_that_was_read_is_not_dismissed() -> None:
    assert unread_departures.dismiss(found_again(), by="operator", reason="r")
    assert states() == [("unexplained", None, "")]
    assert has_moved()
    assert note(height=9) == 1
    unread = the_unread()
    assert read(block_height=9, block_hash="0x9")
    assert not unread_departures.dismiss(unread, by="operator", reason="r"), "it was read meanwhile"


def test_an_order_that_an_operator_named_stays_named_in_another_block() -> None:
    parts = [Part("0xa", 1), Part("0xb", 2)]
    assert (note(), read(outputs=[part.to_json() for part in parts])) == (1, True)
    departure = unexplained.find("ethereum", "0xlost")
    assert departure is not None
    payout_id = uuid7()
    unexplained.name_payout(departure, 1, payout_id)
    execute(OUT_OF_BLOCKS)
    assert note(height=9) == 1
    shown = [part._replace(has_effect=False).to_json() for part in parts]
    assert read(block_height=9, block_hash="0x9", outputs=shown)
    [again] = unexplained.open_ones("ethereum")
    assert again.parts == (Part("0xa", 1, has_effect=False), Part("0xb", 2, has_effect=False, payout_id=payout_id))


def test_a_departure_keeps_the_claim_of_its_family() -> None:
    assert {traits.claim for traits in TRAITS.values()} == {"counter", "coins", "window"}
    with pytest.raises(psycopg2.errors.CheckViolation):
        a_departure(id=uuid7(), claim="height").write()
    assert a_departure(id=uuid7()).write() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"slot": None, "claim": "counter"},
        {"claim": "window"},
        {"claim": "coins"},
        {"slot": -1},
        {"slot": None, "claim": "window", "spends": [["0xa", 0]]},
        {"slot": None, "claim": "coins", "expires_height": 7},
        {"block_hash": None},
        {"raw": b""},
        {"outputs": []},
        {"raw": b"", "outputs": []},
        {"status": "adopted"},
        {"status": "written_off"},
        {"status": "dismissed"},
        {"status": "gone"},
    ],
)
def test_a_row_has_only_what_its_claim_and_its_state_have(wrong: dict[str, Any]) -> None:
    with pytest.raises(psycopg2.errors.CheckViolation):
        a_departure(id=uuid7(), **wrong).write()
