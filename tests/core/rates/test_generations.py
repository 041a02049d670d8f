"""The pure rules of generations give the same quotes as a tick every second, in any history."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.rates import generations
from core.rates.generations import Generation, Priced
from core.rates.pricing import Quote
from tests.core.rates.eager import EagerInvoice

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
STEP_S = 60
FRESH_S = 300


def after(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


class KeptRates:
    """Rates by the second at which each came into force, fresh for FRESH_S; counts the lookups."""

    def __init__(self, units_by_second: dict[int, int]) -> None:
        self._seconds = sorted(units_by_second)
        self._units = units_by_second
        self.asked = 0

    def at(self, moment: datetime, /) -> Quote | None:
        self.asked += 1
        second = int((moment - START).total_seconds())
        place = bisect_right(self._seconds, second)
        if not place or second >= self._seconds[place - 1] + FRESH_S:
            return None
        return Quote(payer_units=self._units[self._seconds[place - 1]], fee_fixed_units=1, discount_ppm=0)

    def next_after(self, moment: datetime, /, *, until: datetime) -> Priced | None:
        for second in self._seconds:
            if moment < after(second) <= until:
                return Priced(after(second), Quote(payer_units=self._units[second], fee_fixed_units=1, discount_ppm=0))
        return None


def first(expires_s: int, quote_s: int = 900) -> Generation:
    quote = Quote(payer_units=100, fee_fixed_units=1, discount_ppm=0)
    return Generation(
        number=1, quote=quote, valid_from=START, rate_expires_at=after(min(quote_s, expires_s)), changed_at=START
    )


def followed(
    rates: KeptRates,
    *,
    until_s: int,
    expires_s: int = 7_200,
    quote_s: int = 900,
    held_s: int | None = None,
    units: int = 0,
) -> list[Generation]:
    return generations.follow(
        first(expires_s, quote_s),
        until=after(until_s),
        expires_at=after(expires_s),
        quote_s=quote_s,
        held_until=None if held_s is None else after(held_s),
        prices=rates,
        is_held=lambda quote: units * 10 >= quote.payer_units,
    )


def every_minute(seconds: int) -> KeptRates:
    return KeptRates({second: 100 + second for second in range(0, seconds, 60)})


def begun(made: list[Generation]) -> list[tuple[int, int]]:
    """Return (number, second of its begin) of each generation."""
    return [(each.number, int((each.valid_from - START).total_seconds())) for each in made]


def test_the_next_generation_begins_when_the_rate_runs_out() -> None:
    rates = every_minute(7_200)

    assert begun(followed(rates, until_s=899)) == [(1, 0)]
    assert begun(followed(rates, until_s=900)) == [(1, 0), (2, 900)]
    assert begun(followed(rates, until_s=2_699)) == [(1, 0), (2, 900), (3, 1_800)]


def test_a_generation_ends_with_its_invoice_and_none_begins_at_its_expiry() -> None:
    ended = followed(every_minute(7_200), until_s=7_200, expires_s=2_000)

    assert begun(ended) == [(1, 0), (2, 900), (3, 1_800)]
    assert ended[-1].rate_expires_at == after(2_000)
    assert begun(followed(every_minute(7_200), until_s=7_200, expires_s=1_800)) == [(1, 0), (2, 900)]


def test_without_rates_a_generation_is_extended_once_and_then_has_no_price() -> None:
    rates = KeptRates({0: 100, 2_345: 80})
    extended = replace(first(7_200), rate_expires_at=after(1_800), is_extended=True, changed_at=after(900))
    unpriced = replace(extended, unpriced_at=after(1_800), changed_at=after(1_800))

    assert followed(rates, until_s=900) == [extended]
    assert followed(rates, until_s=1_799) == [extended]
    assert followed(rates, until_s=1_800) == [unpriced]
    assert followed(rates, until_s=2_344) == [unpriced]
    later = followed(rates, until_s=2_345)
    assert begun(later) == [(1, 0), (2, 2_345)]
    assert (later[-1].rate_expires_at, later[-1].is_extended, later[-1].unpriced_at) == (after(3_245), False, None)


def test_a_held_quote_is_renewed_when_its_payment_is_gone() -> None:
    renewed = followed(every_minute(7_200), until_s=2_000, held_s=1_234)

    assert begun(renewed) == [(1, 0), (2, 1_234)]
    assert renewed[-1].rate_expires_at == after(2_134)
    assert begun(followed(every_minute(7_200), until_s=2_000, held_s=600)) == [(1, 0), (2, 900), (3, 1_800)]


def test_small_sums_hold_the_first_quote_that_they_cover_by_a_tenth() -> None:
    rates = KeptRates({second: 100 if second < 1_700 else 60 for second in range(0, 7_200, 60)})

    assert begun(followed(rates, until_s=7_000, units=5))[-1] == (8, 6_300)
    assert begun(followed(rates, until_s=7_000, units=6)) == [(1, 0), (2, 900), (3, 1_800)]
    assert begun(followed(rates, until_s=7_000, units=10)) == [(1, 0)]


def test_a_12_hour_invoice_asks_for_a_rate_once_a_generation() -> None:
    rates = every_minute(43_200)

    assert len(followed(rates, until_s=43_200, expires_s=43_200)) == 48
    assert rates.asked == 47


def random_rates(chance: random.Random, seconds: int) -> KeptRates:
    """Return rates that leap, stop for up to an hour, and come late."""
    kept, second = {}, chance.choice([0, 0, 0, 1_500])
    while second < seconds:
        kept[second] = chance.randint(50, 200)
        second += chance.choice([10, 60, 60, 60, 60, 290, 700, 3_600])
    return KeptRates(kept)


def known(made: list[Generation]) -> list[Generation]:
    """Return generations without the change times of all but the newest."""
    return [*(replace(each, changed_at=START) for each in made[:-1]), made[-1]]


def check_history(chance: random.Random, steps: int) -> None:
    """Run an invoice by ticks and by the pure rules, and compare them at random moments.

    Payments come and go. Generations known by then are written first, as the gateway does before a payment counts or
    goes.
    """
    expires_s, quote_s = chance.choice([300, 900, 3_600, 5_000]), chance.choice([300, 900, 1_200])
    rates = random_rates(chance, expires_s)
    eager = EagerInvoice(
        expires_at=after(expires_s), generations=[first(expires_s, quote_s)], price=rates.at, quote_s=quote_s
    )
    written, held_until, now_s = [first(expires_s, quote_s)], None, 0

    def looked() -> list[Generation]:
        return [*written[:-1], *generations.follow(
            written[-1], until=after(now_s), expires_at=after(expires_s), held_until=held_until, prices=rates,
            is_held=lambda quote: eager.units * 10 >= quote.payer_units, quote_s=quote_s,
        )]  # fmt: skip

    for _ in range(steps):
        for second in range(now_s + 1, now_s + chance.randint(1, 2 * expires_s // steps + 2)):
            now_s = second
            eager.tick(after(second))
        assert known(looked()) == known(eager.generations)
        action = chance.choice(["look", "look", "write", "pay", "lose"])
        if action != "look":
            written = looked()
        if action in {"pay", "lose"}:
            if eager.units * 10 >= written[-1].quote.payer_units:
                held_until = after(now_s)
            eager.units = max(0, eager.units + chance.randint(1, 12) * (1 if action == "pay" else -1))
            eager.tick(after(now_s))


@pytest.mark.parametrize("seed", range(60))
def test_the_pure_rules_equal_a_tick_every_second(seed: int) -> None:
    check_history(random.Random(seed), 20)  # noqa: S311 - no secret


@pytest.mark.soak
def test_the_pure_rules_equal_ticks_in_many_histories() -> None:
    for seed in range(20_000):
        check_history(random.Random(seed), 50)  # noqa: S311 - no secret
