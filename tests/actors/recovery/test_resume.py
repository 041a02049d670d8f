"""A database that lost its last commits pays no payout twice. On a real node, through the real actors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import structlog

from actors import context
from actors.scan import rescan
from chains.registry import reader
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows, transaction
from models.ledger import debts, ledger
from models.ledger.debts import Debtor
from models.ledger.ledger import AVAILABLE, EQUITY, GATEWAY, Account, Transfer
from models.payouts import freezes
from models.recovery import writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import signing_stops
from tests.actors.recovery.world import RecoveryWorld
from tests.models.builders import CATALOGUE, USDT, merchant

pytestmark = pytest.mark.fresh_database
PATIENCE_S = 120


def equity() -> int:
    return ledger.credited([Account(GATEWAY, EQUITY, "USDT")])


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[RecoveryWorld]:
    yield from RecoveryWorld(database, anvil).opened()


def test_orders_repeated_after_a_restore_are_paid_once(world: RecoveryWorld) -> None:
    """The copy keeps system identifier and timeline: only the chain's counts reveal it."""
    first, second, third = world.recipient(), world.recipient(), world.recipient()
    world.pay_out("one", first)
    backup = world.copy()
    for number, to in enumerate((second, third), 2):
        assert world.pay_out(f"order {number}", to).status == "confirmed"

    world.restore(backup)
    again = [world.order("order 3", third), world.order("order 2", second)]
    world.sign(2)
    assert {world.reread(each).status for each in again} == {"approved"}
    assert "next slot" in world.stopped()
    assert ["signing is stopped" in reason for (reason,) in rows("SELECT wait_reason FROM payouts")][1:] == [True, True]
    world.catch_up()
    world.sign(3)
    world.settle_payouts()
    assert {world.reread(each).status for each in again} == {"confirmed"}
    assert [world.arrived(to) for to in (first, second, third)] == [10, 10, 10]
    assert (world.stopped(), world.frozen_by()) == ("", [])

    new = world.pay_out("order 4", first, "5")
    assert (new.status, world.arrived(first)) == ("confirmed", 15)
    world.assert_agreed(3)


def test_nothing_is_signed_on_another_timeline_until_the_scan_has_caught_up(world: RecoveryWorld) -> None:
    """A lagging standby was promoted. It lacked nothing, so that signing continues by itself."""
    to = world.recipient()
    order = world.order("one", to)
    world.another_timeline()
    with structlog.testing.capture_logs() as logs:
        world.sign(2)
    assert (world.reread(order).status, world.count("spends")) == ("approved", 0)
    assert [entry["log_level"] for entry in logs if entry["event"] == "signing.stopped"] == ["critical"]
    assert (world.stopped(), world.frozen_by()) == (signing_stops.ANOTHER_DATABASE, ["recovery"])
    assert rows("SELECT wait_reason FROM payouts") == [(signing_stops.waiting_reason(signing_stops.ANOTHER_DATABASE),)]

    world.poll()
    world.sign(2)
    world.settle_payouts()
    assert (world.reread(order).status, world.arrived(to), world.stopped()) == ("confirmed", 10, "")
    assert world.frozen_by() == []


def test_each_network_resumes_on_its_own(world: RecoveryWorld) -> None:
    assert signing_stops.watch("bsc") is None
    world.another_timeline()
    assert signing_stops.watch("bsc") is not None
    world.poll()
    world.sign()
    assert (world.stopped(), [stop.network for stop in signing_stops.listing()]) == ("", ["bsc"])


def test_a_departure_that_no_order_matches_keeps_the_network_frozen_until_an_operator_names_one(
    world: RecoveryWorld,
) -> None:
    to, other = world.recipient(), world.recipient()
    backup = world.copy()
    lost = world.pay_out("lost", to)
    world.restore(backup)
    waiting = world.order("other", other)
    world.another_timeline()
    world.catch_up()
    world.sign(3)
    assert world.unexplained("status", "txid") == [("unexplained", lost.txid)]
    assert (world.reread(waiting).status, world.frozen_by()) == ("approved", ["recovery"])
    freezes.unfreeze("network", world.network.code)
    assert world.frozen_by() == ["recovery"], "lifting all freezes does not lift this one"

    before = world.available()
    booked, left = writeoffs.pay_order(
        CATALOGUE, world.network.code, lost.txid, merchant_id=world.shop, order_id="lost", by="operator"
    )
    assert (booked.status, left, before - world.available()) == ("sent", 0, 10 * USDT)
    world.sign(2)
    again = world.order("lost", to)
    assert (again.id, again.status, again.txid) == (booked.id, "confirmed", lost.txid)
    world.sign(2)
    world.settle_payouts()
    assert (world.reread(waiting).status, world.arrived(to), world.arrived(other)) == ("confirmed", 10, 10)
    assert (world.stopped(), world.frozen_by()) == ("", [])
    world.assert_agreed(3)


