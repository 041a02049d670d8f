"""Payment links over HTTP as their merchant has them."""

from __future__ import annotations

from typing import Any

import pytest

from models.db import base
from tests.api.conftest import Client, FakeCaller, code_of
from tests.api.live import Live
from tests.api.routes.payment_links.rows import FIXED, IN_USDT, checked_out, info, opened, switch

CREATE = "/v1/payment/link"
OPEN = {"amount_mode": "open", "currency": "USD"}
RANGE = {"amount_mode": "range", "currency": "USD", "amount_min": "5", "amount_max": "500"}
YEN = {"currency": "JPY", "amount_fixed": "1000"}
PINNED = {"pinned_currency": "USDT", "pinned_network": "ethereum"}
TEN_YEARS_S = 315_360_000
NO_AMOUNTS = [
    10, 1e3, True, [], {}, "1e3", " 5", "5 ", "", "-1", "+1", "0", "0.00", "1.001", "\u0663", "9" * 31, "\ud800", "NaN",
]  # fmt: skip
NOBODYS = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
# As it reaches us: odd characters that are texts, and have to come back as they went.
ODD = "line\r\nnext \u202e<script>alert(1)</script> \u200f\U0001f600"


def create(live: Live, **body: Any) -> Any:
    return live.post(CREATE, body)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        pytest.param(FIXED, {"amount_fixed": "10.00"}, id="fixed"),
        pytest.param(OPEN, {}, id="open"),
        pytest.param(OPEN | {"amount_min": "5"}, {"amount_min": "5.00"}, id="open with a floor"),
        pytest.param(RANGE, {"amount_min": "5.00", "amount_max": "500.00"}, id="range"),
        pytest.param(RANGE | {"amount_max": "5.00"}, {"amount_min": "5.00", "amount_max": "5.00"}, id="a single sum"),
        pytest.param(FIXED | YEN, {"amount_fixed": "1000"}, id="no fractional digits"),
        pytest.param(
            FIXED | {"currency": "ETH", "amount_fixed": "0.100000000000000001"},
            {"amount_fixed": "0.100000000000000001"},
            id="all digits of a coin",
        ),
        pytest.param(
            FIXED | {"amount_min": "x", "amount_max": {"\ud800": [5]}}, {"amount_fixed": "10.00"}, id="others"
        ),
        pytest.param(OPEN | {"amount_fixed": "\ud800", "amount_max": 5}, {}, id="others of open"),
        pytest.param(
            FIXED | {"pinned_currency": "USDT", "pinned_network": "bsc"},
            {"amount_fixed": "10.00", "pinned_currency": "USDT", "pinned_network": "bsc"},
            id="pinned",
        ),
        pytest.param(
            FIXED | {"title": ODD, "description": ODD * 9, "expires_in": 0, "unknown": 1},
            {"amount_fixed": "10.00", "title": ODD, "description": ODD * 9},
            id="texts",
        ),
        pytest.param(
            FIXED | {"title": "", "pinned_currency": "", "pinned_network": ""}, {"amount_fixed": "10.00"}, id=""
        ),
    ],
)
def test_a_link_shows_the_fields_that_were_set_and_no_other(
    live: Live, asked: dict[str, Any], shown: dict[str, str]
) -> None:
    made = create(live, **asked)

    link_id = made.json["result"]["link_id"]
    url = f"https://pay.sluice.example/link/{link_id}"
    assert made.json == {"state": 0, "result": {"link_id": link_id, "url": url}}
    answer = info(live, link_id)
    created_at = answer.pop("created_at")
    assert created_at.endswith("Z")
    assert answer == {
        "link_id": link_id, "url": url, "amount_mode": asked["amount_mode"], "currency": asked["currency"],
        "active": True, "payments": [],
    } | shown  # fmt: skip


