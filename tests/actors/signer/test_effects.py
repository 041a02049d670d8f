"""A payout fails only if nothing moved. With any other effect it is held and announced, and an operator ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal
from unittest.mock import Mock

import pytest
import structlog

from actors.signer import broadcast, follow_up
from chains.base import ProviderError
from chains.spending import Fate, FateKind, InsufficientCoinError, Intent, OutputFate
from core.ids import uuid7
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code
from models.db.base import execute, rows, transaction
from models.ledger.ledger import AVAILABLE, CUSTODY, EQUITY, GATEWAY, NETWORK_FEES, Account, balance
from models.outcomes import manual, payout_hooks
from models.outcomes.manual import SettleError
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import limit_counters
from models.spends.rows import SpendRow
from models.treasury import sweeps
from tests.actors.signer.world import SpendWorld
from tests.actors.treasury.world import TreasuryWorld
from tests.models.builders import CATALOGUE, USDT
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import net_of

RECIPIENT = "0x52908400098527886e0f7030069857d2e4169ee7"
DEAD = "0x000000000000000000000000000000000000dead"


def settle(of: PayoutRow, outcome: Literal["paid", "failed"]) -> None:
    (unclear,) = manual.listing(CATALOGUE, of.id)
    with transaction():
        manual.settle(CATALOGUE, unclear, outcome, settled_by="test", reason="looked")


def taxed(world: SpendWorld, *, is_deep: bool = True) -> PayoutRow:
    """Return a payout of 10 USDT of which 9 were delivered, deep enough to fail."""
    order = world.order()
    world.chain.taxed.add(order.address)
    world.step()
    world.advance()
    if is_deep:
        world.mature()
    return order


# Held and announced ----------------------------------------------------------------------------------------------


def test_an_underpaid_payout_is_held_announced_and_freezes_its_coin(world: SpendWorld) -> None:
    shop = world.shop()
    world.fund(shop, 10 * USDT, "ETH")
    with structlog.testing.capture_logs() as logs:
        order = taxed(world)
    world.step(3)

    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)
    assert world.reasons() == [payout_hooks.UNCLEAR]
    assert "spend.moved_otherwise" in [log["event"] for log in logs if log["log_level"] == "critical"]
    [freeze] = freezes.listing()
    assert (freeze.scope, freeze.name, freeze.frozen_by) == ("coin", "USDT:ethereum", freezes.SIGNER)
    assert freezes.is_frozen(shop, "ethereum", "USDT")
    assert not freezes.is_frozen(shop, "bsc", "USDT")

    stopped, goes_on = world.order(), world.order(shop, currency="ETH", units=USDT)
    world.step()
    assert (world.payout(stopped).status, world.payout(goes_on).status) == ("approved", "sent")


def test_a_coin_frozen_after_the_quote_is_not_signed(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order = world.order()
    real = world.chain.draft

    def draft(*args: Any, **more: Any) -> Any:
        freezes.freeze("coin", "USDT:ethereum", reason="test", frozen_by="test")
        return real(*args, **more)

    monkeypatch.setattr(world.chain, "draft", draft)
    world.step()
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)


def test_a_frozen_coin_takes_no_place_in_its_merchants_queue(world: SpendWorld) -> None:
    shop = world.shop()
    world.fund(shop, 10 * USDT, "ETH")
    for _ in range(3):
        world.order(shop)
    coin = world.order(shop, currency="ETH", units=USDT)
    freezes.freeze("coin", "USDT:ethereum", reason="test", frozen_by="test")
    assert payout_queue.due(world.network, limit=1) == [coin.id]


def test_an_underpaid_payout_that_a_reorg_includes_in_full_is_paid(world: SpendWorld) -> None:
    order = taxed(world, is_deep=False)
    assert world.reasons() == [payout_hooks.UNCLEAR]
    world.reorg(1)
    world.step()
    assert world.reasons() == [""]

    world.chain.taxed.clear()
    world.confirm_sent()
    assert (world.payout(order).status, world.count("payout_settlements")) == ("confirmed", 0)


# Settled ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "status", "returned", "lost"), [("paid", "confirmed", 0, 0), ("failed", "failed", 11, 10)]
)
def test_an_operator_settles_it_and_the_gateway_pays_the_rest(
    world: SpendWorld, outcome: Literal["paid", "failed"], status: str, returned: int, lost: int
) -> None:
    order = taxed(world)
    before, custody = world.available(order), net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum"))
    settle(order, outcome)

    ended = world.payout(order)
    assert (ended.status, ended.txid, world.held_units(order)) == (status, world.spend(order).mined_txid, 0)
    assert world.available(order) == before + returned * USDT
    # Ten left the wallet by the chain, whatever was delivered; custody is a debit account.
    assert net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == custody + 10 * USDT
    assert net_of(Account(GATEWAY, EQUITY, "USDT")) == -lost * USDT
    assert net_of(Account(GATEWAY, NETWORK_FEES, "USDT")) == (USDT if outcome == "paid" else 0)
    kept = "outcome, left_units, arrived_units, lost_units, reason, settled_by"
    assert rows(f"SELECT {kept} FROM payout_settlements") == [
        (outcome, 10 * USDT, 9 * USDT, lost * USDT, "looked", "test")
    ]
    world.settle()
    assert (world.payout(order).status, world.count("spends")) == (status, 1)
    assert rows("SELECT settled_at IS NULL, lost_units FROM spends") == [(False, lost * USDT)]
    assert freezes.frozen_coins("ethereum") == {"USDT"}, "an operator lifts it"


def test_an_underpaid_payout_is_settled_once(world: SpendWorld) -> None:
    order = taxed(world)
    (unclear,) = manual.listing(CATALOGUE)

    def act(number: int) -> None:
        with transaction():
            outcome: Literal["paid", "failed"] = "paid" if number % 2 else "failed"
            manual.settle(CATALOGUE, unclear, outcome, settled_by="test")

    outcomes = at_once(4, act)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert all(outcome is None or isinstance(outcome, SettleError) for outcome in outcomes)
    assert world.count("payout_settlements") == 1
    assert world.held_units(order) == 0


def test_an_underpaid_payout_is_not_settled_while_a_reorg_can_change_it(world: SpendWorld) -> None:
    order = taxed(world, is_deep=False)
    world.mine(world.network.maturity - 2)
    with pytest.raises(SettleError, match="deep"):
        settle(order, "failed")
    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)
    world.mine()
    settle(order, "failed")


def test_a_payout_that_changed_since_it_was_shown_is_not_settled(world: SpendWorld) -> None:
    taxed(world)
    (unclear,) = manual.listing(CATALOGUE)
    execute("UPDATE spend_outputs SET left_units = left_units - 1")
    with pytest.raises(SettleError, match="look again"), transaction():
        manual.settle(CATALOGUE, unclear, "paid", settled_by="test")


def test_a_payout_paid_or_failed_by_the_chain_cannot_be_settled(world: SpendWorld) -> None:
    world.order()
    failing = world.order()
    world.chain.reverting.add(failing.address)
    world.step()
    world.advance()
    assert manual.listing(CATALOGUE) == []


# Refusals of our own wallet ---------------------------------------------------------------------------------------


def refused_in_a_block(world: SpendWorld) -> PayoutRow:
    """Return a payout included without effect, since the issuer had frozen our own wallet."""
    order = world.order()
    world.step()
    world.chain.frozen.add(world.hot)
    world.advance()
    assert [each.frozen_by for each in freezes.listing()] == [freezes.REFUSAL]
    return order


def freed(world: SpendWorld) -> None:
    world.chain.frozen.clear()
    freezes.unfreeze("coin", "USDT:ethereum")


def test_a_refused_payout_that_takes_effect_after_a_reorg_is_paid_once(world: SpendWorld) -> None:
    order = refused_in_a_block(world)
    freed(world)
    world.reorg(1)
    world.step()
    assert (world.payout(order).waiting_for, world.spend(order).is_own_refusal) == (None, None)
    world.confirm_sent()
    world.mature()
    assert (world.payout(order).status, world.paid(order), world.count("spends")) == ("confirmed", 1, 1)


def test_a_payout_signed_again_costs_its_merchant_nothing_and_counts_once(world: SpendWorld) -> None:
    order = refused_in_a_block(world)
    world.mature()
    assert (world.payout(order).status, world.payout(order).txid, world.held_units(order)) == (
        "approved",
        "",
        11 * USDT,
    )
    assert limit_counters.spent().day == 0
    freed(world)
    world.step()
    world.confirm_sent()
    assert (world.payout(order).status, world.paid(order), world.held_units(order)) == ("confirmed", 1, 0)
    assert net_of(Account(GATEWAY, NETWORK_FEES, "USDT")) == USDT


def test_a_second_payment_after_a_reorg_beyond_maturity_is_the_gateways_loss(world: SpendWorld) -> None:
    order = refused_in_a_block(world)
    world.mature()
    freed(world)
    world.step()
    world.confirm_sent()
    available = world.available(order)
    depth = len(world.chain.blocks) - 1
    world.reorg(depth)
    world.mine(depth)
    world.step(2)
    world.settle()
    assert (world.payout(order).status, world.paid(order), world.available(order)) == ("confirmed", 2, available)
    assert net_of(Account(GATEWAY, EQUITY, "USDT")) == -10 * USDT


def test_nothing_is_returned_while_providers_disagree_about_the_cause_of_a_refusal(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = world.order()
    world.chain.reverting.add(order.address)
    world.step()
    with monkeypatch.context() as patch:
        patch.setattr(world.chain, "refuses", Mock(side_effect=ProviderError("one says so, one does not")))
        world.advance()
        world.mature()
        assert (world.payout(order).status, world.payout(order).waiting_for) == ("sent", "network")
    world.step()
    assert (world.payout(order).status, world.held_units(order), freezes.listing()) == ("failed", 0, [])


def test_an_empty_wallet_is_short_of_coin_and_not_refused(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order = world.order()
    world.step()
    world.chain.reverting.add(order.address)
    monkeypatch.setattr(world.chain, "refuses", Mock(side_effect=InsufficientCoinError("no tokens")))
    world.advance()
    world.mature()
    assert (world.payout(order).status, freezes.listing()) == ("failed", [])


def test_a_refusal_whose_block_was_replaced_during_its_trace_is_traced_again(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = world.order()
    world.step()
    world.chain.reverting.add(order.address)

    def moved(_intent: Intent) -> bool:
        execute("UPDATE spends SET mined_hash = '0xother'")
        return True

    with monkeypatch.context() as patch:
        patch.setattr(world.chain, "refuses", moved)
        world.advance()
    assert (world.spend(order).is_own_refusal, freezes.listing()) == (None, [])
    world.step()
    assert world.spend(order).is_own_refusal is False


# Frozen networks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["all", "network"])
def test_on_a_frozen_network_a_failed_payout_is_not_returned(
    world: SpendWorld, scope: Literal["all", "network"]
) -> None:
    order = world.order()
    world.chain.reverting.add(order.address)
    world.step()
    world.mine()
    name = "ethereum" if scope == "network" else ""
    freezes.freeze(scope, name, reason="the database was restored", frozen_by="test")
    world.mature()
    world.step(2)
    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)
    assert rows("SELECT state FROM spends") == [("mined",)]

    freezes.unfreeze(scope, name)
    world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("failed", 0)


def test_on_a_frozen_network_a_refused_payout_is_not_returned(world: SpendWorld) -> None:
    order = world.order()
    freezes.freeze("network", "ethereum", reason="the database was restored", frozen_by="test")
    assert not broadcast._fail(world.ctx, order.id, broadcast.REFUSED)
    assert (world.payout(order).status, world.held_units(order)) == ("approved", 11 * USDT)


def test_on_a_frozen_network_no_payout_is_settled_as_failed(world: SpendWorld) -> None:
    order = taxed(world)
    freezes.freeze("network", "ethereum", reason="the database was restored", frozen_by="test")
    with pytest.raises(SettleError, match="frozen"):
        settle(order, "failed")
    settle(order, "paid")
    assert world.payout(order).status == "confirmed"


# On a real node -----------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil, SWEEP_MIN_USD="1").opened()


def contract() -> str:
    return str(CATALOGUE.pairs["USDT", "ethereum"].contract)


def earned(chain: TreasuryWorld, units: int = 200 * 10**6) -> None:
    """Credit the shop, and give the hot wallet the coin."""
    chain.paid_invoice(units)
    chain.keep_and_follow(3)
    chain.bury()
    chain.poll()
    assert chain.tokens(chain.hot) == units
    assert chain.findings() == []


def order(chain: TreasuryWorld, units: int = 50 * USDT) -> PayoutRow:
    new = PayoutRow(
        id=uuid7(), merchant_id=chain.shop, order_id=str(uuid7()), kind="payout", currency="USDT", network="ethereum",
        address=RECIPIENT, amount_units=units, fee_units=5 * USDT, to_units=units, is_fee_on_top=True,
        status="approved", created_by="test",
    )  # fmt: skip
    with transaction():
        return payouts.insert(CATALOGUE, new)


@pytest.mark.parametrize("outcome", ["paid", "failed"])
def test_a_token_with_a_transfer_fee_pays_no_merchant_twice(
    chain: TreasuryWorld, outcome: Literal["paid", "failed"]
) -> None:
    """Of 50 USDT 49.5 are delivered: held, announced, the coin frozen, settled by hand; books and chain agree."""
    earned(chain)
    available = balance(Account(chain.shop, AVAILABLE, "USDT"))
    install_code(chain.node.rpc, contract(), "token_fee")
    paid = order(chain)
    chain.watch()
    chain.follow()
    chain.bury()
    shown = payouts.find(chain.shop, paid.id)
    assert shown is not None
    assert (chain.tokens(RECIPIENT), chain.tokens(DEAD)) == (49_500_000, 500_000)
    assert (shown.status, balance(shown.held_account)) == ("sent", 55 * USDT), "not returned"
    assert freezes.frozen_coins("ethereum") == {"USDT"}
    chain.assert_agreed(3)

    settle(paid, outcome)
    ended = payouts.find(chain.shop, paid.id)
    assert ended is not None
    assert ended.status == {"paid": "confirmed", "failed": "failed"}[outcome]
    assert balance(ended.held_account) == 0
    assert balance(Account(chain.shop, AVAILABLE, "USDT")) == available - (55 * USDT if outcome == "paid" else 0)
    # Custody by the books equals the chain's balance.
    tokens = chain.tokens(chain.hot) * 10**12
    assert -net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == tokens == 150 * USDT
    chain.advance()
    chain.reconcile(3)
    assert (chain.findings(), chain.frozen()) == ([], [])


def test_a_sweep_of_a_token_with_a_transfer_fee_books_the_loss_and_is_not_repeated(chain: TreasuryWorld) -> None:
    chain.paid_invoice(100 * 10**6)
    install_code(chain.node.rpc, contract(), "token_fee")
    chain.keep_and_follow(3)
    chain.bury()
    assert chain.tokens(chain.hot) == 99 * 10**6
    assert ("sweep", "confirmed") in chain.spends()
    assert sweeps.unswept("ethereum", family="evm", limit=9) == []
    assert -net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == 99 * USDT
    assert freezes.frozen_coins("ethereum") == {"USDT"}
    chain.reconcile(4)
    assert (chain.findings(), chain.frozen()) == ([], [])

    chain.paid_invoice(100 * 10**6)
    chain.keep_and_follow(3)
    assert len(sweeps.unswept("ethereum", family="evm", limit=9)) == 1
    assert chain.spends("purpose", "currency").count(("sweep", "USDT")) == 1, "its sweeps stop too"


def test_the_balance_agrees_before_the_spends_row_has_its_block(chain: TreasuryWorld) -> None:
    """The reconciler asks the chain itself if a spend's row names no block."""
    earned(chain)
    install_code(chain.node.rpc, contract(), "token_fee")
    order(chain)
    chain.watch()
    chain.advance()
    assert rows("SELECT state FROM spends WHERE purpose = 'payout'") == [("sent",)]
    chain.reconcile(3)
    assert (chain.findings(), chain.frozen()) == ([], [])


@pytest.mark.parametrize("payer", ["", "0xhot"])
def test_only_another_payer_gains_by_a_spend(payer: str) -> None:
    spend = SpendRow(
        id=uuid7(), network="ethereum", purpose="sweep", sender="0xowner", payer=payer, currency="USDT",
        contract="0xtoken", decimals=6, token_units=1, slot=None,
    )  # fmt: skip
    fate = Fate(kind=FateKind.INCLUDED, txid="0x1", outputs=(OutputFate(effect="exact"),), fee_units=-1)
    if payer:
        assert follow_up._sound(CATALOGUE.networks["ethereum"], spend, fate) is fate
        return
    with pytest.raises(ProviderError, match="-1"):
        follow_up._sound(CATALOGUE.networks["ethereum"], spend, fate)
