"""Transfers that only look like payments credit nothing; providers' lies and failures change nothing for long."""

from __future__ import annotations

from typing import Any

import pytest

from chains.net.node import Node
from models.db.base import execute
from models.spends import freshness
from tests.chains.contract.conftest import Start
from tests.chains.contract.rig import Rig, stored

# The lies of one provider of three, and failures of all at once.
LIES = ["hidden", "cut", "invented", "altered", "stuck"]
FAILURES = ["silent", "429", "garbage", "wrong chain"]


def test_each_fake_deposit_credits_its_true_sum(rig: Rig) -> None:
    fakes = rig.fakes()
    invoices = {name: rig.invoice() for name in fakes}
    # One block each, so that none hides behind another.
    for name, fake in fakes.items():
        fake.send(stored(invoices[name]))
        rig.mine()
    rig.bury()
    rig.reread()

    credited = {name: rig.credited(invoice) for name, invoice in invoices.items()}
    assert credited == {name: fake.units for name, fake in fakes.items()}
    assert "paid" not in {rig.status(invoice) for invoice in invoices.values()}


@pytest.mark.parametrize("lie", LIES)
def test_one_liar_of_three_neither_takes_a_payment_nor_makes_one(start: Start, lie: str) -> None:
    rig = start(3, QUORUM_USD="0")
    mine, invented = rig.invoice(), rig.invoice()
    tell = rig.lies()[lie]
    tell(0, stored(invented if lie == "invented" else mine))
    rig.restart()
    rig.pay(stored(mine), rig.price)
    for _ in range(3):
        rig.mine(rig.network.confirmations)
        rig.poll(3)
        rig.witness()
    assert rig.credited(invented) == 0
    assert rig.credited(mine) in {0, rig.price}

    rig.be_honest()
    rig.restart()
    rig.advance()
    rig.reread()
    rig.witness()
    rig.poll()

    assert (rig.credited(mine), rig.credited(invented)) == (rig.price, 0)
    assert rig.status(mine) == "paid"


@pytest.mark.rigs("ethereum", "tron")
@pytest.mark.parametrize("ahead", [5, 1_000])
def test_a_head_that_no_provider_can_show_holds_up_neither_the_scan_nor_the_signing(
    start: Start, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    rig = start(2)
    honest = Node.ask_head

    def ask_head(node: Node[Any], tolerance: int) -> int:
        head = honest(node, tolerance)
        node.head = head if node.number else rig.tip() + ahead
        return node.head

    monkeypatch.setattr(Node, "ask_head", ask_head)
    rig.lies()["stuck"](0, "")
    rig.restart()
    execute("UPDATE chain_cursors SET head_reached_at = NULL")
    rig.mine(2)
    rig.poll(3)
    assert rig.scanned() == rig.tip()
    assert freshness.obstacle(rig.code) == ""


@pytest.mark.parametrize("failure", FAILURES)
def test_without_answers_nothing_moves_and_afterwards_nothing_is_lost(start: Start, failure: str) -> None:
    rig = start(2, QUORUM_USD="0")
    mine, before = rig.invoice(), rig.scanned()
    for number in range(2):
        rig.lies()[failure](number, stored(mine))
    rig.restart()
    rig.pay(stored(mine), rig.price)
    rig.mine(rig.network.confirmations)
    rig.poll(3)
    rig.witness()
    assert (rig.scanned(), rig.credited(mine)) == (before, 0)

    rig.be_honest()
    rig.restart()
    rig.catch_up()
    rig.witness()

    assert rig.credited(mine) == rig.price
