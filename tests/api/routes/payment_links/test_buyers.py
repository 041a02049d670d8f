"""Payment links for buyers over HTTP: shown, checked out, and equal answers for links that are missing or over."""

from __future__ import annotations

from typing import Any

import pytest

from api.app import create_app
from api.routes.payment_links.buyers import ENDPOINTS
from models.db import base
from tests.api.conftest import Client, FakeCaller, code_of, make_settings
from tests.api.live import Live
from tests.api.routes.payment_links.rows import IN_USDT, checked_out, info, opened, shown, switch
from tests.api.rows import UNIT, add_deposit
from tests.models.db.collisions import at_once

NOBODYS = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
OPEN = {"amount_mode": "open", "amount_fixed": None}
RANGE = {"amount_mode": "range", "amount_min": "5", "amount_max": "9.50"}
OVER = "UPDATE payment_links SET expires_at = app_now()"


def result(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return dict(answer.json["result"])


def test_a_buyer_sees_merchant_title_and_coins(live: Live) -> None:
    link_id = opened(live, title="Coffee", description="One cup", expires_in=600)

    answer = result(shown(live, link_id))

    assert answer.pop("expires_at") > answer.pop("created_at")
    accepted = answer.pop("accepted")
    assert answer == {
        "link_id": link_id, "url": f"https://pay.sluice.example/link/{link_id}", "title": "Coffee",
        "description": "One cup", "amount_mode": "fixed", "amount_fixed": "10.00", "currency": "USD", "active": True,
        "merchant_name": "Shop",
    }  # fmt: skip
    assert IN_USDT in accepted
    assert {method["network"] for method in accepted} == {"ethereum", "bsc"}


def test_a_link_offers_the_methods_that_the_merchant_accepts_now(live: Live) -> None:
    link_id, pinned = opened(live), opened(live, pinned_currency="ETH", pinned_network="ethereum")
    live.post("/v1/payment/accepted", {"accepted": [IN_USDT]})

    assert result(shown(live, link_id))["accepted"] == [IN_USDT]
    assert result(shown(live, pinned))["accepted"] == []
    assert code_of(checked_out(live, pinned)) == "pay.method_not_accepted"
    live.post("/v1/payment/accepted", {"accepted": []})
    assert result(shown(live, pinned))["accepted"] == [{"currency": "ETH", "network": "ethereum"}]


@pytest.mark.parametrize(
    "link", [{"amount_fixed": "0.99"}, {"amount_mode": "range", "amount_min": "0.01", "amount_max": "0.99"}]
)
def test_coins_that_cannot_carry_a_links_price_are_not_offered(live: Live, link: Any) -> None:
    link_id = opened(live, **link)
    bought = result(checked_out(live, link_id, amount="0.99"))

    for offered in (result(shown(live, link_id))["accepted"], bought["accepted"]):
        assert {"currency": "BNB", "network": "bsc"} in offered
        assert IN_USDT not in offered
    assert IN_USDT in result(shown(live, opened(live, **OPEN)))["accepted"]


def test_a_client_with_the_present_link_gets_304(live: Live) -> None:
    link_id = opened(live)
    first = shown(live, link_id)

    again = shown(live, link_id, **{"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.text) == (304, "")
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"
    assert first.headers["access-control-allow-origin"] == "*"
    live.post("/v1/payment/accepted", {"accepted": [IN_USDT]})
    assert shown(live, link_id, **{"If-None-Match": first.headers["etag"]}).status_code == 200


def body_of(answer: Any) -> Any:
    own = {"x-request-id", "x-gateway-time"}
    return answer.status_code, answer.text, {k: v for k, v in answer.headers.items() if k not in own}


@pytest.mark.parametrize("order", [{}, IN_USDT, {"amount": "x"}, {"currency": "DOGE"}, {"network": "bsc"}])
def test_a_switched_off_or_expired_link_answers_like_a_missing_one(live: Live, order: dict[str, str]) -> None:
    off, over = opened(live, amount_mode="open"), opened(live, amount_mode="open")
    result(checked_out(live, off, amount="1"))  # known to the worker
    base.execute(f"{OVER} WHERE id = %s", (over,))
    switch(live, off, active=False)

    for ask in (lambda i: shown(live, i), lambda i: checked_out(live, i, **order), lambda i: page(live, i)):
        never = body_of(ask(NOBODYS))
        assert never[0] == 404
        assert body_of(ask(off)) == body_of(ask(over)) == never
    switch(live, off, active=True)
    assert result(checked_out(live, off, amount="1"))


@pytest.mark.parametrize("link_id", ["x", f"%7B{NOBODYS}%7D", NOBODYS.replace("-", ""), NOBODYS[:-1], "%C3%BF"])
def test_an_invalid_id_is_refused(live: Live, link_id: str) -> None:
    assert code_of(shown(live, link_id)) == code_of(checked_out(live, link_id)) == "paylink.bad_id"
    assert page(live, link_id).status_code == 400


def test_an_id_may_be_in_capitals(live: Live) -> None:
    link_id = opened(live)

    assert result(shown(live, link_id.upper()))["link_id"] == link_id
    assert result(checked_out(live, link_id.upper()))["amount"] == "10.00"


# Checkout -----------------------------------------------------------------------------------------------------------


def test_a_checkout_with_a_coin_is_a_payment_to_be_paid(live: Live) -> None:
    link_id = opened(live)

    made = result(checked_out(live, link_id, **IN_USDT, payer_email="b@mail.example"))

    public = result(live.client.simulate_get(f"/v1/pay/{made['uuid']}"))
    assert made == public
    assert (made["payment_status"], made["payer_currency"], made["is_multi"]) == ("check", "USDT", False)
    row = base.one("SELECT link_id::text, merchant_id, order_id, payer_email FROM invoices")
    assert row == (link_id, live.shop, None, "b@mail.example")


def test_a_checkout_without_a_coin_lets_the_buyer_choose_on_the_page(live: Live) -> None:
    made = result(checked_out(live, opened(live)))

    assert made == result(live.client.simulate_get(f"/v1/pay/{made['uuid']}"))
    assert (made["payment_status"], made["address"], made["is_multi"]) == ("select", "", True)
    assert IN_USDT in made["accepted"]
    assert result(live.choose(made["uuid"]))["payment_status"] == "check"


@pytest.mark.parametrize(
    "order", [{}, IN_USDT, {"currency": "USDT"}, {"network": "ethereum"}, {"currency": "", "network": None}]
)
def test_a_pinned_coin_is_the_payments(live: Live, order: dict[str, Any]) -> None:
    link_id = opened(live, pinned_currency="USDT", pinned_network="ethereum")

    made = result(checked_out(live, link_id, **order))

    assert (made["payer_currency"], made["network"], made["payment_status"]) == ("USDT", "ethereum", "check")


@pytest.mark.parametrize("order", [{"currency": "ETH"}, {"network": "bsc"}, IN_USDT | {"network": "bsc"}])
def test_another_coin_than_the_pinned_one_is_refused(live: Live, order: dict[str, Any]) -> None:
    link_id = opened(live, pinned_currency="USDT", pinned_network="ethereum")

    assert code_of(checked_out(live, link_id, **order)) == "pay.method_not_accepted"


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"currency": "DOGE"}, "pay.unknown_currency"),
        ({"currency": "USD"}, "pay.unknown_currency"),
        ({"currency": "usdt", "network": "ethereum"}, "pay.unknown_currency"),
        ({"currency": 5}, "pay.unknown_currency"),
        ({"currency": "\x00"}, "pay.unknown_currency"),
        ({"network": "ethereum"}, "pay.unknown_currency"),
        ({"currency": "USDT"}, "pay.method_not_accepted"),
        ({"currency": "USDT", "network": "tron"}, "pay.method_not_accepted"),
        ({"currency": "USDT", "network": 5}, "pay.method_not_accepted"),
        ({"payer_email": "nobody"}, "request.bad_field"),
        ({"payer_email": "a@b.example\r\nBcc: c@d.example"}, "request.bad_field"),
        ({"payer_email": "a\x00@b.example"}, "request.bad_field"),
        ({"payer_email": "a\ud800@b.example"}, "request.bad_field"),
        ({"payer_email": 5}, "request.bad_field"),
    ],
)
def test_a_checkout_that_cannot_be(live: Live, order: dict[str, Any], code: str) -> None:
    link_id = opened(live)

    assert code_of(checked_out(live, link_id, **order)) == code
    assert base.value("SELECT count(*) FROM invoices") == 0


