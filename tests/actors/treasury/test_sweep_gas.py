"""Gives a token's sweep the gas of its own offer, of which hardly any is left over. On a real node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from actors import context
from actors.rates import network_fees
from chains.spending import SpendRefusedError
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from tests.actors.scan.world import ETHER
from tests.actors.treasury.test_guards import refusing
from tests.actors.treasury.world import TreasuryWorld

GWEI = 10**9


def price(world: TreasuryWorld, gwei: int) -> None:
    """Set the price of the next block."""
    world.node.ask("anvil_setNextBlockBaseFeePerGas", hex(gwei * GWEI))


def sweep(world: TreasuryWorld, made: Any, *, gwei: tuple[int, int] = (20, 20)) -> None:
    """Fund and sweep an address, each at its own price."""
    for each in gwei:
        price(world, each)
        world.advance()
        price(world, each)
        world.keep()
        price(world, each)
        world.follow()
    assert world.tokens(made.address.lower()) == 0


def given(world: TreasuryWorld, made: Any) -> list[int]:
    """Return the gas that an address was given."""
    return [
        int(units)
        for purpose, recipient, units in world.spends("purpose", "recipient", "token_units")
        if (purpose, recipient) == ("gas", made.address.lower())
    ]


def collected(world: TreasuryWorld) -> list[str]:
    """Return the senders of returned coin."""
    return [sender for purpose, sender, coin in world.spends("purpose", "sender", "currency") if coin == "ETH" and
            purpose == "sweep"]  # fmt: skip


def test_hardly_any_of_a_sweeps_gas_is_left_over(world: TreasuryWorld) -> None:
    """Five sixths were left once. A quarter above the price is allowed for; the token refunds some of its gas."""
    made = world.paid_invoice()
    sweep(world, made)
    (gas,) = given(world, made)
    left = world.coin(made.address.lower())
    assert 0 < left < gas / 3
    # The transfer's actual fee.
    (cost,) = [int(fee) for purpose, fee in world.spends("purpose", "chain_fee_units") if purpose == "sweep"]
    assert cost == gas - left
    world.assert_agreed()


def test_given_gas_pays_after_the_price_has_risen(world: TreasuryWorld) -> None:
    made = world.paid_invoice()
    sweep(world, made, gwei=(20, 22))
    assert len(given(world, made)) == 1
    ((price_wei, tip_wei),) = rows(
        "SELECT (a.terms ->> 'price_units')::numeric, (a.terms ->> 'tip_units')::numeric"
        " FROM spend_attempts a JOIN spends s ON s.id = a.spend_id"
        " WHERE s.purpose = 'sweep'"
    )
    assert tip_wei <= price_wei - 22 * GWEI


def test_an_address_gets_only_the_missing_gas(world: TreasuryWorld) -> None:
    made = world.paid_invoice()
    price(world, 20)
    world.keep_and_follow()
    sweep(world, made, gwei=(60, 60))
    first, second = given(world, made)
    assert first * 2 * 9 // 10 < second < first * 2 * 11 // 10


def test_left_over_gas_pays_for_the_next_sweep_of_the_address(world: TreasuryWorld) -> None:
    made = world.paid_invoice()
    sweep(world, made)
    left = world.coin(made.address.lower())
    world.pay(made)
    world.confirm_sent()
    sweep(world, made)
    first, second = given(world, made)
    # The second transfer finds tokens in the hot wallet, and needs less gas than the first.
    assert second <= first - left


def test_a_sweep_whose_fee_became_too_high_gets_no_gas(database: str, anvil: Callable[..., Anvil]) -> None:
    """The plan judges by the last quotes; the actual offer may be higher by then."""
    for world in TreasuryWorld(database, anvil, SWEEP_FEE_MAX_PERCENT="5").opened():
        execute("UPDATE rates SET usd = 3000 WHERE currency = 'ETH'")
        context.context().market.forget()
        price(world, 1)
        world.paid_invoice()
        price(world, 1)
        world.advance()
        network_fees.refresh_network_fees("ethereum")
        context.context().market.forget()
        # About 70 000 gas at 40 gwei are 8 of the 10 dollars.
        price(world, 40)
        world.keep()
        assert world.spends() == []
        price(world, 1)
        world.keep()
        assert world.spends("purpose") == [("gas",)]


def test_left_over_gas_returns_once_it_is_worth_its_fee(world: TreasuryWorld) -> None:
    made = world.paid_invoice()
    sweep(world, made)
    address, left = made.address.lower(), world.coin(made.address.lower())
    world.advance()
    for gwei in (20, 12):
        price(world, gwei)
        world.keep()
        assert collected(world) == [], "most of it would be the fee"

    price(world, 2)
    before = world.coin(world.hot)
    world.keep()
    assert collected(world) == [address]
    price(world, 2)
    world.follow()
    world.watch()
    assert world.coin(address) < left / 10
    assert world.coin(world.hot) > before + left / 2
    world.keep()
    world.bury()
    world.assert_agreed()
    assert len(collected(world)) == 1


def test_gas_at_an_address_with_deposits_is_left_for_their_sweep(world: TreasuryWorld) -> None:
    made = world.paid_invoice()
    sweep(world, made)
    world.pay(made, 1)
    world.advance()
    price(world, 2)
    world.keep()
    assert collected(world) == []


def test_gas_returns_even_if_the_network_does_not_offer_its_coin(database: str, anvil: Callable[..., Anvil]) -> None:
    for world in TreasuryWorld(database, anvil, network="base").opened(gas_wei=0):
        world.reconcile()
        world.node.ask("anvil_setBalance", world.hot, hex(ETHER))
        made = world.paid_invoice()
        sweep(world, made, gwei=(10, 10))
        price(world, 1)
        world.keep()
        assert collected(world) == [made.address.lower()]
        price(world, 1)
        world.follow()
        world.bury()
        world.assert_agreed(4)
        assert world.frozen() == []


def test_only_explained_coin_counts_as_left_over_gas(world: TreasuryWorld) -> None:
    """Any other coin has an owner, which the probes find."""
    made = world.paid_invoice()
    sweep(world, made)
    world.node.ask("anvil_setBalance", made.address.lower(), hex(ETHER))
    price(world, 2)
    world.advance()
    price(world, 2)
    world.keep()
    assert [units < ETHER // 100 for purpose, units, coin in world.spends("purpose", "token_units", "currency")
            if (purpose, coin) == ("sweep", "ETH")] == [True]  # fmt: skip


def test_an_address_whose_gas_cannot_return_delays_no_other(
    world: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [world.paid_invoice() for _ in range(2)]
    sweep(world, both[0])
    refusing(monkeypatch, SpendRefusedError("the hot wallet does not want it"), purpose="sweep", times=1)
    price(world, 1)
    world.keep()
    assert len(collected(world)) == 1


def test_gas_below_the_last_quoted_fee_is_not_asked_about(world: TreasuryWorld) -> None:
    for _ in range(2):
        sweep(world, world.paid_invoice())
    price(world, 20)
    before = len(world.providers[0].asked)
    world.keep()
    assert collected(world) == []
    assert world.providers[0].asked[before:].count("eth_estimateGas") == 1
