"""`sluice treasury recover` for a transaction that paid several, and `dismiss` for one that no node can show."""

from __future__ import annotations

import io
from uuid import UUID

import pytest

from core.ids import uuid7
from models.db import base
from models.db.base import execute, rows, transaction
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import signing_stops, unexplained, unread_departures
from models.spends.unexplained import Part
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.models.builders import CATALOGUE, merchant
from tests.models.payout_links.builders import new_link
from tests.models.payouts.builders import fund
from tests.models.spends.departures import DISMISSED, a_departure

FIRST, SECOND = "0x" + "51" * 20, "0x" + "52" * 20
TXID = "0xab" + "0" * 62
ETHER = 10**18


def noted() -> UUID:
    """Record a departure with two recipients, and a second one whose contents are unread; return a merchant."""
    outputs = [Part(FIRST, ETHER).to_json(), Part(SECOND, 2 * ETHER).to_json()]
    new = a_departure(TXID, outputs=outputs)
    with transaction():
        assert unexplained.note(new)
        unread_departures.note("ethereum", "coins", {"0xunread": ""}, height=8, block_hash="0x8")
    return merchant()


def test_open_departures_are_shown_first(sluice: CommandLine, database: str) -> None:
    sluice.env["DATABASE_URL"] = database
    noted()
    with transaction():
        assert unexplained.note(a_departure("0xended", slot=4))
    execute(f"{DISMISSED} WHERE txid = '0xended'")

    lines = sluice("treasury", "recover", "ethereum").out.splitlines()
    assert [line.split()[0:2] for line in lines if not line.startswith("    ")][-5:] == [
        ["open:", "2"], ["unexplained", f"{TXID}:"], ["0xunread:", "no"], ["ended:", "1"], ["dismissed", "0xended:"],
    ]  # fmt: skip
    document = sluice("treasury", "recover", "ethereum", "--json").json
    assert (document["open"], [each["status"] for each in document["departures"]]) == (2, ["unexplained", "dismissed"])
    base.connect(database)
    assert [each.txid for each in unexplained.listing("ethereum", limit=1)] == [TXID], "no ended one hides it"


def test_each_output_is_named_and_then_it_is_a_spend(sluice: CommandLine, database: str) -> None:
    sluice.env["DATABASE_URL"] = database
    shop = noted()
    listed = sluice("treasury", "recover", "ethereum")
    assert "to several" in listed.out
    assert f"output 1: 2 to {SECOND}" in listed.out
    assert "0xunread: no node has shown yet what it moved" in listed.out

    words = ("treasury", "recover", "ethereum", "--adopt", TXID.replace("ab", "AB"), "--merchant", str(shop), "--yes")
    assert "2 have no order: say which" in sluice(*words, "--order-id", "one").err
    assert "has no output 2" in sluice(*words, "--order-id", "one", "--output", "2").err
    body = sluice(*words, "--order-id", "one", "--output", "1", "--json").json
    assert (body["txid"], body["outputs_left"]) == (TXID, 1)
    assert "another transfer" in sluice(*words, "--order-id", "one").err, "that order is the other output"
    base.connect(database)
    assert rows("SELECT status, address FROM payouts") == [("approved", SECOND)]
    assert rows("SELECT 1 FROM spends") == []

    assert sluice(*words, "--order-id", "two", "--json").json["outputs_left"] == 0
    answer = sluice("treasury", "recover", "ethereum", "--json").json
    base.connect(database)
    paid = dict(rows("SELECT address, id::text FROM payouts"))
    assert [each["payout"] for each in answer["departures"][0]["outputs"]] == [paid[FIRST], paid[SECOND]]
    assert answer["unread"] == ["0xunread"]
    assert rows("SELECT s.purpose, s.token_units, count(*) FROM spends s JOIN spend_outputs o ON o.spend_id = s.id"
                " GROUP BY 1, 2") == [("payout", 3 * ETHER, 2)]  # fmt: skip
    assert rows("SELECT DISTINCT status FROM payouts") == [("sent",)]