def test_an_amount_that_is_not_positive_is_refused_where_it_is_read(live: Live) -> None:
    asks, has_price = opened(live, **OPEN), opened(live)
    for amount in (5, 5.0, "-5", "0", "0.00", "5.001", "1e1", " 5", "", "\ud800", ["5"], {"a": "5"}, True, "9" * 50):
        assert code_of(checked_out(live, asks, amount=amount)) == "paylink.not_positive", amount
        assert result(checked_out(live, has_price, amount=amount))["amount"] == "10.00", amount


@pytest.mark.parametrize(
    ("link", "amount", "outcome"),
    [
        (OPEN, None, "paylink.amount_required"),
        (RANGE, None, "paylink.amount_required"),
        (OPEN, "0.01", "pay.below_minimum"),
        (OPEN, "1", "1.00"),
        (OPEN, "10000000", "10000000.00"),
        (OPEN, "10000000.01", "payment.bad_amount"),
        (OPEN | {"amount_min": "5"}, "4.99", "paylink.below_min"),
        (OPEN | {"amount_min": "5"}, "5", "5.00"),
        (RANGE, "4.99", "paylink.below_min"),
        (RANGE, "5.00", "5.00"),
        (RANGE, "9.5", "9.50"),
        (RANGE, "9.51", "paylink.above_max"),
        (OPEN | {"currency": "JPY"}, "1000", "1000"),
        (OPEN | {"currency": "JPY"}, "100.5", "paylink.not_positive"),
    ],
)
def test_a_buyers_amount_is_within_the_links_bounds(live: Live, link: Any, amount: Any, outcome: str) -> None:
    answer = checked_out(live, opened(live, **link), amount=amount)

    assert (code_of(answer) if outcome.startswith("pay") else result(answer)["amount"]) == outcome


