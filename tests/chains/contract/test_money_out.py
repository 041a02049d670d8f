"""Duties for money that leaves: each payout once, each sweep whole, and books that agree with the chain."""

from __future__ import annotations

from functools import partial
from typing import cast

import pytest

from actors.signer import follow_up
from devstack.ton import jettons
from models.db.base import rows
from tests.chains.contract.rig import PATIENCE_S, Rig, dies_at, status, stored
from tests.chains.contract.ton import TonRig
from tests.core.logs.labels import labels_in_code

# The steps of a payout that nothing disturbs, in their order.
LABELS = [
    "broadcast.judged", "spending.quoted", "spending.taken", "spending.signed", "spending.committed",
    "spending.given", "spending.noted", "broadcast.paid", "watch.told", "watch.mined", "watch.ended", "watch.ripe",
]  # fmt: skip


# Those of one that something disturbs, and where they are asked for.
STUCK = ["watch.priced", "watch.bump_signed", "watch.bumped"]
REORGED, EXPIRED, REFUSED = "watch.taken_out", "watch.buried", "broadcast.failed"


def test_every_step_of_the_signer_is_one_at_which_he_dies() -> None:
    assert {*LABELS, *STUCK, REORGED, EXPIRED, REFUSED} == labels_in_code()


def go_on(rig: Rig) -> None:
    """Let the signer and the chain go on as long as an undisturbed payout takes."""
    for _ in range(3):
        rig.sign()
        rig.advance(rig.network.confirmations)


def test_a_payout_is_paid_once_wherever_its_signer_dies(rich: Rig) -> None:
    paid = {}
    for label in LABELS:
        recipient = rich.recipient()
        order = rich.order(recipient)
        has_died = dies_at(label, partial(go_on, rich))
        rich.sign()
        rich.follow(2)
        paid[label] = (has_died, rich.units_at(recipient), status(order))

    assert paid == dict.fromkeys(LABELS, (True, rich.price, "confirmed"))


def test_bytes_with_a_lost_answer_are_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.lose_answers()
    rich.sign()
    rich.sign()
    rich.be_honest()
    rich.restart()
    rich.sign()
    rich.follow()

    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT count(*) FROM spend_attempts") == [(1,)]


@pytest.mark.needs("stall")
def test_a_stuck_payout_is_offered_more_and_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    rich.stall()
    attempts = []
    for label in STUCK:
        assert dies_at(label, rich.sign), label
        attempts += rows("SELECT count(*) FROM spend_attempts")
    assert attempts == [(1,), (1,), (2,)]
    rich.sign()
    rich.follow()
    assert rows("SELECT count(*) FROM spend_attempts") == [(2,)]

    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")


def test_a_payout_that_a_reorg_takes_out_is_sent_again_and_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    rich.follow(1)
    rich.reorg(rich.network.confirmations)
    assert rich.units_at(recipient) == 0

    rich.catch_up()
    assert dies_at(REORGED, rich.sign)
    rich.sign()
    rich.pass_time(PATIENCE_S)
    rich.sign()
    rich.follow()
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")


@pytest.mark.needs("outlive")
def test_an_expired_spend_is_signed_again_only_after_proof(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.lose_answers()
    rich.sign()
    rich.outlive()
    # From here on no block may hold it, and none is deep enough to prove that.
    rich.catch_up()
    rich.sign()
    assert rows("SELECT state FROM spends") == [("signed",)]

    rich.be_honest()
    rich.restart()
    rich.advance(rich.network.maturity + 1)
    assert dies_at(EXPIRED, rich.sign)
    rich.sign()
    rich.follow()
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT state FROM spends ORDER BY id") == [("dead",), ("confirmed",)]


@pytest.mark.needs("refuse")
def test_of_several_payouts_in_one_spend_one_fails_and_the_others_are_paid(rich: Rig) -> None:
    recipients = [rich.recipient() for _ in range(3)]
    rich.refuse(recipients[1])
    orders = [rich.order(recipient) for recipient in recipients]
    rich.sign()
    assert rows("SELECT count(*), count(DISTINCT spend_id) FROM spend_outputs") == [(3, 1)]
    rich.advance(rich.network.maturity)
    rich.sign()
    rich.follow()

    assert [rich.units_at(recipient) for recipient in recipients] == [rich.price, 0, rich.price]
    assert [status(order) for order in orders] == ["confirmed", "failed", "confirmed"]


@pytest.mark.needs("gather")
def test_a_deposit_is_swept_whole(rich: Rig) -> None:
    mine, before = rich.invoice(), rich.units_at(rich.hot)
    rich.pay(stored(mine), rich.price)
    rich.advance(rich.network.maturity)
    rich.gather()
    came = rich.units_at(rich.hot) - before

    assert rich.units_at(stored(mine)) == 0
    # Where the coin is the one that fees are paid in, they are taken from it.
    assert rich.price * 99 // 100 <= came <= rich.price
    assert rich.findings() == []


def test_the_books_agree_with_the_chains_balances(rich: Rig) -> None:
    mine, recipient = rich.invoice(), rich.recipient()
    rich.pay(stored(mine), rich.price)
    rich.advance(rich.network.maturity)
    rich.order(recipient)
    rich.sign()
    rich.follow()

    assert rich.units_at(recipient) == rich.price
    assert rich.findings() == []
    assert rich.compared() > 0


@pytest.mark.rigs("ton")
def test_a_recipient_that_is_not_reached_keeps_only_its_own_payout_open(rich: Rig) -> None:
    rig = cast("TonRig", rich)
    slow = rig.recipient()
    kept, paid = rig.order(slow), rig.order(rig.recipient())
    for peer in rig.peers:
        peer.hide(jettons.wallet(slow))
    rig.sign()
    rig.follow()
    assert (status(kept), status(paid), rows("SELECT count(*) FROM spends")) == ("sent", "confirmed", [(1,)])
    assert rig.findings() == []

    later = rig.order(rig.recipient())
    rig.sign()
    rig.follow()
    assert (status(kept), status(later)) == ("sent", "confirmed")
    assert rig.findings() == []

    rig.be_honest()
    rig.pass_time(follow_up.LOOK_UNDELIVERED_MAX_S)
    rig.follow()
    assert (status(kept), rig.units_at(slow), rig.findings()) == ("confirmed", rig.price, [])
