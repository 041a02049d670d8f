"""The verdict of an EVM network's treasurer on a deposit address's balance, on a real chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chains.evm.spends.terms import gas_offer
from chains.spending import Fund, KeyRef, Lying, Output, Sweep, Wait
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_token
from tests.chains.conftest import CATALOGUE, OURS
from tests.chains.evm.spends.test_gas import oracle
from tests.chains.evm.spends.world import CAP, ETHER, GWEI, HOT, World, rolled_up, world
from tests.peers.anvil import HandMined

WALLET = KeyRef(address=OURS, ordinal=7)
POOL = KeyRef(address=HOT, ordinal=None)
LYING_UNITS = 5_000_000


def lying(scene: World, units: int = LYING_UNITS, *, currency: str | None = "USDT", is_rest: bool = False) -> Lying:
    header = scene.node.ask("eth_getBlockByNumber", "latest", False)
    pair = None if currency is None else CATALOGUE.pairs[currency, scene.network]
    height, block_hash = int(header["number"], 16), header["hash"]
    return Lying(key=WALLET, pair=pair, units=units, is_rest=is_rest, height=height, block_hash=block_hash)


def with_tokens(scene: World, *, gas_wei: int = 0) -> None:
    install_token(
        scene.node.rpc, CATALOGUE.pairs["USDT", scene.network], balances={OURS: LYING_UNITS, HOT: LYING_UNITS}
    )
    scene.node.ask("anvil_setBalance", OURS, hex(gas_wei))
    scene.node.mine()


def step(scene: World, what: Lying) -> Any:
    return scene.treasurer.step(what, POOL, cap_units=CAP)


def test_a_token_without_gas_gets_the_fee_of_its_sweep(alone: World) -> None:
    with_tokens(alone)
    fund = step(alone, lying(alone))

    assert isinstance(fund, Fund)
    assert (fund.intent.wallet, fund.intent.pair) == (POOL, None)
    assert [output.recipient for output in fund.intent.outputs] == [OURS]
    offer = alone.treasurer.frugal(alone.intent(LYING_UNITS), cap_units=CAP, held_units=0)
    # The transaction that brings it is paid for too.
    assert fund.cost_units - fund.intent.units == 21_000 * offer.terms["price_units"]

    # With exactly that it leaves, to the last unit.
    alone.node.ask("anvil_setBalance", OURS, hex(fund.intent.units))
    alone.node.mine()
    sweep = step(alone, lying(alone))
    assert isinstance(sweep, Sweep)
    assert sweep.draft.intent.wallet == WALLET
    assert sweep.draft.intent.outputs == (Output(recipient=HOT, units=LYING_UNITS),)
    assert sweep.draft.offer.ceiling_units <= fund.intent.units


def test_gas_that_an_address_has_is_not_sent_again(alone: World) -> None:
    with_tokens(alone)
    whole = step(alone, lying(alone))
    alone.node.ask("anvil_setBalance", OURS, hex(whole.intent.units // 4))
    rest = step(alone, lying(alone))
    assert rest.intent.units == whole.intent.units - whole.intent.units // 4


def test_an_address_that_holds_less_than_its_deposits_waits(alone: World) -> None:
    with_tokens(alone, gas_wei=ETHER)
    assert step(alone, lying(alone, LYING_UNITS + 1)) == Wait(reason="short")


def test_a_rollups_data_is_in_what_a_funding_costs(anvil: Callable[..., Anvil]) -> None:
    node = HandMined(anvil("base", block_time_s=None).url)
    with world(node, network="base", catalogue=rolled_up()) as scene:
        with_tokens(scene)
        scene.providers[0].lies["eth_call"] = oracle(1_000 * GWEI)
        fund = step(scene, lying(scene))
        offer = scene.treasurer.frugal(scene.intent(LYING_UNITS), cap_units=CAP, held_units=0)
        assert offer.terms["data_units"] == 2_000 * GWEI
        assert fund.cost_units - fund.intent.units == 21_000 * offer.terms["price_units"] + 2_000 * GWEI


@pytest.mark.parametrize("explained_wei", [ETHER, 3 * ETHER], ids=["what rows explain", "what is there"])
def test_coin_leaves_less_its_fee_and_no_more_than_every_account_has(alone: World, explained_wei: int) -> None:
    alone.node.ask("anvil_setBalance", OURS, hex(2 * ETHER))
    alone.node.mine()
    sweep = step(alone, lying(alone, explained_wei, currency=None))
    assert isinstance(sweep, Sweep)
    assert sweep.draft.intent.pair is None
    assert sweep.draft.intent.units == min(explained_wei, 2 * ETHER) - sweep.draft.offer.ceiling_units


def test_coin_that_left_since_the_scan_is_not_counted_on(alone: World) -> None:
    alone.node.ask("anvil_setBalance", OURS, hex(2 * ETHER))
    alone.node.mine()
    what = lying(alone, 2 * ETHER, currency=None)
    alone.node.mine()
    alone.node.ask("anvil_setBalance", OURS, hex(ETHER))
    sweep = step(alone, what)
    assert sweep.draft.intent.units + sweep.draft.offer.ceiling_units == ETHER


@pytest.mark.parametrize("is_rest", [False, True])
def test_a_rest_leaves_once_as_much_arrives_as_its_fee_may_be(alone: World, *, is_rest: bool) -> None:
    alone.node.ask("anvil_setBalance", OURS, hex(ETHER))
    alone.node.mine()
    ceiling = step(alone, lying(alone, ETHER, currency=None)).draft.offer.ceiling_units

    def step_of(units: int) -> Any:
        return step(alone, lying(alone, units, currency=None, is_rest=is_rest))

    least = 2 * ceiling if is_rest else ceiling + 1
    assert isinstance(step_of(least), Sweep)
    assert step_of(least - 1) == Wait(reason="dear", cost_units=ceiling)
    # Rows may lag behind what our own spends took.
    assert isinstance(step_of(-1), Wait)


def test_who_lacks_part_of_a_fee_is_sent_that_and_never_what_was_to_move(alone: World) -> None:
    offer = gas_offer(gas_limit=21_000, price_units=GWEI, tip_units=1)

    def relief(wallet: KeyRef, missing_units: int) -> Any:
        return alone.treasurer.relief(wallet, POOL, offer=offer, missing_units=missing_units)

    fund = relief(WALLET, offer.ceiling_units)
    assert isinstance(fund, Fund)
    assert (fund.intent.wallet, fund.intent.outputs) == (POOL, (Output(recipient=OURS, units=offer.ceiling_units),))
    assert isinstance(relief(WALLET, offer.ceiling_units + 1), Wait)
    assert isinstance(relief(POOL, 1), Wait), "nobody sends the hot wallet its own"