def test_nothing_else_that_a_buyer_sends_has_an_effect(live: Live) -> None:
    link_id = opened(live)
    body = {
        "order_id": "theirs", "url_callback": "https://evil.example/", "accuracy": 5, "accuracy_payment_percent": 5,
        "additional_data": "x", "uuid": NOBODYS, "lifetime": 1, "subtract": 100, "theme": "dark", "url_return": "x",
        "url_success": "https://evil.example/", "is_payment_multiple": True, "is_refresh": True, "merchant_id": NOBODYS,
    }  # fmt: skip

    plain, odd = result(checked_out(live, link_id, **IN_USDT)), result(checked_out(live, link_id, **IN_USDT, **body))

    own = {"uuid", "url", "address", "address_qr_code", "created_at", "updated_at", "expired_at", "rate_expires_at"}
    assert {k: v for k, v in plain.items() if k not in own} == {k: v for k, v in odd.items() if k not in own}
    columns = (
        "order_id, url_callback, accuracy_ppm, additional_data, subtract_percent, theme, url_return, url_success,"
        " is_payment_multiple, expires_at - date_trunc('second', created_at), merchant_id"
    )
    assert len(base.rows(f"SELECT DISTINCT {columns} FROM invoices")) == 1
    assert odd["uuid"] not in {plain["uuid"], NOBODYS}


def test_the_number_of_unpaid_payments_of_a_link_is_limited(live: Live) -> None:
    link_id, other = opened(live), opened(live)
    live.configure(PAYMENT_LINK_UNPAID_MAX="2", ADDRESS_PUBLIC_KEY=live.settings.address_public_key, POOL_LOW="2")
    first = result(checked_out(live, link_id, **IN_USDT))
    result(checked_out(live, link_id))

    full = checked_out(live, link_id)

    assert (full.status_code, full.json["state"], full.headers["retry-after"]) == (429, 1, "60")
    assert result(checked_out(live, other))
    assert len(info(live, link_id)["payments"]) == 2
    base.execute("UPDATE invoices SET status = 'paid' WHERE id = %s", (first["uuid"],))
    assert result(checked_out(live, link_id))
    assert checked_out(live, link_id).status_code == 429


def test_of_a_hundred_checkouts_at_once_as_many_are_done_as_may_be(live: Live) -> None:
    link_id = opened(live)
    live.configure(PAYMENT_LINK_UNPAID_MAX="33", ADDRESS_PUBLIC_KEY=live.settings.address_public_key, POOL_LOW="2")

    answers = at_once(10, lambda _: [checked_out(live, link_id).status_code for _ in range(10)])

    statuses = [status for several in answers for status in several]  # type: ignore[union-attr]
    assert (statuses.count(200), statuses.count(429)) == (33, 67)
    assert base.value("SELECT count(*) FROM invoices WHERE link_id = %s", (link_id,)) == 33


@pytest.mark.parametrize("ends", ["switched off", "over"])
def test_an_expired_link_takes_no_checkout(live: Live, ends: str) -> None:
    link_id = opened(live)

    def work(number: int) -> list[int]:
        if number:
            return [checked_out(live, link_id).status_code for _ in range(8)]
        checked_out(live, link_id)
        if ends == "over":
            base.execute(OVER)
        else:
            switch(live, link_id, active=False)
        return [int(base.value("SELECT count(*) FROM invoices")), *(checked_out(live, link_id).status_code,) * 2]

    (until_then, *after), *others = at_once(5, work)  # type: ignore[misc]

    assert after == [404, 404]
    assert {status for several in others for status in several} <= {200, 404}  # type: ignore[union-attr]
    done = sum(status == 200 for several in others for status in several) + 1  # type: ignore[union-attr]
    assert until_then == done == base.value("SELECT count(*) FROM invoices")