def test_an_order_that_the_merchant_can_no_longer_pay_becomes_a_debt(world: RecoveryWorld) -> None:
    to, poor = world.recipient(), merchant()
    backup = world.copy()
    lost = world.pay_out("lost", to)
    world.restore(backup)
    world.another_timeline()
    world.catch_up()
    world.sign()
    writeoffs.pay_order(CATALOGUE, world.network.code, lost.txid, merchant_id=poor, order_id="lost", by="operator")
    world.sign(3)
    assert (world.stopped(), ledger.debt(poor, "USDT")) == ("", 10 * USDT)
    assert debts.due(9) == [Debtor(poor, "USDT")], "the debtor is noted, so that the debt is repaid"


def test_an_order_that_the_merchant_can_pay_in_part_leaves_a_debt_of_the_rest(world: RecoveryWorld) -> None:
    """Its later income repays the debt, whichever process looks."""
    to, poor = world.recipient(), merchant()
    with transaction():
        equity, mine = Account(GATEWAY, EQUITY, "USDT"), Account(poor, AVAILABLE, "USDT")
        ledger.post("test:poor", [Transfer(equity, mine, 4 * USDT)])
    backup = world.copy()
    lost = [world.pay_out(name, to) for name in ("lost", "paid")]
    world.restore(backup)
    world.another_timeline()
    world.catch_up()
    world.sign()
    for shop, gone in zip((poor, world.shop), lost, strict=True):
        writeoffs.pay_order(CATALOGUE, "ethereum", gone.txid, merchant_id=shop, order_id=gone.order_id, by="operator")
    assert (ledger.debt(poor, "USDT"), debts.due(9)) == (6 * USDT, [Debtor(poor, "USDT")])


def test_a_departure_that_cannot_be_the_orders_payout_is_refused(world: RecoveryWorld) -> None:
    to = world.recipient()
    backup = world.copy()
    lost = world.pay_out("lost", to)
    world.restore(backup)
    world.another_timeline()
    world.order("another", world.recipient())
    world.catch_up()
    world.sign()
    wrong = {"another": "another transfer", "payoutlink:1": "no such cheque", "refund:1": "made again"}
    for order_id, words in wrong.items():
        with pytest.raises(RecoveryError, match=words):
            writeoffs.pay_order(
                CATALOGUE, world.network.code, lost.txid, merchant_id=world.shop, order_id=order_id, by="operator"
            )
    with pytest.raises(RecoveryError, match="not among"):
        writeoffs.pay_order(
            CATALOGUE, world.network.code, "0x" + "1" * 64, merchant_id=world.shop, order_id="one", by="operator"
        )
    assert world.unexplained() == [("unexplained",)]
    # The world has to be sound at the end.
    world.order("lost", to)
    world.sign()
    assert world.unexplained() == [("adopted",)]


def test_a_loss_is_written_off_against_equity(world: RecoveryWorld) -> None:
    backup = world.copy()
    lost = world.pay_out("lost", world.recipient())
    world.restore(backup)
    world.catch_up()
    world.sign(2)
    assert world.unexplained("status", "txid") == [("unexplained", lost.txid)]
    with pytest.raises(RecoveryError, match="more than that"):
        writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 9 * USDT, reason="too little", by="operator")
    before = equity()
    done, txids = writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="nobody's", by="operator")
    assert (txids, done.unexplained_units) == ([lost.txid], 0)
    world.sign(3)
    assert before - equity() == 10 * USDT
    assert world.unexplained("status", "settled_by", "reason") == [("written_off", "operator", "nobody's")]
    assert (world.stopped(), world.frozen_by()) == ("", [])
    assert rows("SELECT currency, units, reason, written_by FROM treasury_writeoffs") == [
        ("USDT", 10 * USDT, "nobody's", "operator")
    ]
    world.assert_agreed(3)


def test_a_missing_sum_without_a_transaction_is_written_off_too(world: RecoveryWorld) -> None:
    world.reconcile()
    world.drain(world.hot, 7 * 10**6)
    world.reconcile(3)
    assert [row[0] for row in world.findings()] == ["ETH", "USDT"]
    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 7 * USDT, reason="drained", by="operator")
    writeoffs.write_off(CATALOGUE, "ethereum", "ETH", world.gas_missing(), reason="its gas", by="operator")
    world.advance()
    world.assert_agreed(2)


def test_a_forgotten_higher_offer_becomes_an_attempt_of_its_spend(world: RecoveryWorld) -> None:
    """Our own key used the slot: the departure is ours, lost and found, and no payout is repeated."""
    to = world.recipient()
    order = world.order("one", to)
    world.sign()
    backup = world.copy()
    world.pass_time(PATIENCE_S)
    execute("UPDATE rates SET quoted_at = app_now()")
    world.sign()
    assert rows("SELECT attempts FROM spends") == [(2,)]
    bumped = rows("SELECT txid FROM spend_attempts WHERE number = 1")[0][0]
    world.mine()

    world.restore(backup)
    world.advance(world.network.maturity)
    world.sign(4)
    assert (world.reread(order).status, world.reread(order).txid) == ("confirmed", bumped)
    assert (world.arrived(to), world.count("spends"), world.stopped()) == (10, 1, "")


