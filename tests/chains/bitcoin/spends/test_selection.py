"""Choosing coins and change: nothing is lost, nothing is spent twice, and it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chains.bitcoin.scripts import script_of
from chains.bitcoin.spends.selection import (
    COINS_WANTED,
    PART_MIN_UNITS,
    Bill,
    Choice,
    ShortError,
    choose,
    is_costly,
)
from chains.bitcoin.spends.sizes import INPUT_VBYTES, VBYTES_MAX
from chains.bitcoin.transactions import BASE_WEIGHT, Tx, TxInput, TxOutput
from chains.spending import Coin, CoinsTooSmallError, FeeTooHighError
from tests.chains.bitcoin.spends.samples import COIN, RECIPIENTS, coin

SCRIPTS = [script_of(to, "regtest") for to in RECIPIENTS]
CAP = 300
DUST = 294

coins_of = st.lists(st.integers(1, 10 * COIN), max_size=60).map(
    lambda units: [coin(number + 1, each) for number, each in enumerate(units)]
)
rates: st.SearchStrategy[int] = st.integers(1_000, CAP * 1_000)


@st.composite
def bills(draw: st.DrawFn) -> Bill:
    scripts = draw(st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=100))
    units = draw(st.integers(len(scripts) * 600, 20 * COIN))
    return Bill(scripts=tuple(scripts), units=units, rate=draw(rates), cap_units=CAP)


def total(coins: list[Coin] | tuple[Coin, ...]) -> int:
    return sum(each.units for each in coins)


def assert_sound(choice: Choice, bill: Bill) -> None:
    """Check a choice: inputs equal outputs, coins are in order, the fee is between rate and cap, change is not dust."""
    places = [(each.txid, each.vout) for each in choice.coins]
    vbytes = bill.size(len(places), choice.change_parts)
    assert places == sorted(set(places))
    assert total(choice.coins) == bill.units + choice.change_units + choice.fee_units
    assert -(-bill.rate * vbytes // 1_000) <= choice.fee_units <= CAP * vbytes
    assert vbytes <= VBYTES_MAX
    assert (choice.change_parts > 0) == (choice.change_units > 0)
    assert choice.change_parts <= COINS_WANTED
    if choice.change_parts == 1:
        assert choice.change_units >= DUST
    if choice.change_parts > 1:
        assert choice.change_units // choice.change_parts >= PART_MIN_UNITS


def chosen(bill: Bill, free: list[Coin]) -> Choice | ShortError | FeeTooHighError:
    try:
        return choose(bill, free)
    except (ShortError, FeeTooHighError) as error:
        return error


@given(bills(), coins_of)
def test_inputs_equal_outputs_and_fee(bill: Bill, free: list[Coin]) -> None:
    match chosen(bill, free):
        case ShortError() as error:
            worth = [each for each in free if each.units > -(-INPUT_VBYTES * bill.rate // 1_000)]
            assert error.missing_units == bill.units + bill.fee(len(worth)) - total(worth) > 0
        case CoinsTooSmallError():
            # There is enough, at a lower rate.
            assert total(free) > bill.units
        case FeeTooHighError():
            # The rest is too small for change, and too large for a fee this near the cap.
            assert bill.rate > (CAP - 5) * 1_000
        case Choice() as choice:
            assert_sound(choice, bill)
            assert set(choice.coins) <= set(free)
            # None of them could have been left out.
            least = min(each.units for each in choice.coins)
            assert total(choice.coins) - least < bill.units + bill.fee(len(choice.coins) - 1)


@given(bills(), coins_of, st.randoms(use_true_random=False))
def test_the_same_coins_give_the_same_choice(bill: Bill, free: list[Coin], chance: object) -> None:
    shuffled = sorted(free, key=lambda _: chance.random())  # type: ignore[attr-defined]

    choice, again = chosen(bill, free), chosen(bill, shuffled)
    assert again == choice or str(again) == str(choice)


@given(bills(), coins_of, coins_of, st.integers(1_000, 20_000))
def test_a_replacement_spends_the_same_coins_and_pays_for_its_own_size(
    bill: Bill, free: list[Coin], further: list[Coin], increment: int
) -> None:
    before = chosen(bill, free)
    assume(isinstance(before, Choice))
    assert isinstance(before, Choice)
    later = [coin(1_000 + number, each.units) for number, each in enumerate(further)]
    dearer = replace(bill, before_units=before.fee_units, increment=increment)
    try:
        after = choose(dearer, later, claimed=before.coins, parts_max=max(1, before.change_parts))
    except (ShortError, FeeTooHighError):
        return
    assert_sound(after, dearer)
    assert set(before.coins) <= set(after.coins) <= {*before.coins, *later}
    vbytes = dearer.size(len(after.coins), after.change_parts)
    assert 1_000 * (after.fee_units - before.fee_units) >= increment * vbytes
    assert after.change_parts <= max(1, before.change_parts)


def test_as_many_coins_are_spent_as_nodes_pass_on_and_more_than_that_is_no_shortage() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=1_200 * 99_000, rate=6_000, cap_units=CAP)
    many = [coin(number, 100_000) for number in range(1, 1_601)]

    assert_sound(choose(bill, many), bill)
    with pytest.raises(CoinsTooSmallError, match="more than one transaction"):
        choose(replace(bill, units=1_500 * 99_000), many)
    with pytest.raises(ShortError):
        choose(replace(bill, units=1_700 * 99_000), many)


def test_many_inputs_cost_no_more_than_a_share_of_the_payment() -> None:
    # 200 coins of 24,000 satoshi are worth their fee at 190 satoshi for a byte, and most of them would go to miners.
    bill = Bill(scripts=(SCRIPTS[2],), units=2_200_000, rate=190_000, cap_units=CAP)
    many = [coin(number, 24_000) for number in range(1, 301)]

    with pytest.raises(CoinsTooSmallError, match="that are paid"):
        choose(bill, many)
    assert_sound(choose(bill, [*many, coin(400, 3_000_000)]), bill)
    cheap = replace(bill, rate=5_000)
    assert_sound(choose(cheap, many), cheap)
    # One input for each output is charged for, however small the payout.
    small = replace(bill, units=20_000)
    assert_sound(choose(small, [coin(1, 100_000)]), small)


def test_a_costly_coin_is_spent_only_where_no_other_is_enough() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=1_000_000, rate=10_000, cap_units=CAP)
    costly, fair = 12_000, 60_000
    assert is_costly(costly, bill.rate)
    assert not is_costly(fair, bill.rate)
    large, small, other = coin(1, 1_000_000), coin(2, costly), coin(3, fair)

    assert choose(bill, [large, small, other]).coins == (large, other)
    assert choose(bill, [large, small]).coins == (large, small)


def test_the_last_coin_is_the_smallest_that_is_enough() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=1_050_000, rate=1_000, cap_units=CAP)
    free = [coin(number, units) for number, units in enumerate([1_000_000, 900_000, 70_000, 60_000, 40_000], 1)]

    assert sorted(each.units for each in choose(bill, free).coins) == [60_000, 1_000_000]


def test_change_goes_into_parts_however_many_small_coins_others_sent() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=1_000_000, rate=1_000, cap_units=CAP)
    small = [coin(number, PART_MIN_UNITS - 1) for number in range(2, 20)]
    large = [coin(number, COIN) for number in range(20, 25)]

    assert choose(bill, [coin(1, 2 * COIN), *small]).change_parts == COINS_WANTED
    assert choose(bill, [coin(1, 2 * COIN), *small, *large]).change_parts == COINS_WANTED - len(large)


def test_a_coin_that_costs_more_than_it_brings_is_not_spent() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=100_000, rate=100_000, cap_units=CAP)
    costly = [coin(number, 6_800) for number in range(1, 100)]

    with pytest.raises(CoinsTooSmallError):
        choose(bill, costly)


def test_near_the_cap_the_rest_is_change_even_if_it_costs_its_worth() -> None:
    bill = Bill(scripts=(SCRIPTS[2],), units=100_000, rate=300_000, cap_units=CAP)
    left = bill.fee(1, 1) + 1_000
    choice = choose(bill, [coin(1, 100_000 + left)])

    assert (choice.change_units, choice.change_parts) == (1_000, 1)
    with pytest.raises(FeeTooHighError):
        choose(bill, [coin(1, 100_000 + bill.fee(1) + 100)])


@given(st.integers(1, 300), st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=100), st.integers(0, 300))
def test_a_size_is_that_of_the_transaction(inputs: int, scripts: list[bytes], change: int) -> None:
    bill = Bill(scripts=tuple(scripts), units=1, rate=1_000, cap_units=CAP)
    witness = (b"\0" * 71, b"\0" * 33)
    tx = Tx(
        version=2,
        inputs=tuple(TxInput(txid=f"{number:064x}", vout=0, sequence=0, witness=witness) for number in range(inputs)),
        outputs=tuple(TxOutput(units=1, script=script) for script in [*scripts, *[SCRIPTS[2]] * change]),
        lock_time=0,
    )

    assert bill.size(inputs, change) == -(-tx.weight // BASE_WEIGHT) == tx.vsize
