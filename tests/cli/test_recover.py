"""`sluice treasury recover` for a transaction that paid several, and for one that no node has shown yet."""

from __future__ import annotations

from uuid import UUID

from models.db import base
from models.db.base import rows, transaction
from models.spends import strangers
from models.spends import unknown as unknown_spends
from models.spends.unknown import Part
from tests.cli.conftest import CommandLine
from tests.models.builders import merchant
from tests.models.spends.test_signing import unknown

FIRST, SECOND = "0x" + "51" * 20, "0x" + "52" * 20
TXID = "0xab" + "0" * 62
ETHER = 10**18


def noted() -> UUID:
    """Leave a transaction that paid two, and a stranger that nobody has read; return a merchant."""
    outputs = [Part(FIRST, ETHER).tells(), Part(SECOND, 2 * ETHER).tells()]
    new = unknown(TXID, recipient="", token_units=3 * ETHER, outputs=outputs)
    with transaction():
        assert unknown_spends.note(new)
        strangers.note("ethereum", {"0xunread": ""}, height=8, block_hash="0x8")
    return merchant()


def test_each_output_is_named_and_then_it_is_a_spend(sluice: CommandLine, database: str) -> None:
    sluice.env["DATABASE_URL"] = database
    shop = noted()
    listed = sluice("treasury", "recover", "ethereum")
    assert "to several" in listed.out
    assert f"output 1: 2 to {SECOND}" in listed.out
    assert "0xunread: no node has shown yet what it moved" in listed.out

    words = ("treasury", "recover", "ethereum", "--adopt", TXID.replace("ab", "AB"), "--merchant", str(shop), "--yes")
    assert "2 are nobody's: say which" in sluice(*words, "--order-id", "one").err
    assert "has no output 2" in sluice(*words, "--order-id", "one", "--output", "2").err
    told = sluice(*words, "--order-id", "one", "--output", "1", "--json").json
    assert (told["txid"], told["outputs_left"]) == (TXID, 1)
    assert "another transfer" in sluice(*words, "--order-id", "one").err, "that order is the other output"
    base.connect(database)
    assert rows("SELECT status, address FROM payouts") == [("approved", SECOND)]
    assert rows("SELECT 1 FROM spends") == []

    assert sluice(*words, "--order-id", "two", "--json").json["outputs_left"] == 0
    found = sluice("treasury", "recover", "ethereum", "--json").json
    base.connect(database)
    paid = dict(rows("SELECT address, id::text FROM payouts"))
    assert [each["payout"] for each in found["unknown"][0]["outputs"]] == [paid[FIRST], paid[SECOND]]
    assert found["unread"] == ["0xunread"]
    assert rows("SELECT s.purpose, s.token_units, count(*) FROM spends s JOIN spend_outputs o ON o.spend_id = s.id"
                " GROUP BY 1, 2") == [("payout", 3 * ETHER, 2)]  # fmt: skip
    assert rows("SELECT DISTINCT status FROM payouts") == [("sent",)]