def test_a_payment_of_a_link_that_was_switched_off_is_found_by_its_merchant_and_its_buyer(live: Live) -> None:
    link_id = opened(live)
    made = result(checked_out(live, link_id, **IN_USDT))
    switch(live, link_id, active=False)
    add_deposit(live.shop, made["uuid"], amount_units=UNIT)

    assert result(live.client.simulate_get(f"/v1/pay/{made['uuid']}"))["payment_status"] == "check"
    assert result(live.post("/v1/payment/info", {"uuid": made["uuid"]}))["amount"] == "10.00"
    assert result(live.post("/v1/payment/history", {}))["items"][0]["uuid"] == made["uuid"]


def test_the_workers_learn_nothing_but_the_order_and_its_source(client: Client, caller: FakeCaller) -> None:
    body = {"amount": 5, "currency": "USDT", "network": "bsc", "payer_email": "b@mail.example", "uuid": NOBODYS}
    client.public_post(f"/v1/link/{NOBODYS}/checkout", body)

    assert caller.last.payload == {
        "link_id": NOBODYS, "amount": "", "currency": "USDT", "network": "bsc", "payer_email": "b@mail.example",
        "source": "None",
    }  # fmt: skip
    assert (caller.last.info.merchant_id, caller.last.info.idem_key) == (None, None)


@pytest.mark.parametrize(("address", "source"), [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2::3", "2001:db8:1::/48")])
def test_a_link_counts_a_buyer_by_the_widest_block(
    client: Client, caller: FakeCaller, address: str, source: str
) -> None:
    client.simulate_post(f"/v1/link/{NOBODYS}/checkout", json={}, remote_addr=address)
    assert caller.last.payload["source"] == source


def test_a_checkout_counts_as_a_purchase_and_a_look_as_a_read() -> None:
    assert {endpoint.name: endpoint.limit for endpoint in ENDPOINTS} == {"getLink": "public", "checkOutLink": "buyer"}


# The page -----------------------------------------------------------------------------------------------------------


def page(live: Live, link_id: str) -> Any:
    return live.client.simulate_get(f"/link/{link_id}")


def test_the_page_shows_the_link_and_runs_nothing_from_elsewhere(live: Live) -> None:
    link_id = opened(live, **RANGE, title="Coffee", description="One cup", expires_in=60)

    answer = page(live, link_id)

    assert answer.status_code == 200
    for text in ("Shop", "Coffee", "One cup", "From 5.00 to 9.50 USD", "Tether", "Ethereum", "Open until", "receipt"):
        assert text in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-robots-tag"] == "noindex"


def test_a_merchants_text_is_shown_as_text(live: Live) -> None:
    script = '"></h1><script>alert(1)</script>\u202e\r\n'
    base.execute("UPDATE merchants SET name = %s WHERE id = %s", (script, live.shop))

    text = page(live, opened(live, title=script, description=script)).text

    assert "<script>alert" not in text
    # In the window's title, the heading, the description, and who is paid.
    assert text.count("&lt;script&gt;alert(1)") == 4


@pytest.mark.parametrize(
    ("link", "shows", "shows_not"),
    [
        ({"pinned_currency": "USDT", "pinned_network": "bsc"}, "Paid in", "Pay in"),
        ({}, "Pay in", "Paid in"),
        (OPEN, 'id="amount"', "At least"),
        (OPEN | {"amount_min": "5"}, "At least 5.00 USD", "From"),
        ({}, "10.00 USD", 'id="amount"'),
    ],
)
def test_the_page_asks_only_for_open_choices(live: Live, link: Any, shows: str, shows_not: str) -> None:
    text = page(live, opened(live, **link)).text

    assert shows in text
    assert shows_not not in text


def test_a_page_without_links_or_without_its_store_shows_it(live: Live, client: Client) -> None:
    off = make_settings(DATABASE_URL=live.settings.database_url, PAYMENT_LINKS_ENABLED="0")
    without = Client(create_app(off, caller=FakeCaller(), queues=live.queues))
    disabled = without.simulate_get(f"/link/{opened(live)}")
    assert (disabled.status_code, "not available" in disabled.text) == (503, True)

    base.connect("postgresql://nobody@127.0.0.1:1/nothing")
    assert "busy" in client.simulate_get(f"/link/{NOBODYS}").text


def test_the_page_has_a_head_and_takes_forms_alone(live: Live) -> None:
    link_id = opened(live)

    assert live.client.simulate_head(f"/link/{link_id}").status_code == 200
    assert live.client.simulate_post(f"/link/{link_id}", body="{}").status_code == 403
    assert "There is no such payment link" in page(live, NOBODYS).text
