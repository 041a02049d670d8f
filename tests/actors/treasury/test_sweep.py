"""Sweeps deposits to the hot wallet once each if that pays, and its excess to the cold address. On a real node."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest
import structlog

from actors import context
from actors.rates import network_fees
from actors.signer import funding, held_keys, sign
from chains import registry
from chains.base import ForeignKeyError
from chains.evm.treasurer import EvmTreasurer
from chains.spending import KeyRef, Lying, Step
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from models.deposits import cursors
from models.ledger.ledger import CUSTODY, GATEWAY, Account
from models.payouts import freezes
from models.treasury import addresses, sweeps
from tests.actors.scan.world import ETHER, USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.models.ledger.figures import net_of
from tests.models.treasury.builders import COLD, topup_rows


def swept_by(world: TreasuryWorld) -> list[str | None]:
    del world
    return [
        row[0]
        for row in rows(
            "SELECT s.state FROM deposits d LEFT JOIN spends s ON s.id = d.sweep_id ORDER BY d.detected_at, d.id"
        )
    ]


def test_a_token_deposit_gets_gas_and_is_swept_to_the_last_unit(world: TreasuryWorld) -> None:
    mine = world.paid_invoice()
    address = mine.address.lower()
    custody = net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum"))

    cursors.halt("ethereum", "a test")
    world.keep()
    assert world.spends("purpose") == [], "nothing is signed while the scan is halted"
    cursors.resume("ethereum")
    world.keep()
    assert world.spends("purpose", "sender", "recipient") == [("gas", world.hot, address)]
    assert swept_by(world) == [None]
    world.follow()
    world.keep()
    assert world.spends("purpose", "state")[-1] == ("sweep", "sent")
    assert swept_by(world) == ["sent"]
    world.follow()
    world.keep()
    world.bury()

    assert (world.tokens(address), world.tokens(world.hot)) == (0, USDT_UNITS)
    assert world.spends("purpose", "state") == [("gas", "confirmed"), ("sweep", "confirmed")]
    assert net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == custody
    assert len(topup_rows()) == 1
    assert len(world.deposits()) == 1
    world.assert_agreed()


def test_each_treasury_spend_knows_the_last_scanned_block(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paid_invoice()
    seen, real = [], EvmTreasurer.step

    def noting(treasurer: EvmTreasurer, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        seen.append(lying.scanned)
        return real(treasurer, lying, hot, cap_units=cap_units)

    monkeypatch.setattr(EvmTreasurer, "step", noting)
    world.keep()
    assert seen == [sign.scanned(world.network)]


def test_coin_is_swept_less_its_fee_and_nothing_is_invented(world: TreasuryWorld) -> None:
    mine = world.paid_invoice(2 * ETHER, currency="ETH")
    address = mine.address.lower()
    before = world.coin(world.hot)
    world.keep_and_follow()

    assert world.spends("purpose", "state") == [("sweep", "mined")]
    left = world.coin(address)
    assert 0 < left < ETHER // 100
    assert world.coin(world.hot) > before + 2 * ETHER - ETHER // 50
    world.probe()
    world.bury()
    world.probe()
    world.keep()
    assert len(world.deposits()) == 1
    assert len(world.spends()) == 1
    world.assert_agreed()


def test_several_deposits_at_one_address_take_one_sweep(world: TreasuryWorld) -> None:
    mine = world.paid_invoice()
    world.pay(mine, 3 * USDT_UNITS)
    world.confirm_sent()
    world.keep_and_follow(2)

    assert world.tokens(world.hot) == 4 * USDT_UNITS
    assert len(set(rows("SELECT sweep_id FROM deposits"))) == 1


def test_a_repeated_step_starts_nothing_twice(world: TreasuryWorld) -> None:
    world.paid_invoice()
    world.keep()
    world.keep()
    assert world.spends("purpose") == [("gas",)]
    world.follow()
    world.keep()
    world.keep()
    assert world.spends("purpose") == [("gas",), ("sweep",)]


def test_a_deposit_that_arrives_during_the_signature_stops_the_sweep(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = world.paid_invoice()
    world.keep_and_follow()
    honest = sweeps.take

    def late(network: str, unswept: sweeps.Unswept, spend_id: object) -> bool:
        execute("UPDATE deposits SET amount_units = amount_units + 1 WHERE address = %s", (unswept.address,))
        return honest(network, unswept, spend_id)  # type: ignore[arg-type]

    monkeypatch.setattr(sweeps, "take", late)
    world.keep()

    assert world.spends("purpose") == [("gas",)]
    assert rows("SELECT sweep_id, amount_units FROM deposits") == [(None, 10 * 10**18)]
    assert world.tokens(mine.address.lower()) == USDT_UNITS


def test_small_deposits_and_expensive_gas_wait(database: str, anvil: Callable[..., Anvil]) -> None:
    dear = {"SWEEP_MIN_USD": "11", "SWEEP_FEE_MAX_PERCENT": "5"}
    for world in TreasuryWorld(database, anvil, **dear).opened():
        mine = world.paid_invoice()
        world.keep()
        assert world.spends() == []
        # Two dollars more make it worth a sweep, but not while gas takes a fifth.
        world.pay(mine, 2 * USDT_UNITS // 10)
        world.confirm_sent()
        execute("UPDATE network_fees SET sweep_units = 2 * 10::numeric ^ 18 WHERE currency = 'USDT'")
        context.context().market.forget()
        world.keep()
        assert world.spends() == []
        network_fees.refresh_network_fees("ethereum")
        context.context().market.forget()
        world.keep()
        assert world.spends("purpose") == [("gas",)]


def test_without_gas_no_sweep_is_made_and_no_step_fails(database: str, anvil: Callable[..., Anvil]) -> None:
    for world in TreasuryWorld(database, anvil).opened(gas_wei=0):
        world.paid_invoice()
        world.keep()
        assert world.spends() == []


def test_a_hot_wallet_short_of_gas_is_asked_once_a_step(database: str, anvil: Callable[..., Anvil]) -> None:
    for world in TreasuryWorld(database, anvil).opened(gas_wei=0):
        for _ in range(2):
            world.paid_invoice()
        with structlog.testing.capture_logs() as logs:
            world.keep()
        assert [log["event"] for log in logs].count("sweep.hot_wallet_short") == 1


def test_an_address_with_less_than_its_deposits_is_not_swept(world: TreasuryWorld) -> None:
    mine = world.paid_invoice()
    world.drain(mine.address.lower(), 1)
    with structlog.testing.capture_logs() as logs:
        world.keep_and_follow(2)
    assert world.spends() == []
    assert {log["event"] for log in logs if log["log_level"] != "info"} == {"sweep.balance_short"}


def test_the_excess_goes_to_the_cold_address_less_the_sums_of_payouts(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    env = {"ETHEREUM_COLD_ADDRESS": COLD, "HOT_LIMIT_USD": "3"}
    for world in TreasuryWorld(database, anvil, **env).opened(gas_wei=2 * ETHER):
        world.send(world.hot, 20 * USDT_UNITS)
        world.advance()
        world.keep()
        assert world.spends("purpose", "currency", "recipient") == [("cold", "USDT", COLD)]
        with structlog.testing.capture_logs() as logs:
            world.keep()
        assert (len(world.spends()), logs) == (1, []), "nor was it tried"
        world.follow()
        world.bury()

        assert (world.tokens(world.hot), world.tokens(COLD)) == (3_000_000, 197_000_000)
        assert addresses.is_cold("ethereum", COLD)
        assert net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == -200 * 10**18
        world.assert_agreed()


def test_a_signer_with_another_wallet_does_nothing(world: TreasuryWorld) -> None:
    world.paid_invoice()
    execute("UPDATE treasury_addresses SET address = '0xother'")
    world.keep()
    assert world.spends() == []
    execute("UPDATE treasury_addresses SET address = %s", (held_keys.keys().hot_address(world.network),))


def test_a_token_is_swept_on_a_network_that_does_not_offer_its_gas_coin(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    for world in TreasuryWorld(database, anvil, network="base").opened(gas_wei=0):
        world.reconcile()
        world.node.ask("anvil_setBalance", world.hot, hex(ETHER))
        world.paid_invoice()
        world.keep_and_follow(2)
        world.bury()
        assert world.tokens(world.hot) == USDT_UNITS
        world.assert_agreed(4)
        assert world.frozen() == []


def test_while_the_network_is_frozen_nothing_goes_to_the_hot_wallet(world: TreasuryWorld) -> None:
    world.paid_invoice()
    freezes.freeze("network", "ethereum", reason="the key leaked", frozen_by="operator")
    world.keep()
    assert world.spends() == []
    freezes.unfreeze("network", "ethereum")
    world.keep()
    assert world.spends("purpose") == [("gas",)]


def test_a_signer_that_dies_during_the_signature_has_taken_no_deposit(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paid_invoice()
    world.keep_and_follow()

    def die(label: str) -> None:
        if label == "spending.signed":
            raise KeyboardInterrupt

    monkeypatch.setattr(sign, "reached", die)
    with pytest.raises(KeyboardInterrupt):
        world.keep()
    assert swept_by(world) == [None]
    assert world.spends("purpose") == [("gas",)]

    monkeypatch.undo()
    world.keep()
    assert swept_by(world) == ["sent"]


def test_a_sweep_that_a_reorg_takes_is_sent_again_and_counted_once(world: TreasuryWorld) -> None:
    mine = world.paid_invoice()
    world.keep_and_follow(2)
    assert world.tokens(world.hot) == USDT_UNITS
    world.reconcile()

    world.reorg(1)
    world.advance()
    world.reconcile()
    assert world.tokens(world.hot) == 0
    assert world.findings() == []
    world.watch()
    world.follow()
    world.keep()
    world.bury()
    world.probe()
    world.reconcile()

    assert (world.tokens(world.hot), world.tokens(mine.address.lower())) == (USDT_UNITS, 0)
    # The third brings home the rest of the gas.
    assert world.spends("currency", "state")[:2] == [("ETH", "confirmed"), ("USDT", "confirmed")]
    assert [currency for (currency,) in world.spends("currency")].count("USDT") == 1
    assert world.findings() == []
    assert len(world.deposits()) == 1


def test_a_sweep_whose_deposit_a_reorg_takes_returns_it(world: TreasuryWorld) -> None:
    mine = world.invoice()
    txid, raw = world.signed(mine.address.lower(), USDT_UNITS)
    world.node.ask("eth_sendRawTransaction", raw)
    world.confirm_sent()
    world.keep_and_follow()
    world.keep_and_follow()
    depth = world.node.height() - int(world.node.receipt(txid)["blockNumber"], 16) + 1
    world.reorg(depth)
    world.advance()
    for _ in range(3):
        # The gas has to be there again before a node takes the sweep.
        world.pass_time(10)
        world.follow()
    world.bury()

    assert world.spends("purpose", "state") == [("gas", "confirmed"), ("sweep", "failed")]
    assert rows("SELECT status, sweep_id FROM deposits") == [("reversed", None)]
    world.node.ask("eth_sendRawTransaction", raw)
    world.confirm_sent()
    world.keep_and_follow()
    world.bury()
    assert world.tokens(world.hot) == USDT_UNITS
    world.assert_agreed()


def test_fundings_that_are_never_enough_are_bounded(world: TreasuryWorld) -> None:
    address = world.paid_invoice().address.lower()
    # The node reports an empty address, despite its coin.
    world.providers[0].lies["eth_getBalance"] = lambda truth, params: "0x0" if params[0].lower() == address else truth
    world.keep_and_follow(funding.FUNDINGS_MAX + 2)
    given = [units for purpose, units in world.spends("purpose", "token_units") if purpose == "gas"]
    assert len(given) == funding.FUNDINGS_MAX
    assert world.coin(address) == sum(given)


def test_an_address_that_others_may_sign_for_freezes_the_network(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paid_invoice()
    lost = Mock(step=Mock(side_effect=ForeignKeyError("others may sign")))
    monkeypatch.setattr(registry, "treasurer", lambda *_: lost)
    world.keep()
    assert freezes.is_network_frozen("ethereum")
    world.keep()

    assert lost.step.call_count == 1
    assert world.spends("purpose") == []