def test_what_no_node_can_show_is_taken_back_by_its_operator(sluice: CommandLine, database: str) -> None:
    sluice.env["DATABASE_URL"] = database
    with transaction():
        unread_departures.note("tron", "window", {"c0de": ""}, height=8, block_hash="0x8")
    assert signing_stops.has_unexplained("tron")
    words = ("treasury", "dismiss", "tron")
    assert "printable" in sluice(*words, "c0de", "--reason", " ", "--yes").err
    assert "no network" in sluice("treasury", "dismiss", "moon", "c0de", "--reason", "r", "--yes").err
    assert "not among" in sluice(*words, "c0df", "--reason", "r", "--yes").err
    assert "not among" in sluice("treasury", "dismiss", "bitcoin", "c0de", "--reason", "r", "--yes").err
    base.connect(database)
    assert signing_stops.has_unexplained("tron")

    assert sluice(*words, "C0DE", "--reason", "no explorer has it", "--yes", "--json").json == {
        "network": "tron", "txid": "c0de",
    }  # fmt: skip
    assert sluice("treasury", "recover", "tron", "--json").json["unread"] == []
    base.connect(database)
    assert not signing_stops.has_unexplained("tron")
    assert rows("SELECT status, block_height, reason FROM unexplained_departures") == [
        ("dismissed", None, "no explorer has it")
    ]
    assert acted() == [("departure.dismissed", "tron c0de")]

    with transaction():
        assert unread_departures.note("tron", "window", {"c0de": ""}, height=9, block_hash="0x9") == 1
    assert signing_stops.has_unexplained("tron"), "it stands in a block after all"


def test_what_a_node_has_shown_is_not_taken_back(
    sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sluice.env["DATABASE_URL"] = database
    noted()

    assert "not among" in sluice("treasury", "dismiss", "ethereum", TXID, "--reason", "r", "--yes").err
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert sluice("treasury", "dismiss", "ethereum", "0xunread", "--reason", "r").code == 1, "nobody said yes"
    base.connect(database)
    assert rows("SELECT count(*) FROM unexplained_departures WHERE block_height IS NULL") == [(0,)]


def test_what_an_open_order_may_have_asked_for_is_settled_by_its_name_alone(sluice: CommandLine, database: str) -> None:
    """Its repeat at another fee would be signed, after a loss was booked or another order was paid."""
    sluice.env["DATABASE_URL"] = database
    shop = merchant()
    fund(shop, 3 * ETHER, currency="ETH")
    new = a_departure(TXID, outputs=[Part(FIRST, ETHER, memo="7").to_json()])
    link = new_link(shop, currency="ETH", amount_units=ETHER)
    with transaction():
        unexplained.note(new)
        link.write()
        repeat = payouts.insert(CATALOGUE, order(shop))
    loss = ("treasury", "writeoff", "ethereum", "ETH", "1", "--reason", "nobody's", "--yes")
    other = ("treasury", "recover", "ethereum", "--adopt", TXID, "--merchant", str(shop), "--order-id", "new", "--yes")
    for words in (loss, other):
        refused = sluice(*words)
        assert refused.code == 1
        assert f"payoutlink:{link.id}" in refused.err
        assert f"{repeat.id} (order repeat of {shop})" in refused.err
    assert f"to {FIRST} with memo '7' from" in sluice("treasury", "recover", "ethereum").out

    named = sluice(*other, "--despite", str(repeat.id), "--json").json
    base.connect(database)
    assert rows("SELECT id::text, status, to_units FROM payouts WHERE order_id = 'new'") == [
        (named["payout"], "sent", ETHER)
    ]
    assert rows("SELECT memo FROM spend_outputs") == [("7",)]


def order(shop: UUID) -> PayoutRow:
    return PayoutRow(
        id=uuid7(), merchant_id=shop, order_id="repeat", kind="payout", currency="ETH", network="ethereum",
        address=FIRST, memo="7", amount_units=2 * ETHER, fee_units=ETHER // 10, to_units=2 * ETHER - ETHER // 10,
        is_fee_on_top=False, status="pending", created_by="test",
    )  # fmt: skip
