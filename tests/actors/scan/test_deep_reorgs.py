"""After reorgs deeper than a spend is watched, no slot stays empty and no returned payout is paid unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from actors.signer import sign
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows, transaction
from models.ledger import debts
from models.ledger.ledger import AVAILABLE, EQUITY, GAS, GATEWAY, Account, Transfer, balance, post
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import reads as spend_reads
from models.spends import tracking as spend_tracking
from models.spends.tracking import WATCHED_ON_BLOCKS
from tests.actors.signer.test_failed_fees import BURNER, burns_since
from tests.actors.signer.test_failed_fees import order as order_coin
from tests.actors.signer.world import ETHER, RICH_WEI, SpendWorld
from tests.actors.treasury.world import TreasuryWorld
from tests.models.builders import USDT
from tests.models.ledger.figures import net_of, owes
from tests.peers.paper_chain import transfer

PATIENCE_S = 61
LATER = "0x" + "1a" * 20


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch)
    made.mine(3)
    yield made
    made.close()


def failed(world: SpendWorld) -> PayoutRow:
    """Return a payout that had no effect and was returned, its spend settled."""
    order = world.order()
    world.chain.reverting.add(order.address)
    world.step()
    world.advance()
    world.mature()
    assert rows("SELECT state, settled_at IS NULL FROM spends") == [("failed", False)]
    world.chain.reverting.clear()
    return order


def settle(world: SpendWorld) -> None:
    """Confirm everything that was sent, too deep to be watched."""
    world.confirm_sent()
    world.settle()
    assert rows("SELECT DISTINCT state, settled_at IS NULL FROM spends") == [("confirmed", False)]


def undo(world: SpendWorld, *, is_lost: bool = True, mined: int = 0) -> None:
    """Replace every block since the first payout by as many empty ones."""
    depth = len(world.chain.blocks) - 4
    assert depth >= world.network.maturity
    world.reorg(depth, is_lost=is_lost)
    pool, world.chain.pool = world.chain.pool, []
    world.mine(max(depth, mined))
    world.chain.pool = pool


def follow(world: SpendWorld, times: int = 1) -> None:
    for _ in range(times):
        world.pass_time(PATIENCE_S)
        world.due_now()
        world.step()
        world.advance()


def waits(world: SpendWorld) -> list[tuple[Any, ...]]:
    del world
    return rows("SELECT slot, state FROM spends WHERE mined_txid IS NULL ORDER BY slot")


def critical(logs: list[Any]) -> list[str]:
    return [log["event"] for log in logs if log["log_level"] == "critical"]


# Failed -------------------------------------------------------------------------------------------------------------


def test_the_slot_of_a_failed_payout_that_left_the_chain_is_used_without_paying_it(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)
    undo(world)
    later = world.order()

    follow(world, 3)

    assert waits(world) == []
    assert (world.paid(order), world.paid(later)) == (0, 1)
    world.settle()
    assert (world.payout(order).status, world.payout(later).status) == ("failed", "confirmed")
    assert (world.available(order), owes(order.merchant_id)) == (before, 0)
    assert rows("SELECT state, effect, settled_at IS NULL FROM spends WHERE slot = 0") == [("failed", "none", False)]
    assert net_of(Account(GATEWAY, GAS, "ETH")) == world.chain.funds[world.hot, None] - RICH_WEI


def test_an_empty_slot_is_used_even_without_a_spend_behind_it(world: SpendWorld) -> None:
    failed(world)
    undo(world)
    follow(world, 2)
    assert (waits(world), world.chain.used(world.hot)) == ([], 1)


def test_a_failed_payouts_bytes_that_wait_again_are_outbid(world: SpendWorld) -> None:
    order = failed(world)
    undo(world, is_lost=False)
    world.step(2)
    world.advance()
    assert (waits(world), world.paid(order), world.chain.used(world.hot)) == ([], 0, 1)


def test_a_failed_payouts_bytes_are_never_sent_again(world: SpendWorld) -> None:
    failed(world)
    [(raw,)] = rows("SELECT raw FROM spend_attempts")
    given = world.chain.sent.count(bytes(raw))
    undo(world)
    # Nodes refuse the higher offer, or do not answer.
    world.chain.sendings = ["deaf"] * 4
    follow(world, 2)
    assert world.chain.sent.count(bytes(raw)) == given
    assert len(world.chain.sent) > given + 1


def test_a_stuck_filler_of_a_slot_is_bumped(world: SpendWorld) -> None:
    failed(world)
    undo(world)
    world.chain.price = 50
    follow(world, 3)
    assert (waits(world), world.chain.used(world.hot)) == ([], 1)
    assert rows("SELECT number, is_void FROM spend_attempts ORDER BY number")[:3] == [(0, False), (1, True), (2, True)]


def test_a_failed_payout_of_coin_is_not_paid_by_the_filler_of_its_slot(world: SpendWorld) -> None:
    """The filler succeeded, which is not the payout's success."""
    order = world.order(world.shop(currency="ETH"), currency="ETH", units=USDT, fee_units=10**15)
    world.chain.reverting.add(order.address)
    world.step()
    world.advance()
    world.mature()
    before = world.available(order)
    undo(world)
    follow(world)
    world.settle()
    assert (world.available(order), owes(order.merchant_id, "ETH"), world.paid(order)) == (before, 0, 0)
    assert rows("SELECT state, is_success, settled_at IS NULL FROM spends") == [("failed", False, False)]


