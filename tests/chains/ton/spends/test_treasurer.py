"""Balances of deposit addresses are swept: first coin for the fee, then the address's own first request."""

from __future__ import annotations

import pytest

from chains.spending import Fund, Offer, Sweep, Wait
from core.catalogue.catalogue import Pair
from tests.chains.ton.spends.world import CAP, HOT_KEY, OURS, USDT, World, lying, moved
from tests.peers.ton.chain import TON

YEAR_S = 365 * 86_400


def funded(ton: World, units: int) -> Fund:
    """Have the hot wallet send what a sweep of jettons lacks."""
    step = ton.treasurer.step(lying(units, USDT), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Fund)
    assert ton.paid(step.intent)[2].is_success
    return step


def test_jettons_are_swept_after_coin_for_their_way(ton: World) -> None:
    ton.ton.give_tokens(OURS.address, 9_000)
    ton.chain.settle()
    hot, jettons = ton.units(HOT_KEY.address), ton.jettons(HOT_KEY.address)

    step = funded(ton, 9_000)
    draft, attempt, fate = ton.swept(ton.treasurer.step(lying(9_000, USDT), HOT_KEY, cap_units=CAP))

    assert fate.is_success
    assert (ton.jettons(OURS.address), ton.jettons(HOT_KEY.address)) == (0, jettons + 9_000)
    assert fate.fee_units <= draft.offer.ceiling_units
    assert attempt.mark
    # The rest of the coin came home with the jettons: both steps cost less than they were said to.
    assert hot - ton.units(HOT_KEY.address) - ton.units(OURS.address) <= step.cost_units
    assert ton.units(OURS.address) < TON // 50


def test_a_second_sweep_of_jettons_needs_less(ton: World) -> None:
    ton.ton.give_tokens(OURS.address, 9_000)
    ton.chain.settle()
    first = funded(ton, 9_000)
    ton.swept(ton.treasurer.step(lying(9_000, USDT), HOT_KEY, cap_units=CAP))
    ton.ton.give_tokens(OURS.address, 50)
    ton.chain.settle()

    second = funded(ton, 50)

    assert second.intent.units < first.intent.units
    assert ton.swept(ton.treasurer.step(lying(50, USDT), HOT_KEY, cap_units=CAP))[2].is_success


def test_coin_leaves_less_its_fee_and_the_rest_pays_the_rent(ton: World) -> None:
    ton.ton.give(OURS.address, 3 * TON)
    ton.chain.settle()
    before = ton.units(HOT_KEY.address)

    draft, _, fate = ton.swept(ton.treasurer.step(lying(3 * TON, None), HOT_KEY, cap_units=CAP))

    assert fate.is_success
    assert draft.intent.units == 3 * TON - draft.offer.ceiling_units
    [*_, receipt] = ton.ran(HOT_KEY.address)
    assert ton.units(HOT_KEY.address) == before + draft.intent.units - receipt.total_fees
    assert 0 < ton.units(OURS.address) == draft.offer.ceiling_units - fate.fee_units
    assert moved(fate) == {
        (OURS.address, "TON"): -draft.intent.units - fate.fee_units,
        (HOT_KEY.address, "TON"): draft.intent.units,
    }


def test_no_more_is_swept_than_the_rows_or_the_chain_know(ton: World) -> None:
    ton.ton.give(OURS.address, 3 * TON)
    ton.ton.give_tokens(OURS.address, 9)
    ton.chain.settle()
    for units in (2 * TON, 4 * TON):
        step = ton.treasurer.step(lying(units, None), HOT_KEY, cap_units=CAP)
        assert isinstance(step, Sweep)
        assert step.draft.intent.units == min(units, 3 * TON) - step.draft.offer.ceiling_units
    for units, pair in ((10, USDT), (-1, None), (0, None), (0, USDT)):
        assert ton.treasurer.step(lying(units, pair), HOT_KEY, cap_units=CAP) == Wait(reason="short")


@pytest.mark.parametrize("is_rest", [True, False])
def test_a_rest_has_to_be_worth_its_fee(ton: World, *, is_rest: bool) -> None:
    ton.ton.give(OURS.address, TON)
    ton.chain.settle()
    fee = ton.treasurer.step(lying(1, None), HOT_KEY, cap_units=CAP)
    assert isinstance(fee, Wait)
    assert (fee.reason, 0 < fee.cost_units < TON // 100) == ("dear", True)
    units = fee.cost_units * 3 // 2
    step = ton.treasurer.step(lying(units, None, is_rest=is_rest), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Wait if is_rest else Sweep)


@pytest.mark.parametrize("pair", [USDT, None], ids=["USDT", "TON"])
def test_an_address_without_anything_holds_nothing(ton: World, pair: Pair | None) -> None:
    step = ton.treasurer.step(lying(1, pair), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Wait)
    assert step.reason == ("short" if pair else "dear")


def test_storage_debt_is_paid_by_the_coin_for_the_fee(ton: World) -> None:
    """A deposit wallet with its contract and almost no coin owes rent for years, which the next coin pays first."""
    ton.ton.give(OURS.address, TON)
    ton.chain.settle()
    ton.swept(ton.treasurer.step(lying(TON, None), HOT_KEY, cap_units=CAP))
    ton.chain.advance(6 * YEAR_S)
    ton.ton.give_tokens(OURS.address, 9_000)
    ton.chain.settle()

    step = funded(ton, 9_000)
    # Coin that may bounce comes after the rent is taken: the debt stays for the sweep.
    assert ton.ran(OURS.address)[-1].storage_due > TON // 25
    assert step.intent.units > TON // 20
    again = ton.treasurer.step(lying(9_000, USDT), HOT_KEY, cap_units=CAP)
    assert isinstance(again, Sweep)
    draft, _, fate = ton.swept(again)
    assert fate.is_success
    assert TON // 25 < fate.fee_units <= draft.offer.ceiling_units
    assert ton.jettons(OURS.address) == 0


def test_an_offer_is_never_raised_so_that_no_wallet_needs_relief(ton: World) -> None:
    offer = Offer(ceiling_units=5, terms={})
    assert ton.treasurer.relief(OURS, HOT_KEY, offer=offer, missing_units=1) == Wait(reason="short", cost_units=5)
