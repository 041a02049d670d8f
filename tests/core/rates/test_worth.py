"""Decides when a sweep pays, how much gas it gets and what the hot wallet may keep."""

from __future__ import annotations

import pytest

from core.rates.worth import SweepPolicy, excess_units, judge_sweep, usd_cents, usd_units

USDT = 10**18
DOLLAR = 10**18
POLICY = SweepPolicy(min_usd=20, fee_max_percent=5)


@pytest.mark.parametrize(
    ("units", "cost", "rate", "wanted", "verdict"),
    [
        (20 * USDT, USDT, DOLLAR, False, "sweep"),
        (20 * USDT - 1, USDT, DOLLAR, False, "too_small"),
        (20 * USDT, USDT + 1, DOLLAR, False, "fee_too_high"),
        (2 * USDT, USDT // 10, DOLLAR, True, "sweep"),
        (2 * USDT, USDT, DOLLAR, True, "fee_too_high"),
        (20 * USDT, None, DOLLAR, False, "unpriced"),
        (20 * USDT, USDT, None, False, "unpriced"),
        (20 * USDT, USDT, None, True, "sweep"),
    ],
)
def test_an_address_is_swept_once_it_is_worth_it(
    units: int, cost: int | None, rate: int | None, *, wanted: bool, verdict: str
) -> None:
    judged = judge_sweep(units, cost_units=cost, rate=rate, scale=18, policy=POLICY, is_wanted=wanted)
    assert judged == verdict


def test_dollars_convert_to_units_of_a_coin() -> None:
    ether_at_3000 = 3000 * DOLLAR
    assert usd_cents(10**18, rate=ether_at_3000, scale=18) == 300_000
    assert usd_cents(10**18 - 1, rate=ether_at_3000, scale=18) == 299_999
    assert usd_units(3000, rate=ether_at_3000, scale=18) == 10**18
    assert usd_units(1, rate=ether_at_3000, scale=18) == 333333333333334


@pytest.mark.parametrize(
    ("units", "needed", "excess"),
    [(100, 0, 0), (150, 0, 0), (151, 0, 51), (151, 1, 0), (400, 100, 200), (99, 500, 0)],
)
def test_the_hot_wallet_keeps_its_limit_and_the_sums_of_payouts(units: int, needed: int, excess: int) -> None:
    spare = excess_units(held_units=units * USDT, limit_usd=100, needed_units=needed * USDT, rate=DOLLAR, scale=18)
    assert spare == excess * USDT


def test_without_a_rate_no_coin_goes_to_the_cold_address() -> None:
    assert excess_units(held_units=10**30, limit_usd=0, needed_units=0, rate=None, scale=18) == 0