def test_a_coin_with_one_network_has_it_filled_in(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.rates.pricing.only_network", lambda _, currency: {"USDC": "ethereum"}.get(currency))

    assert info(live, opened(live, pinned_currency="USDC"))["pinned_network"] == "ethereum"
    assert code_of(create(live, **FIXED, pinned_currency="USDT")) == "paylink.bad_pin"


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        (FIXED, "amount_fixed", "paylink.bad_amount"),
        (OPEN, "amount_min", "paylink.bad_min"),
        (RANGE, "amount_min", "paylink.bad_min"),
        (RANGE, "amount_max", "paylink.bad_max"),
    ],
)
def test_an_amount_is_a_positive_decimal_string(live: Live, body: Any, field: str, code: str) -> None:
    for amount in NO_AMOUNTS:
        assert code_of(create(live, **body | {field: amount})) == code, amount


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (FIXED | {"amount_mode": None}, "paylink.bad_mode"),
        (FIXED | {"amount_mode": "Fixed"}, "paylink.bad_mode"),
        (FIXED | {"amount_mode": 5}, "paylink.bad_mode"),
        ({"currency": "USD"}, "paylink.bad_mode"),
        ({"amount_mode": "fixed", "amount_fixed": "1"}, "paylink.unknown_currency"),
        (FIXED | {"currency": "usd"}, "paylink.unknown_currency"),
        (FIXED | {"currency": "KZT"}, "paylink.unknown_currency"),
        (FIXED | {"currency": 840}, "paylink.unknown_currency"),
        ({"amount_mode": "fixed", "currency": "USD"}, "paylink.bad_amount"),
        (FIXED | YEN | {"amount_fixed": "100.5"}, "paylink.bad_amount"),
        (FIXED | {"currency": "ETH", "amount_fixed": f"0.{'0' * 18}1"}, "paylink.bad_amount"),
        (RANGE | {"amount_min": None}, "paylink.bad_min"),
        (RANGE | {"amount_max": None}, "paylink.bad_max"),
        (RANGE | {"amount_min": "500.01"}, "paylink.bad_range"),
        (FIXED | {"pinned_network": "ethereum"}, "paylink.bad_pin"),
        (FIXED | {"pinned_currency": "USDT"}, "paylink.bad_pin"),
        (FIXED | {"pinned_currency": "DOGE", "pinned_network": "ethereum"}, "paylink.bad_pin"),
        (FIXED | {"pinned_currency": "USD", "pinned_network": "ethereum"}, "paylink.bad_pin"),
        (FIXED | {"pinned_currency": "DAI", "pinned_network": "bsc"}, "paylink.bad_pin"),
        # There is no provider for it here.
        (FIXED | {"pinned_currency": "USDT", "pinned_network": "polygon"}, "paylink.bad_pin"),
        (FIXED | {"pinned_currency": 5, "pinned_network": "ethereum"}, "paylink.bad_pin"),
        *((FIXED | {"expires_in": s}, "request.bad_field") for s in (-1, 1.5, "60", 10**30, TEN_YEARS_S + 1, True)),
        *((FIXED | {"title": t}, "request.bad_field") for t in ("\x00", "\ud800", "x" * 256, 5, ["x"])),
        *((FIXED | {"description": t}, "request.bad_field") for t in ("a\x00b", "a\udfff", "x" * 4097)),
    ],
)
def test_a_link_that_cannot_be(live: Live, body: Any, code: str) -> None:
    assert code_of(create(live, **body)) == code
    assert base.value("SELECT count(*) FROM payment_links") == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (FIXED | {"amount_fixed": "0.01"}, "paylink.bad_amount"),
        (FIXED | {"amount_fixed": "0.99"} | PINNED, "paylink.bad_amount"),
        (RANGE | {"amount_min": "0.01", "amount_max": "0.02"}, "paylink.bad_max"),
    ],
)
def test_a_link_that_no_coin_can_pay_is_refused(live: Live, body: Any, code: str) -> None:
    assert code_of(create(live, **body)) == code
    live.forget_rates("currency <> 'USD'")
    assert create(live, **body).status_code == 200


@pytest.mark.parametrize(("expires_in", "ends"), [(1, True), (TEN_YEARS_S, True), (0, False)])
def test_a_link_expires_at_its_time(live: Live, expires_in: int, ends: bool) -> None:  # noqa: FBT001
    link_id = opened(live, expires_in=expires_in)

    assert ("expires_at" in info(live, link_id)) is ends
    row = base.one("SELECT extract(epoch FROM expires_at - created_at)::bigint FROM payment_links")
    assert row == (expires_in or None,)


def test_an_idempotency_key_makes_one_link(live: Live) -> None:
    def ask(**fields: Any) -> Any:
        return live.post(CREATE, FIXED | fields, headers={"Idempotency-Key": "k"})

    refused, first, again, other = ask(amount_fixed="0"), ask(), ask(), ask(title="x")

    assert code_of(refused) == "paylink.bad_amount"
    assert first.json == again.json
    assert again.headers["idempotent-replayed"] == "true"
    assert code_of(other) == "idempotency.key_reused"
    assert base.value("SELECT count(*) FROM payment_links") == 1