def test_a_slot_that_no_scan_has_shown_repeats_no_payout(world: RecoveryWorld) -> None:
    to = world.recipient()
    order = world.order("one", to)
    world.sign()
    backup = world.copy()
    world.pass_time(PATIENCE_S)
    world.sign()
    world.mine()
    world.restore(backup)
    world.advance(world.network.maturity)
    execute("DELETE FROM unexplained_departures")
    world.sign(4)
    assert (world.reread(order).status, world.arrived(to), world.count("spends")) == ("sent", 10, 1)
    assert world.frozen_by() == ["recovery"]

    for height in range(world.node.height() - world.network.maturity - 2, world.node.height()):
        rescan.reread(context.context(), world.network, reader(world.network, context.context().settings), height)
    world.sign(3)
    assert (world.reread(order).status, world.arrived(to), world.count("spends")) == ("confirmed", 10, 1)


def test_an_unknown_transaction_in_a_pool_stops_the_signing(world: RecoveryWorld) -> None:
    first, second = world.recipient(), world.recipient()
    backup = world.copy()
    world.order("one", first)
    world.order("two", second)
    world.sign()
    world.restore(backup)
    orders = [world.order("two", second), world.order("one", first)]
    world.sign(2)
    assert "next slot" in world.stopped()
    assert world.count("spends") == 0
    world.poll()
    world.sign()
    assert world.stopped() != "", "the payouts still wait"
    world.settle_payouts()
    world.settle_payouts()
    assert [world.reread(order).status for order in orders] == ["confirmed", "confirmed"]
    assert [world.arrived(to) for to in (first, second)] == [10, 10]
    assert world.stopped() == ""


def test_an_unexplained_departure_that_a_reorg_took_stays_known(world: RecoveryWorld) -> None:
    to = world.recipient()
    backup = world.copy()
    world.order("lost", to)
    world.sign()
    raw = "0x" + bytes(rows("SELECT raw FROM spend_attempts")[0][0]).hex()
    world.mine()
    world.restore(backup)
    world.catch_up()
    assert world.unexplained("status", "block_height IS NULL") == [("unexplained", False)]
    world.reorg(1)
    world.advance()
    assert world.unexplained("status", "block_height IS NULL") == [("unexplained", True)]
    world.node.ask("eth_sendRawTransaction", raw)
    world.advance()
    assert world.unexplained("status", "block_height IS NULL") == [("unexplained", False)]
    world.order("lost", to)
    world.sign()
    world.settle_payouts()
    assert (world.arrived(to), world.unexplained(), world.stopped()) == (10, [("adopted",)], "")


def test_a_departure_that_a_reorg_took_for_good_is_written_off_and_sent_again(world: RecoveryWorld) -> None:
    """Otherwise its slot stays unused, and its network stopped."""
    to, other = world.recipient(), world.recipient()
    backup = world.copy()
    world.order("lost", to)
    world.sign()
    world.mine()
    world.restore(backup)
    world.catch_up()
    world.reorg(1)
    world.advance()
    world.sign(2)
    assert (world.unexplained("status", "block_height"), world.stopped() != "") == ([("unexplained", None)], True)

    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="a test", by="operator")
    order = world.order("new", other)
    world.sign(3)
    world.settle_payouts()
    world.settle_payouts()
    assert (world.stopped(), world.arrived(to), world.arrived(other)) == ("", 10, 10)
    assert world.reread(order).status == "confirmed"
    world.bury()
    world.sign()
    world.assert_agreed(3)


def test_two_equal_departures_are_adopted_once_each(world: RecoveryWorld) -> None:
    to = world.recipient()
    backup = world.copy()
    world.pay_out("one", to)
    world.pay_out("two", to)
    world.restore(backup)
    orders = [world.order(order_id, to) for order_id in ("one", "two", "three")]
    world.another_timeline()
    world.catch_up()
    world.sign(2)
    assert [world.reread(each).status for each in orders][:2] == ["confirmed"] * 2
    world.settle_payouts()
    assert [world.reread(each).status for each in orders] == ["confirmed"] * 3
    assert world.arrived(to) == 30


def test_an_order_takes_over_a_loss_before_it_is_written_off(world: RecoveryWorld) -> None:
    backup = world.copy()
    lost = world.pay_out("lost", to := world.recipient())
    world.restore(backup)
    world.mine()
    world.poll()
    world.catch_up()
    world.sign(2)
    before = equity()
    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="nobody's", by="operator")
    execute("UPDATE spends SET signed_height = (SELECT height FROM chain_cursors) WHERE purpose = 'lost'")
    world.watch()
    assert world.spends("purpose", "state")[-1] == ("lost", "mined")
    order = world.order("lost", to)
    booked, left = writeoffs.pay_order(
        CATALOGUE, "ethereum", lost.txid, merchant_id=world.shop, order_id="lost", by="operator"
    )
    assert (booked.id, booked.status, booked.txid, left) == (order.id, "sent", lost.txid, 0)
    world.bury()
    world.sign()
    assert (world.reread(order).status, world.arrived(to), before - equity()) == ("confirmed", 10, 0)
    world.assert_agreed(3)
