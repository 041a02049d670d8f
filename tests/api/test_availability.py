"""The methods shown as available to merchants and buyers: each cause removes them, and its end restores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from api import availability
from api.availability import Availability, Usable
from models.db import base
from models.deposits import cursors
from models.payouts import freezes
from tests.api.live import Live
from tests.api.routes.payment_links.rows import opened, shown
from tests.models.builders import CATALOGUE
from tests.models.payouts.builders import charge

ETHEREUM: Final = ("USDT", "ethereum")
BSC: Final = ("USDT", "bsc")
ETHER: Final = ("ETH", "ethereum")
METHODS: Final = {ETHEREUM, BSC, ETHER}
Change = Callable[[], object]


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch: pytest.MonkeyPatch, live: Live) -> None:
    del live
    monkeypatch.setattr(availability, "CACHE_S", -1.0)
    for method in METHODS:
        charge(*method)


def of(items: list[dict[str, Any]]) -> set[tuple[str, str]]:
    by_key = {(item["currency"], item["network"]): item["is_available"] for item in items}
    assert {is_available for method, is_available in by_key.items() if method[1] == "tron"} == {False}, "not served"
    return {method for method in METHODS if by_key[method]}


def to_pay(live: Live) -> set[tuple[str, str]]:
    return of(live.post("/v1/payment/services", {}).json["result"]["items"])


def to_pay_out(live: Live) -> set[tuple[str, str]]:
    return of(live.post("/v1/payout/services", {}).json["result"]["items"])


def listed(live: Live) -> set[tuple[str, str]]:
    answer = live.client.simulate_get("/v1/currencies").json["result"]
    return of([{"currency": c["currency"], **network} for c in answer["currencies"] for network in c["networks"]])


def to_choose(live: Live) -> set[tuple[str, str]]:
    shown = live.client.simulate_get(f"/v1/pay/{live.agnostic()}").json["result"]["accepted"]
    return METHODS & {(method["currency"], method["network"]) for method in shown}


def to_check_out(live: Live) -> set[tuple[str, str]]:
    return METHODS & {(m["currency"], m["network"]) for m in shown(live, opened(live)).json["result"]["accepted"]}


def shown_methods(live: Live) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return what can be paid with, as all say alike, and what can be paid out."""
    payments = to_pay(live)
    assert payments == listed(live) == to_choose(live) == to_check_out(live)
    return payments, to_pay_out(live)


def sql(text: str) -> Change:
    return lambda: base.execute(text)


def frozen(*scope: Any) -> tuple[Change, Change]:
    return (
        lambda: freezes.freeze(*scope, reason="test", frozen_by="test"),
        lambda: freezes.unfreeze(*scope),
    )


# The cause, its end, and the methods that can meanwhile be paid with, and paid out.
CAUSES: Final[dict[str, tuple[Change, Change, set[tuple[str, str]], set[tuple[str, str]]]]] = {
    "a scan was halted": (
        lambda: cursors.halt("ethereum", "providers disagree"),
        lambda: cursors.resume("ethereum"),
        {BSC},
        {BSC},
    ),
    "a scan is behind the head that was told": (
        lambda: cursors.seen_head("bsc", 10_000),
        sql("UPDATE chain_cursors SET head_height = height"),
        {ETHEREUM, ETHER},
        {ETHEREUM, ETHER},
    ),
    "a scan does not move, and its node tells of nothing": (
        sql("UPDATE chain_cursors SET moved_at = app_now() - interval '10 min' WHERE network = 'ethereum'"),
        sql("UPDATE chain_cursors SET moved_at = app_now()"),
        {BSC},
        {BSC},
    ),
    "the pool of addresses is empty": (
        sql("SELECT setval('address_claims_evm', (SELECT count(*) FROM pool_addresses) - 1)"),
        sql("SELECT setval('address_claims_evm', 1)"),
        set(),
        set(),
    ),
    "the coin has no rate": (
        sql("UPDATE rates SET quoted_at = app_now() - interval '301 s' WHERE currency = 'ETH'"),
        sql("UPDATE rates SET quoted_at = app_now()"),
        {ETHEREUM, BSC},
        {ETHEREUM, BSC},
    ),
    "the fee is not known": (
        sql("UPDATE network_fees SET quoted_at = app_now() - interval '301 s' WHERE currency = 'ETH'"),
        sql("UPDATE network_fees SET quoted_at = app_now()"),
        METHODS,
        {ETHEREUM, BSC},
    ),
    "a network is frozen": (*frozen("network", "ethereum"), METHODS, {BSC}),
    "a coin on a network is frozen": (*frozen("coin", "USDT:ethereum"), METHODS, {BSC, ETHER}),
    "all payouts are frozen": (*frozen("all"), METHODS, set()),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_takes_it_away_and_its_end_gives_it_back(live: Live, cause: str) -> None:
    happen, end, payments, payouts = CAUSES[cause]
    assert shown_methods(live) == (METHODS, METHODS)

    happen()
    assert shown_methods(live) == (payments, payouts)
    end()

    assert shown_methods(live) == (METHODS, METHODS)


def test_a_single_method_gets_the_same_answer() -> None:
    served = frozenset({"ethereum"})
    assert availability.read_usable(CATALOGUE, served).payouts == {ETHEREUM, ETHER}

    base.execute("DELETE FROM network_fees WHERE currency = 'ETH'")

    assert availability.read_usable(CATALOGUE, served).payouts == {ETHEREUM}


def test_the_last_address_that_came_back_counts(live: Live) -> None:
    base.execute("SELECT setval('address_claims_evm', (SELECT count(*) FROM pool_addresses) - 1)")
    base.execute("INSERT INTO address_returns (family, ordinal) VALUES ('evm', 7)")
    assert to_pay(live) == METHODS

    base.execute("UPDATE address_returns SET taken_at = clock_timestamp()")

    assert to_pay(live) == set()


def test_a_freeze_of_one_merchant_or_of_conversions_leaves_methods_available(live: Live) -> None:
    freezes.freeze("merchant", str(live.stranger), reason="test", frozen_by="test")
    freezes.freeze("conversion", reason="test", frozen_by="test")

    assert to_pay_out(live) == METHODS


def test_the_catalogues_tag_changes_with_it(live: Live) -> None:
    known = live.client.simulate_get("/v1/currencies").headers["etag"]

    def again() -> int:
        return int(live.client.simulate_get("/v1/currencies", headers={"If-None-Match": known}).status_code)

    assert again() == 304
    cursors.halt("ethereum", "providers disagree")
    assert again() == 200
    cursors.resume("ethereum")
    assert again() == 304


def test_it_is_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "CACHE_S", 1.0)
    clock, reads = [0.0], [0]
    monkeypatch.setattr(availability.time, "monotonic", lambda: clock[0])

    def read() -> Usable:
        reads[0] += 1
        return Usable(payments=frozenset(), payouts=frozenset())

    kept = Availability(read)
    for clock[0], times in ((0.0, 1), (1.0, 1), (1.1, 2), (2.0, 2), (2.2, 3)):
        kept.read()
        assert reads[0] == times


def test_a_store_that_is_down_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "CACHE_S", -1.0)

    def fail() -> Usable:
        raise ConnectionError

    kept = Availability(fail)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            kept.read()
