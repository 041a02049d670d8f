"""Refusals of the treasury and the reconciler, each shown by the fault that it prevents. On a real node."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors import context
from actors.signer import funding, sign
from actors.treasury import comparison, sweep
from chains.base import ProviderError
from chains.spending import FeeTooHighError, InsufficientCoinError, LoneRefusalError, SpendRefusedError
from core.catalogue.families import traits_of
from core.ids import uuid7
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.treasury import addresses, cold_books, reconciliation
from tests.actors.scan.world import ETHER, USDT_UNITS, World
from tests.actors.treasury.world import TreasuryWorld
from tests.models.builders import USDT, merchant
from tests.models.ledger.figures import nets_of
from tests.models.treasury.builders import COLD, topup_rows
from tests.peers.anvil import calldata
from tests.peers.paper_chain import transfer

EQUITY_USDT = Account(GATEWAY, EQUITY, "USDT")
CUSTODY_USDT = Account(GATEWAY, CUSTODY, "USDT", "ethereum")
STRANGER = "0x" + "66" * 20


@pytest.fixture
def cooled(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    """Open a world whose hot wallet holds 200 USDT and needs 3."""
    env = {"ETHEREUM_COLD_ADDRESS": COLD, "HOT_LIMIT_USD": "3"}
    for made in TreasuryWorld(database, anvil, **env).opened(gas_wei=2 * ETHER):
        made.send(made.hot, 20 * USDT_UNITS)
        made.advance()
        yield made


@contextlib.contextmanager
def payout(units: int, *, status: str, reason: str = "") -> Iterator[None]:
    """Write an unfunded payout, and remove it before the books are checked."""
    number = str(uuid7())
    execute(
        "INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, currency, network, address,"
        " amount_units, fee_units, to_units, held_units, is_fee_on_top, status, created_by, due_at, wait_reason)"
        " VALUES (%s, %s, %s, 'payout', %s, 'USDT', 'ethereum', '0xto', %s, 0, %s, %s, true, %s, 'test',"
        " app_now() + interval '1 hour', %s)",
        (uuid7(), merchant(), number, f"hold:{number}", units, units, units, status, reason),
    )
    yield
    execute("DELETE FROM payouts")


def refusing(monkeypatch: pytest.MonkeyPatch, error: Exception, *, purpose: str, times: int = 1_000) -> None:
    """Refuse spends of a purpose a number of times."""
    honest, left = sign.start, [times]

    def start(*args: Any, **named: Any) -> object:
        if named["purpose"] == purpose and left[0] > 0:
            left[0] -= 1
            raise error
        return honest(*args, **named)

    monkeypatch.setattr(sign, "start", start)


# Sweeps -----------------------------------------------------------------------------------------------------


def test_an_address_of_another_wallet_gets_no_gas_and_delays_no_other(world: TreasuryWorld) -> None:
    foreign = World.invoice(world)
    world.pay(foreign)
    mine = world.paid_invoice()
    world.keep()
    assert world.spends("purpose", "recipient") == [("gas", mine.address.lower())]


@pytest.mark.parametrize("error", [LoneRefusalError, SpendRefusedError])
def test_an_address_whose_sweep_is_refused_delays_no_other(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    both = {world.paid_invoice(ETHER, currency="ETH").address.lower() for _ in range(2)}
    refusing(monkeypatch, error("the coin's contract does not want it"), purpose="sweep", times=1)
    world.keep()
    assert len(world.spends()) == 1
    world.keep()
    assert {sender for (sender,) in world.spends("sender")} == both


def test_a_refusal_is_reported_once_for_each_address_and_reason(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "REPORTED_MAX", 2)
    monkeypatch.setattr(sweep, "_reported", {})
    mine = world.paid_invoice(ETHER, currency="ETH").address.lower()
    logged = []
    for reason in ("frozen", "frozen", "paused", "frozen", "frozen"):
        with monkeypatch.context() as patch, capture_logs() as logs:
            refusing(patch, SpendRefusedError(reason), purpose="sweep")
            world.keep()
        logged.append([line["reason"] for line in logs if line["event"] == "sweep.refused"])

    assert logged == [["frozen"], [], ["paused"], ["frozen"], []]
    for other in "ab":
        sweep._reported["ethereum", other, "ETH"] = reason
    with capture_logs() as logs:
        refusing(monkeypatch, SpendRefusedError("frozen"), purpose="sweep")
        world.keep()
    assert [line["address"] for line in logs if line["event"] == "sweep.refused"] == []
    assert ("ethereum", mine, "ETH") in sweep._reported
    assert len(sweep._reported) == 2


@pytest.mark.parametrize("error", [FeeTooHighError, ProviderError, InsufficientCoinError])
def test_work_beyond_a_step_waits_for_the_next(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    world.paid_invoice(ETHER, currency="ETH")
    refusing(monkeypatch, error("not now"), purpose="sweep", times=1)
    world.keep()
    assert world.spends() == []
    world.keep()
    assert world.spends("purpose") == [("sweep",)]


def test_coin_without_a_deposit_is_not_swept(world: TreasuryWorld) -> None:
    mine = world.paid_invoice(ETHER, currency="ETH")
    world.node.ask("anvil_setBalance", mine.address.lower(), hex(5 * ETHER))
    world.advance()
    world.keep()
    assert [units < ETHER for (units,) in world.spends("token_units")] == [True]


def test_a_deposit_that_the_fee_would_use_up_is_not_swept(world: TreasuryWorld) -> None:
    world.paid_invoice(ETHER // 2_000, currency="ETH")
    # Above the quotes that the plan knows.
    world.node.ask("anvil_setNextBlockBaseFeePerGas", hex(40 * 10**9))
    world.keep()
    assert world.spends() == []
    world.node.ask("anvil_setNextBlockBaseFeePerGas", hex(10**9))
    world.keep()
    assert world.spends("purpose") == [("sweep",)]


def test_small_deposits_are_swept_while_a_payout_waits_for_them(database: str, anvil: Callable[..., Anvil]) -> None:
    for world in TreasuryWorld(database, anvil, SWEEP_MIN_USD="11").opened():
        world.paid_invoice()
        world.keep()
        assert world.spends() == []
        with payout(10**18, status="approved", reason="the hot wallet lacks USDT"):
            world.keep()
        assert world.spends("purpose") == [("gas",)]


# The cold address -------------------------------------------------------------------------------------------


def test_sums_of_open_payouts_stay_in_the_hot_wallet(cooled: TreasuryWorld) -> None:
    with payout(50 * 10**18, status="awaiting_cosign"):
        cooled.keep()
    assert cooled.spends("purpose", "token_units") == [("cold", 147_000_000)]


@pytest.mark.parametrize("error", [InsufficientCoinError, LoneRefusalError, SpendRefusedError, sign.WalletBusyError])
def test_an_excess_that_cannot_be_sent_stays(
    cooled: TreasuryWorld, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    refusing(monkeypatch, error("not now"), purpose="cold")
    cooled.keep()
    assert cooled.spends() == []


def test_a_cold_address_equal_to_the_hot_one_gets_nothing(
    cooled: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The answer of setting it, in that case.
    monkeypatch.setattr(addresses, "set_cold", lambda *_args: False)
    cooled.keep()
    assert cooled.spends() == []


def come_back(world: TreasuryWorld, units: int) -> None:
    """Send USDT from the cold address to the hot wallet and bury it, unseen by the signer."""
    contract = context.context().catalogue.pairs["USDT", "ethereum"].contract
    world.node.ask("anvil_setBalance", COLD, hex(ETHER))
    world.node.send(contract, data=calldata("transfer(address,uint256)", world.hot, units), sender=COLD)
    world.advance(world.network.maturity + 1)


def test_money_back_from_the_cold_address_is_missed_nowhere(cooled: TreasuryWorld) -> None:
    cooled.keep_and_follow()
    cooled.bury()
    cooled.reconcile()
    before = nets_of(EQUITY_USDT, CUSTODY_USDT)
    come_back(cooled, USDT_UNITS)
    cooled.assert_agreed()
    assert nets_of(EQUITY_USDT, CUSTODY_USDT) == before
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 187 * USDT


def test_a_top_up_by_the_cold_address_is_booked_beyond_its_books(cooled: TreasuryWorld) -> None:
    """An operator sends 100 by an address that holds 197: all of it returns, and only the rest is new money."""
    cooled.keep_and_follow()
    cooled.bury()
    own, total = nets_of(EQUITY_USDT, CUSTODY_USDT)
    cooled.send(COLD, 10 * USDT_UNITS)
    execute("UPDATE treasury_addresses SET is_current = false WHERE role = 'cold'")
    come_back(cooled, 200_000_000)
    come_back(cooled, 97_000_000)

    split = rows("SELECT known_units, excess_units FROM treasury_topups WHERE origin = 'cold' ORDER BY block_height")
    assert split == [(197 * USDT, 3 * USDT), (0, 97 * USDT)]
    assert nets_of(EQUITY_USDT, CUSTODY_USDT) == [own + 100 * USDT, total - 100 * USDT]
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 0
    cooled.assert_agreed()
    cooled.assert_sound()


def test_returned_money_waits_while_a_spend_to_the_cold_address_is_in_no_known_block(cooled: TreasuryWorld) -> None:
    """The signer was away: the books do not have at the cold address what has already returned."""
    cooled.keep()
    cooled.mine()
    come_back(cooled, USDT_UNITS)
    assert rows("SELECT status FROM treasury_topups WHERE origin = 'cold'") == [("pending",)]

    cooled.watch()
    cooled.poll()
    assert rows("SELECT status, excess_units FROM treasury_topups WHERE origin = 'cold'") == [("booked", 0)]
    # The operator's money from the beginning.
    assert nets_of(EQUITY_USDT) == [200 * USDT]


# Comparisons ------------------------------------------------------------------------------------------------


def sent(world: TreasuryWorld, recipient: str, units: int = USDT_UNITS) -> None:
    """Send tokens from the hot wallet as a spend of the gateway; the filler's purpose means nothing."""
    ctx = context.context()
    pair = ctx.catalogue.pairs["USDT", "ethereum"]
    intent = transfer(sign.hot_wallet(world.network), recipient, units, pair)
    assert sign.start(ctx, world.network, purpose="filler", intent=intent)


