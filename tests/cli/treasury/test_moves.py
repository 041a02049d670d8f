"""`sluice treasury move`, as an operator types it."""

from __future__ import annotations

import io

import pytest

from models.db import base, scales
from models.db.base import execute
from models.invariants.deposits import check
from models.treasury import addresses, topups
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.payouts.held import funded, payout
from tests.models.spends import by_hand
from tests.models.treasury.builders import COLD, hold, pin_hot, spend, topup

TXID = "0x" + "ab" * 32
MOVE = ("treasury", "move", "USDT", "4", "--from", "ethereum", "--to", "bsc", "--txid", TXID.replace("ab", "AB"))


@pytest.fixture(autouse=True)
def _gateway(sluice: CommandLine, database: str, chain: Chain) -> None:
    """Let 10 of 100 USDT lie in the cold address, 4 in the hot wallet, and a payout of 10 wait."""
    sluice.env["DATABASE_URL"] = database
    sluice.env["ETHEREUM_RPC_URLS"] = "http://127.0.0.1:1"
    scales.keep(CATALOGUE.ledger_scales())
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    order = payout(funded(100 * USDT))
    execute("UPDATE payouts SET status = 'approved' WHERE id = %s", (order.id,))
    hold("USDT", "ethereum", 4 * USDT, height=chain.height)
    here = (chain.height, chain._hash())
    spend_id = spend(purpose="cold", recipient=COLD, currency="USDT", token_units=10_000_000, mined=here, decimals=6)
    by_hand.change("state = 'confirmed'", "id = %s", (spend_id,))


def test_a_move_is_booked_once(sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    first = sluice(*MOVE)
    again = sluice(*MOVE, "--yes", "--json")

    assert (first.code, first.out.strip()) == (0, "4 USDT left ethereum for bsc")
    assert (again.code, again.json["is_new"]) == (0, False)
    assert "booked before" in sluice(*MOVE, "--yes").out
    base.connect(database)
    assert base.rows("SELECT units, txid FROM treasury_moves") == [(4 * USDT, TXID)]
    assert acted() == [("move.booked", f"USDT ethereum {TXID}")]
    # The payout of this story was approved by its maker.
    assert [violation.name for violation in check()] == ["approvers_are_others"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"4": "11"}, "holds less USDT than that"),
        ({"4": "0"}, "nothing was carried"),
        ({"4": "x"}, "not an amount"),
        ({"USDT": "BTC"}, "there is no BTC on ethereum"),
        ({"bsc": "ethereum"}, "within a network"),
        ({"bsc": "nowhere"}, "no network 'nowhere'"),
        ({"bsc": "bitcoin"}, "there is no USDT on bitcoin"),
        ({MOVE[-1]: "0x; DROP"}, "--txid is a transaction's hash"),
    ],
)
def test_an_impossible_move_is_refused(sluice: CommandLine, change: dict[str, str], error: str) -> None:
    outcome = sluice(*(change.get(word, word) for word in MOVE), "--yes")
    assert outcome.code == 1
    assert error in outcome.err


def test_no_confirmation_books_nothing(sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert sluice(*MOVE).code == 1
    base.connect(database)
    assert base.rows("SELECT 1 FROM treasury_moves") == []


def test_a_returned_topup_is_booked_once(
    sluice: CommandLine, database: str, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.connect(database)
    back = topup(chain, 4 * USDT, currency="USDT")
    assert "no top-up that is booked" in sluice("treasury", "returned", "ethereum", back.txid, "--yes").err
    base.connect(database)
    chain.mature()
    topups.book_matured(chain.network, limit=9)
    execute("UPDATE treasury_topups SET ordinal = '7'")
    assert "no top-up" in sluice("treasury", "returned", "ethereum", back.txid, "--output", "1", "--yes").err
    assert "TXID is a transaction's hash" in sluice("treasury", "returned", "ethereum", "0x; DROP", "--yes").err
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    first = sluice("treasury", "returned", "ethereum", back.txid)

    assert (first.code, first.out.strip()) == (0, "4 of 4 USDT came back from the cold address")
    assert sluice("treasury", "returned", "ethereum", back.txid, "--yes").code == 1
    base.connect(database)
    assert base.rows("SELECT origin, known_units FROM treasury_topups") == [("cold", 4 * USDT)]
    assert acted() == [("return.booked", f"ethereum {back.txid}")]