def test_a_failed_payout_in_another_block_without_effect_changes_nothing(world: SpendWorld) -> None:
    order = failed(world)
    world.chain.reverting.add(order.address)
    before = world.available(order)
    depth = len(world.chain.blocks) - 4
    world.reorg(depth)
    world.mine(depth)
    world.step(2)
    world.settle()
    assert (world.available(order), owes(order.merchant_id)) == (before, 0)
    assert rows("SELECT state, attempts, settled_at IS NULL FROM spends") == [("failed", 1, False)]


# Failed, and paid later --------------------------------------------------------------------------------------------


def paid_after_all(world: SpendWorld, order: PayoutRow, *, mined: int = 0) -> list[str]:
    """Include a failed payout's bytes with effect after a reorg; return the events of it."""
    depth = len(world.chain.blocks) - 4
    world.reorg(depth)
    with structlog.testing.capture_logs() as logs:
        world.mine(max(depth, mined))
        world.step()
        world.confirm()
    assert world.paid(order) == 1
    return critical(logs)


def test_a_failed_payout_that_is_paid_later_is_charged_to_its_merchant(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)

    logged = paid_after_all(world, order)

    assert "spend.failed_took_effect" in logged
    assert (world.available(order), owes(order.merchant_id)) == (before - 10 * USDT, 0)
    assert world.payout(order).status == "failed"
    world.settle()
    world.step(3)
    assert world.available(order) == before - 10 * USDT
    assert world.count("spends") == 1


def test_the_charge_becomes_a_debt_if_the_merchant_spent_the_money(world: SpendWorld) -> None:
    order = failed(world)
    shop = order.merchant_id
    spent = world.available(order) - 3 * USDT
    with transaction():
        post("test:spent", [Transfer(Account(shop, AVAILABLE, "USDT"), Account(GATEWAY, EQUITY, "USDT"), spent)])

    paid_after_all(world, order)

    assert (world.available(order), owes(shop), debts.due(9)) == (0, 7 * USDT, [(shop, "USDT")])


def test_the_charge_is_returned_if_the_payout_leaves_the_chain_again(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)
    paid_after_all(world, order)
    world.settle()

    undo(world)
    follow(world)
    world.settle()

    assert (world.paid(order), waits(world)) == (0, [])
    assert (world.available(order), owes(order.merchant_id)) == (before, 0)


def test_concurrent_steps_charge_once(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)
    paid_after_all(world, order)
    execute("UPDATE spends SET settled_at = NULL, check_at = app_now()")
    world.step(3)
    assert world.available(order) == before - 10 * USDT


def test_a_charge_needs_the_depth_of_any_transfer(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)
    undo(world, is_lost=False)
    world.advance()
    assert (world.paid(order), world.available(order)) == (1, before)
    world.confirm()
    assert world.available(order) == before - 10 * USDT


def test_a_payout_that_fails_again_is_watched_until_no_reorg_can_reach_it(world: SpendWorld) -> None:
    order = failed(world)
    undo(world, is_lost=False)
    world.chain.reverting.add(order.address)
    world.confirm_sent()
    world.due_now()
    world.step()
    assert rows("SELECT state, settled_at IS NULL FROM spends") == [("failed", True)]
    world.mature()
    assert rows("SELECT state, settled_at IS NULL FROM spends") == [("failed", False)]


# Confirmed ----------------------------------------------------------------------------------------------------------