def funded(world: TreasuryWorld) -> None:
    world.send(world.hot, 5 * USDT_UNITS)
    world.advance()
    world.assert_agreed()


def test_a_departure_in_an_unscanned_block_is_not_missed(world: TreasuryWorld) -> None:
    funded(world)
    world.advance()
    sent(world, STRANGER)
    world.mine()
    world.assert_agreed()


def test_a_transfer_of_the_hot_wallet_to_itself_changes_only_its_gas(world: TreasuryWorld) -> None:
    funded(world)
    sent(world, world.hot)
    world.advance()
    world.assert_agreed()


def test_a_first_balance_that_could_not_be_adopted_at_first_is_still_the_gateways(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.token(world.hot)
    monkeypatch.setattr(reconciliation, "adopt", lambda *_args, **_named: False)
    world.reconcile()
    assert not reconciliation.was_compared("ethereum", "USDT")
    monkeypatch.undo()
    world.advance()
    world.assert_agreed(4)
    assert world.frozen() == []


def test_a_spend_that_one_provider_has_not_seen_is_no_theft(database: str, anvil: Callable[..., Anvil]) -> None:
    """One of two providers lags, so that the fate of a spend is unknown whose effect the other's balance shows."""
    world = TreasuryWorld(database, anvil)
    with world.served_by(2):
        world.keep()
        world.send(world.hot, 5 * ETHER, currency="ETH")
        funded(world)
        world.providers[1].lies["eth_getTransactionReceipt"] = lambda _truth, _params: None
        for _ in range(4):
            sent(world, STRANGER, USDT_UNITS // 10)
            world.advance()
            world.reconcile()
        assert world.findings() == []
        assert world.frozen() == []
        # A sum missing in addition is reported as always.
        world.drain(world.hot, 2 * USDT_UNITS)
        world.reconcile(3)
        assert ("USDT", "hot", 3) in world.findings()
        assert len(world.frozen()) == 1


def test_without_a_hot_wallet_no_balance_is_compared(database: str, anvil: Callable[..., Anvil]) -> None:
    world = TreasuryWorld(database, anvil)
    with world.served_by():
        world.reconcile()
    assert reconciliation.listing() == []


def test_agreeing_balances_are_read_once_a_block_and_not_logged(world: TreasuryWorld) -> None:
    with capture_logs() as logged:
        world.reconcile()
    asked = list(world.providers[0].asked)
    world.reconcile()
    assert world.providers[0].asked == asked
    assert {listed.misses for listed in reconciliation.listing()} == {0}
    assert "reconciliation.differs" not in {line["event"] for line in logged}


def test_with_too_many_spends_under_way_no_balance_is_compared(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    funded(world)
    height = reconciliation.last_height("ethereum")
    sent(world, STRANGER)
    world.advance()
    monkeypatch.setattr(comparison, "OPEN_MAX", 0)
    world.reconcile()
    assert reconciliation.last_height("ethereum") == height


def test_a_surplus_missing_at_the_second_reading_is_not_adopted(world: TreasuryWorld) -> None:
    first = iter([hex(6 * ETHER)])
    world.providers[0].lies["eth_getBalance"] = lambda truth, _params: next(first, truth)
    world.reconcile()
    assert topup_rows("units", "origin") == [(5 * ETHER, "transfer")]
    assert not reconciliation.was_compared("ethereum", "ETH")


def test_a_coin_no_longer_offered_does_not_stop_other_comparisons(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paid_invoice()
    honest = comparison.coins_of
    monkeypatch.setattr(comparison, "coins_of", lambda *of: [coin for coin in honest(*of) if coin.is_gas])
    world.reconcile()
    assert [(listed.currency, listed.place) for listed in reconciliation.listing()] == [("ETH", "hot")]


@pytest.mark.parametrize("robbed", [0, 1])
def test_the_short_one_of_a_coins_addresses_is_reported(world: TreasuryWorld, robbed: int) -> None:
    both = sorted(world.paid_invoice().address.lower() for _ in range(2))
    world.drain(both[robbed], 1)
    world.reconcile()
    assert ("USDT", "deposits", 1) in world.findings()


def test_coin_being_swept_is_not_missed_at_its_address(world: TreasuryWorld) -> None:
    mine = world.paid_invoice(ETHER, currency="ETH")
    world.keep()
    # Not taken by that sweep, and therefore compared.
    world.pay(mine, ETHER // 2, currency="ETH")
    world.confirm_sent()
    assert world.spends("purpose", "state") == [("sweep", "sent")]
    world.assert_agreed()


# Payouts first ----------------------------------------------------------------------------------------------


def test_many_sweeps_take_at_most_a_quarter_of_the_hot_wallets_slots(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert funding.slots_max(world.network) == traits_of(world.network).in_flight_max // 4
    monkeypatch.setattr(funding, "slots_max", lambda _network: 2)
    for _ in range(4):
        world.paid_invoice()
    for _ in range(2):
        world.keep()
        assert world.spends("purpose") == [("gas",)] * 2
    # Once in a block they take no slot; a funded address is swept whatever waits.
    world.follow()
    world.keep()
    assert sorted(world.spends("purpose")) == [("gas",)] * 4 + [("sweep",)] * 2


def test_while_payouts_are_due_no_gas_is_sent_for_sweeps(world: TreasuryWorld) -> None:
    world.paid_invoice()
    with payout(10**18, status="approved"):
        execute("UPDATE payouts SET due_at = app_now()")
        world.keep()
        assert world.spends() == []
        # A payout that waits for coin waits for a sweep, which must not wait for the payout.
        execute("UPDATE payouts SET wait_reason = %s", (payout_queue.SHORT_OF_COIN,))
        world.keep()
        assert world.spends("purpose") == [("gas",)]


def test_frozen_payouts_delay_no_sweep(world: TreasuryWorld) -> None:
    world.paid_invoice()
    with payout(10**18, status="approved"):
        execute("UPDATE payouts SET due_at = app_now()")
        shop = rows("SELECT merchant_id FROM payouts")[0][0]
        freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")
        world.keep()
    assert world.spends("purpose") == [("gas",)]
