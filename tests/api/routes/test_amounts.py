"""Amounts over HTTP: read exactly or refused, priced with fresh rates or not at all, and never rounded away."""

from __future__ import annotations

from typing import Any, Final

import pytest

from models.db import base
from tests.api.conftest import code_of
from tests.api.live import Live

NOT_AMOUNTS: Final = [
    "", " ", "1 ", " 1", "+1", "-1", "-0", "1e3", "1E3", "0x10", "1,5", "1,000.00", "1 000", "1_000", ".5", "5.",
    "1..5", "NaN", "Infinity", "\uff11\uff10", "\u0661\u0660", "1\u00a0", "10\n", "1\x00", "\ud800", str(2**256),
    "9" * 31, "1." + "0" * 19, "0." + "0" * 18 + "1", "0", "0.00", "0.000000000000000000", "00",
    10, 10.5, 0, -1, 2**256, True, None, [], {}, ["10"],
]  # fmt: skip
EXACT: Final = {"to_currency": "USDT", "network": "ethereum"}


def priced(live: Live, amount: Any, currency: str = "USD", **more: Any) -> Any:
    return live.post("/v1/payment", {"amount": amount, "currency": currency} | more)


@pytest.mark.parametrize("currency", ["USD", "JPY", "ETH"])
def test_an_invalid_amount_is_refused_with_the_domains_code(live: Live, currency: str) -> None:
    answers = {repr(amount)[:40]: priced(live, amount, currency) for amount in NOT_AMOUNTS}

    assert {amount: code_of(answer) for amount, answer in answers.items()} == dict.fromkeys(
        answers, "payment.bad_amount"
    )
    assert {answer.status_code for answer in answers.values()} == {400}
    assert base.one("SELECT count(*) FROM invoices") == (0,)


@pytest.mark.parametrize(
    ("currency", "digits"),
    [("JPY", 0), ("KRW", 0), ("USD", 2), ("EUR", 2), ("USDT", 6), ("USDC", 6), ("TRX", 6), ("BTC", 8), ("SOL", 9),
     ("TON", 9), ("ETH", 18), ("DAI", 18), ("BNB", 18)],
)  # fmt: skip
def test_more_fractional_digits_than_a_currency_has_are_refused_even_if_they_are_zeros(
    live: Live, currency: str, digits: int
) -> None:
    finest = "100." + "0" * (digits - 1) + "1" if digits else "100000"

    assert priced(live, finest, currency).json["result"]["amount"] == finest
    # A currency without fractional digits takes zeros there: shops write 1000.00 in every currency.
    for more in ("0", "1") if digits else ("1", "01"):
        finer = (finest if digits else "100000.") + more
        assert code_of(priced(live, finer, currency)) == "payment.bad_amount"


@pytest.mark.parametrize("amount", ["9" * 30, "9" * 30 + "." + "9" * 18, "10000001"])
def test_a_price_above_the_limit_is_refused_in_every_mode(live: Live, amount: str) -> None:
    for currency, more in (("USD", {}), ("USD", EXACT), ("ETH", {"network": "ethereum"})):
        assert code_of(priced(live, amount, currency, **more)) == "payment.bad_amount"


@pytest.mark.parametrize(("amount", "status"), [("1", 200), ("0.99", 400), ("0.01", 400)])
def test_the_minimum_is_exact(live: Live, amount: str, status: int) -> None:
    answer = priced(live, amount, **EXACT)

    assert answer.status_code == status
    if status == 400:
        assert code_of(answer) == "payment.below_minimum"


@pytest.mark.parametrize(("amount", "status"), [("0.80", 200), ("0.79", 400)])
def test_a_price_that_no_coin_can_carry_is_refused_before_a_coin_is_chosen(
    live: Live, amount: str, status: int
) -> None:
    # POL's smallest deposit is worth the least of all.
    answer = priced(live, amount)

    assert answer.status_code == status
    if status == 400:
        assert code_of(answer) == "payment.below_minimum"
        assert base.one("SELECT count(*) FROM invoices") == (0,)


def test_coins_that_cannot_carry_the_price_are_not_offered(live: Live) -> None:
    agnostic = priced(live, "0.99").json["result"]["uuid"]
    answer = live.client.simulate_get(f"/v1/pay/{agnostic}")

    offered = {method["currency"] for method in answer.json["result"]["accepted"]}
    assert (offered & {"USDT", "USDC", "DAI"}, "BNB" in offered) == (set(), True)
    assert code_of(live.choose(agnostic)) == "pay.below_minimum"
    assert live.choose(agnostic, "BNB", "bsc").status_code == 200


def test_the_payer_owes_no_less_than_the_price(live: Live) -> None:
    made = priced(live, "1001", "JPY", **EXACT).json["result"]

    assert (made["amount"], made["payer_amount"]) == ("1001", "6.37637")


@pytest.mark.parametrize("condition", ["currency = 'USDT'", "currency = 'EUR'"])
def test_without_a_rate_nothing_is_priced(live: Live, condition: str) -> None:
    live.forget_rates(condition)

    answer = priced(live, "10", "EUR", **EXACT)

    assert (answer.status_code, code_of(answer)) == (503, "invoice.quote_failed")


def test_a_stale_rate_is_no_rate(live: Live) -> None:
    base.execute("UPDATE rates SET quoted_at = app_now() - interval '301 seconds' WHERE currency = 'USDT'")

    assert code_of(priced(live, "10", **EXACT)) == "invoice.quote_failed"
    assert live.post("/v1/exchange-rate/list", {}).json["result"] == []


@pytest.mark.parametrize("usd", ["0", "-1", "'NaN'"])
def test_a_rate_of_nothing_cannot_even_be_stored(live: Live, usd: str) -> None:
    del live
    with pytest.raises(Exception, match="violates check constraint"):
        base.execute(f"UPDATE rates SET usd = {usd} WHERE currency = 'USDT'")


@pytest.mark.parametrize("percent", [-1, 101, 10**30, "5", 5.5, True])
def test_a_surcharge_outside_its_range_is_refused(live: Live, percent: Any) -> None:
    assert code_of(priced(live, "10", **EXACT, subtract=percent)) == "payment.bad_subtract"


@pytest.mark.parametrize("percent", [-0.1, 5.0001, 1e300, "1", 0.00001, True])
def test_a_tolerance_outside_its_range_is_refused(live: Live, percent: Any) -> None:
    assert code_of(priced(live, "10", **EXACT, accuracy_payment_percent=percent)) == "payment.bad_accuracy"


@pytest.mark.parametrize("percent", [0, 5, 0.0001])
def test_a_tolerance_at_its_edges_is_taken(live: Live, percent: float) -> None:
    assert priced(live, "10", **EXACT, accuracy_payment_percent=percent).status_code == 200