def test_a_paid_payout_that_left_the_chain_late_is_sent_again_and_stays_paid(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    settle(world)
    undo(world)
    later = world.order()

    follow(world, 3)

    assert (waits(world), world.paid(order), world.paid(later)) == ([], 1, 1)
    world.settle()
    world.step()
    assert (world.payout(order).status, world.payout(later).status) == ("confirmed", "confirmed")
    assert rows("SELECT count(*) FROM spend_attempts WHERE is_void") == [(0,)]
    assert rows("SELECT DISTINCT settled_at IS NULL FROM spends") == [(False,)]
    assert net_of(Account(GATEWAY, GAS, "ETH")) == world.chain.funds[world.hot, None] - RICH_WEI


def test_the_last_gas_of_a_settled_spend_counts_however_often_it_is_sent_again(world: SpendWorld) -> None:
    world.order()
    world.step()
    settle(world)
    for price in (20, 40):
        undo(world)
        world.chain.price = price
        follow(world, 3)
        world.settle()
        world.step()
        assert rows("SELECT settled_at IS NULL FROM spends") == [(False,)]
        assert net_of(Account(GATEWAY, GAS, "ETH")) == world.chain.funds[world.hot, None] - RICH_WEI


@pytest.mark.parametrize("purpose", ["gas", "sweep", "cold", "filler"])
def test_a_settled_move_between_our_own_addresses_is_sent_again(world: SpendWorld, purpose: Any) -> None:
    wallet = sign.hot_wallet(world.network)
    to = wallet.address if purpose == "filler" else "0x" + "a1" * 20
    move = transfer(wallet, to, 0 if purpose == "filler" else 5)
    sign.start(world.ctx, world.network, purpose=purpose, intent=move)
    settle(world)
    undo(world)
    later = world.order()

    follow(world, 3)

    assert (waits(world), len(world.chain.received(to)), world.paid(later)) == ([], 1, 1)


def test_a_settled_spend_in_a_kept_block_is_not_touched(world: SpendWorld) -> None:
    world.order()
    world.step()
    settle(world)
    world.mine(WATCHED_ON_BLOCKS)
    world.reorg(3)
    world.mine(5)
    world.step(2)
    assert rows("SELECT reopened, settled_at IS NULL FROM spends") == [(0, False)]


# Empty slots found by later spends ----------------------------------------------------------------------------------


@pytest.fixture
def _unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every trace of the reorg."""
    monkeypatch.setattr(spend_reads, "replaced", lambda *_a, **_k: [])


@pytest.mark.usefixtures("_unseen")
def test_empty_settled_slots_are_used_again_for_the_spends_behind_them(world: SpendWorld) -> None:
    order = failed(world)
    world.mine(3 * WATCHED_ON_BLOCKS)
    paid = world.order()
    world.step()
    world.confirm_sent()
    world.settle()
    undo(world)
    later = world.order()

    follow(world, 6)

    assert (waits(world), world.chain.used(world.hot)) == ([], 3)
    assert [world.paid(each) for each in (order, paid, later)] == [0, 1, 1]


@pytest.mark.usefixtures("_unseen")
def test_a_node_that_forgets_settled_slots_stops_no_higher_offer(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = failed(world)
    stuck = world.order()
    world.step()
    world.chain.price = 50
    monkeypatch.setattr(world.chain, "next_counter", lambda _sender, *, ours: ours and 0)
    world.pass_time(PATIENCE_S)
    world.step(2)
    assert world.spend(stuck).attempts == 2
    world.mine()
    world.step(2)
    assert (world.paid(order), world.paid(stuck)) == (0, 1)
    assert rows("SELECT attempts, settled_at IS NULL FROM spends WHERE slot = 0") == [(1, False)]


def test_a_failed_spend_whose_slot_another_transaction_used_settles_with_an_alarm(world: SpendWorld) -> None:
    order = failed(world)
    before = world.available(order)
    undo(world)
    world.chain.stranger(world.hot)
    world.mine(world.network.maturity)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    (logged,) = [log for log in logs if log["event"] == "spend.slot_used_by_other"]
    assert (logged["log_level"], logged["state"]) == ("critical", "failed")
    assert rows("SELECT state, booked_fee_units, problem, settled_at IS NULL FROM spends") == [
        ("failed", 0, spend_tracking.LOST, False)
    ]
    assert (world.available(order), owes(order.merchant_id)) == (before, 0)


def test_another_effect_of_a_failed_payout_is_the_gateways_loss(world: SpendWorld) -> None:
    """The coin is frozen until an operator has checked it."""
    order = failed(world)
    before = world.available(order)
    world.chain.taxed.add(order.address)
    depth = len(world.chain.blocks) - 4
    world.reorg(depth)
    world.mine(depth)
    world.step(2)
    world.settle()
    world.step()
    assert rows("SELECT state, effect, lost_units, settled_at IS NULL FROM spends") == [
        ("failed", "other", 10 * USDT, False)
    ]
    assert (world.available(order), owes(order.merchant_id)) == (before, 0)
    assert freezes.frozen_coins("ethereum") == {"USDT"}


def test_filler_bytes_of_a_slot_never_change(world: SpendWorld) -> None:
    failed(world)
    with pytest.raises(Exception, match="append-only"):
        execute("UPDATE spend_attempts SET is_void = true")


# On a real node ----------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil, COLD_ADDRESSES="").opened(gas_wei=20 * ETHER)


def reverted(chain: TreasuryWorld) -> tuple[PayoutRow, str]:
    """Return a payout that reverted and was returned, its spend settled, with its signed bytes."""
    chain.bury()
    chain.advance()
    burns_since(chain, chain.node.height() + 4)
    paid = order_coin(chain)
    chain.watch()
    [(txid, bytes_)] = rows("SELECT txid, raw FROM spend_attempts")[-1:]
    raw = "0x" + bytes(bytes_).hex()
    chain.node.ask("anvil_dropTransaction", txid)
    chain.mine(4)
    chain.node.ask("eth_sendRawTransaction", raw)
    chain.follow()
    assert chain.node.receipt(txid)["status"] == "0x0"
    chain.bury()
    assert rows("SELECT state, settled_at IS NULL FROM spends WHERE purpose = 'payout'") == [("failed", False)]
    return paid, raw


def go_on(chain: TreasuryWorld, times: int = 4) -> None:
    for _ in range(times):
        chain.pass_time(PATIENCE_S)
        execute("UPDATE rates SET quoted_at = app_now()")
        execute("UPDATE payouts SET due_at = app_now()")
        chain.follow()


def test_on_a_node_the_slot_of_a_failed_payout_is_used_and_the_next_is_paid(chain: TreasuryWorld) -> None:
    paid, _ = reverted(chain)
    before = balance(Account(chain.shop, AVAILABLE, "ETH"))
    chain.reorg(chain.network.maturity + 2)
    chain.advance()
    later = order_coin(chain, to=LATER)

    go_on(chain)
    chain.bury()

    assert (chain.coin(BURNER), chain.coin(LATER)) == (0, ETHER)
    stored = [payouts.find(chain.shop, each.id) for each in (paid, later)]
    assert [each.status for each in stored if each] == ["failed", "confirmed"]
    assert (balance(Account(chain.shop, AVAILABLE, "ETH")), owes(chain.shop, "ETH")) == (before, 0)
    assert rows("SELECT count(*) FROM spends WHERE mined_txid IS NULL") == [(0,)]
    chain.reconcile(4)
    assert (chain.findings(), chain.frozen()) == ([], [])


def test_on_a_node_a_filler_explains_the_balance_before_the_signer_sees_it(
    chain: TreasuryWorld,
) -> None:
    reverted(chain)
    chain.reorg(chain.network.maturity + 2)
    chain.advance()
    chain.watch()
    chain.watch()
    chain.advance()
    before = rows("SELECT count(*) FROM treasury_topups")
    chain.reconcile(4)
    assert rows("SELECT mined_txid FROM spends WHERE purpose = 'payout'") == [(None,)]
    assert (chain.findings(), rows("SELECT count(*) FROM treasury_topups")) == ([], before)


def test_on_a_node_a_failed_payout_whose_bytes_return_with_effect_is_charged(chain: TreasuryWorld) -> None:
    """Anyone who kept the bytes can send them to a node of the new branch."""
    paid, raw = reverted(chain)
    before = balance(Account(chain.shop, AVAILABLE, "ETH"))
    [(txid,)] = rows("SELECT mined_txid FROM spends WHERE purpose = 'payout'")
    chain.reorg(chain.network.maturity + 5, (raw, 0))
    assert chain.node.receipt(txid)["status"] == "0x1"
    chain.advance()

    go_on(chain)
    chain.bury()

    assert chain.coin(BURNER) == ETHER
    assert payouts.find(chain.shop, paid.id).status == "failed"  # type: ignore[union-attr]
    charged = before - balance(Account(chain.shop, AVAILABLE, "ETH"))
    assert charged + owes(chain.shop, "ETH") == ETHER
    chain.reconcile(4)
    assert (chain.findings(), chain.frozen()) == ([], [])


def test_on_a_node_a_settled_payout_is_sent_again(chain: TreasuryWorld) -> None:
    chain.bury()
    paid = order_coin(chain, to=LATER)
    chain.watch()
    chain.follow()
    chain.bury()
    chain.mine(WATCHED_ON_BLOCKS)
    chain.bury()
    assert rows("SELECT state, settled_at IS NULL FROM spends WHERE purpose = 'payout'") == [("confirmed", False)]
    [(height,)] = rows("SELECT mined_height FROM spends WHERE purpose = 'payout'")
    chain.reorg(chain.node.height() - height + 1)
    assert chain.coin(LATER) == 0
    chain.advance()

    go_on(chain)

    assert chain.coin(LATER) == ETHER
    assert payouts.find(chain.shop, paid.id).status == "confirmed"  # type: ignore[union-attr]
    chain.bury()
    chain.reconcile(4)
    assert (chain.findings(), chain.frozen()) == ([], [])