def test_links_are_listed_newest_first_and_a_page_at_a_time(live: Live) -> None:
    ids = [opened(live, title=str(number)) for number in range(3)][::-1]

    def page(**body: Any) -> list[str]:
        return [item["link_id"] for item in live.post("/v1/payment/link/list", body).json["result"]["items"]]

    assert page() == page(limit=0) == page(limit=201) == ids
    assert page(limit=1, offset=1) == ids[1:2]
    assert page(offset=3) == []
    assert "payments" not in live.post("/v1/payment/link/list", {}).json["result"]["items"][0]


@pytest.mark.parametrize("path", ["list", "info"])
@pytest.mark.parametrize("page", [{"offset": -1}, {"offset": 10**12}, {"offset": "1"}, {"limit": "5"}, {"offset": 1.5}])
def test_a_page_that_cannot_be(client: Client, caller: FakeCaller, path: str, page: dict[str, Any]) -> None:
    assert code_of(client.post(f"/v1/payment/link/{path}", {"link_id": NOBODYS} | page)) == "request.bad_field"
    assert caller.calls == []


def test_a_links_payments_are_listed_newest_first_and_no_others(live: Live) -> None:
    link_id, other = opened(live), opened(live)
    made = [checked_out(live, link_id).json["result"]["uuid"] for _ in range(3)][::-1]
    checked_out(live, other)
    live.invoice()

    shown = info(live, link_id)["payments"]

    assert [one["uuid"] for one in shown] == made
    assert shown[0] == {
        "uuid": made[0], "status": "select", "amount": "10.00", "currency": "USD", "created_at": shown[0]["created_at"],
    }  # fmt: skip
    assert [one["uuid"] for one in info(live, link_id, limit=1, offset=1)["payments"]] == made[1:2]
    assert info(live, link_id, offset=10_000)["payments"] == []


@pytest.mark.parametrize("path", ["info", "toggle"])
@pytest.mark.parametrize(
    "link_id", [None, "", "x", 5, f"{{{NOBODYS}}}", f" {NOBODYS}", NOBODYS.replace("-", ""), "\x00"]
)
def test_an_invalid_id_is_refused(client: Client, path: str, link_id: Any) -> None:
    assert code_of(client.post(f"/v1/payment/link/{path}", {"link_id": link_id, "active": True})) == "paylink.bad_id"


def test_an_id_may_be_in_capitals(live: Live) -> None:
    link_id = opened(live)

    assert info(live, link_id.upper())["link_id"] == link_id
    assert switch(live, link_id.upper(), active=False).json["result"] == {"link_id": link_id, "active": False}


@pytest.mark.parametrize("active", [None, "true", 1, 0, [], "absent"])
def test_a_toggle_without_active_is_refused(live: Live, active: Any) -> None:
    link_id = opened(live)
    body = {"link_id": link_id} | ({} if active == "absent" else {"active": active})

    assert code_of(live.post("/v1/payment/link/toggle", body)) == "request.bad_field"
    assert info(live, link_id)["active"]


def test_the_same_switch_again_changes_nothing(live: Live) -> None:
    link_id = opened(live)

    for active in (False, False, True, True):
        assert switch(live, link_id, active=active).json["result"] == {"link_id": link_id, "active": active}
        assert info(live, link_id)["active"] is active


def test_without_links_those_that_there_are_can_be_read_and_their_payments_go_on(live: Live) -> None:
    link_id = opened(live)
    payment = checked_out(live, link_id).json["result"]["uuid"]
    live.configure(PAYMENT_LINKS_ENABLED="0")

    assert code_of(create(live, **FIXED)) == "paylink.disabled"
    assert code_of(checked_out(live, link_id)) == "paylink.disabled"
    assert len(live.post("/v1/payment/link/list", {}).json["result"]["items"]) == 1
    assert info(live, link_id)["payments"][0]["uuid"] == payment
    assert switch(live, link_id, active=False).status_code == 200
    live.configure(PAYMENT_LINKS_ENABLED="0", ADDRESS_PUBLIC_KEY=live.settings.address_public_key, POOL_LOW="2")
    assert live.choose(payment).json["result"]["payer_currency"] == IN_USDT["currency"]
