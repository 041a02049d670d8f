"""Payouts over HTTP, with the real actors behind the API: made once, shown to their merchant, reckoned before."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from api import availability
from core.payouts.schemas import CreatedPayout, MassResult, Payout, PayoutPage, PayoutQuote, PayoutServices
from models.db import base
from models.db.base import app_now, execute
from models.payouts import freezes
from models.queue import calls
from tests.api.conftest import Client, FakeCaller, code_of
from tests.api.live import Live
from tests.api.rows import UNIT, made_at
from tests.models.payouts.builders import RECIPIENT, charge, fund, stock
from tests.models.treasury.builders import hold

UNKNOWN = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
ORDER: dict[str, Any] = {
    "order_id": "payout-1",
    "amount": "25",
    "currency": "USDT",
    "network": "ethereum",
    "address": RECIPIENT,
}
PATHS = ("", "/calculate", "/info", "/history", "/services", "/mass", "/fee-settings")


@pytest.fixture
def shop(live: Live) -> Client:
    """A merchant with 100 USDT at a gateway that knows what a transfer costs."""
    fund(live.shop, 100 * UNIT)
    charge()
    return live.client


def result(client: Client, path: str, body: Any, **options: Any) -> Any:
    answer = client.post(f"/v1/payout{path}", body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json["result"]


def make(client: Client, order_id: str, **changed: Any) -> str:
    return str(result(client, "", ORDER | {"order_id": order_id} | changed)["uuid"])


def test_a_payout_is_made_once_and_shown_by_the_specification(shop: Client) -> None:
    made = result(shop, "", ORDER)

    msgspec.convert(made, CreatedPayout)
    assert "convert" not in made
    assert (made["status"], made["commission"], made["approval_required"]) == ("process", "1.2", False)
    assert result(shop, "", ORDER | {"amount": "1", "address": "0x1"}) == made
    for lookup in ({"uuid": made["uuid"].upper()}, {"order_id": "payout-1"}):
        assert result(shop, "/info", lookup) == made
    row = base.one("SELECT created_by FROM payouts")
    assert row == ("pk_unified",)


def test_a_replay_is_marked_and_a_key_with_another_body_is_refused(shop: Client) -> None:
    key = {"Idempotency-Key": "k"}
    first = shop.post("/v1/payout", ORDER, headers=key)
    again = shop.post("/v1/payout", ORDER, headers=key)
    other = shop.post("/v1/payout", ORDER | {"order_id": "payout-2"}, headers=key)
    many = shop.post("/v1/payout/mass", {"payouts": [ORDER | {"order_id": "payout-3"}]}, headers=key)

    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    for refused in (other, many):
        assert (refused.status_code, code_of(refused)) == (409, "idempotency.key_reused")
    assert len(result(shop, "/history", {})["items"]) == 1


def test_a_second_long_call_is_busy_and_its_repeat_is_made_once(shop: Client, live: Live) -> None:
    """The repeat has the same key and orders: the refused request has used up neither."""
    key, body = {"Idempotency-Key": "k"}, {"payouts": [ORDER, ORDER | {"order_id": "payout-2"}]}
    with another_long_call(live.shop):
        busy = shop.post("/v1/payout/mass", body, headers=key)
        without_key = shop.post("/v1/payout/mass", body)
        short = shop.post("/v1/payout", ORDER | {"order_id": "payout-3"})
    assert [(b.status_code, code_of(b), b.headers["retry-after"]) for b in (busy, without_key)] == [
        (503, "gateway.busy", "1")
    ] * 2
    assert busy.json["error"]["message"] == "Another long call of this merchant is under way."
    assert short.status_code == 200
    assert len(result(shop, "/history", {})["items"]) == 1

    first, again = (shop.post("/v1/payout/mass", body, headers=key) for _ in range(2))

    assert [item["success"] for item in first.json["result"]["items"]] == [True, True]
    assert "idempotent-replayed" not in first.headers
    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    assert shop.post("/v1/payout/mass", body).json == first.json
    assert len(result(shop, "/history", {})["items"]) == 3


@contextlib.contextmanager
def another_long_call(merchant_id: UUID) -> Iterator[None]:
    """Hold a merchant's turn, as a long call does that another worker is at."""
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with base.transaction():
                calls.take_turn(merchant_id)
                begun.set()
                over.wait(60)
        finally:
            base.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        over.set()
        worker.join()


def test_only_the_creation_shows_a_conversion(shop: Client) -> None:
    stock(UNIT, currency="ETH")
    charge("ETH", units=10**15)
    body = ORDER | {"currency": "ETH", "amount": "0.01", "from_currency": "USDT"}
    key = {"Idempotency-Key": "k"}

    made = result(shop, "", body, headers=key)

    msgspec.convert(made, CreatedPayout)
    assert (made["convert"]["from_currency"], made["convert"]["to_currency"]) == ("USDT", "ETH")
    assert result(shop, "", body, headers=key) == made
    shown = result(shop, "/info", {"uuid": made["uuid"]})
    assert shown == {name: value for name, value in made.items() if name != "convert"}
    assert result(shop, "/history", {})["items"] == [shown]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"amount": "25"}, ("25", "26.2", "25")),
        ({"amount": "25", "is_subtract": False}, ("25", "25", "23.8")),
        ({"amount": "0.000001"}, ("0.000001", "1.200001", "0.000001")),
        ({"amount": "1000000000"}, ("1000000000", "1000000001.2", "1000000000")),
    ],
)
def test_a_payout_is_reckoned_without_minimum_and_without_balance(
    shop: Client, body: dict[str, Any], expected: tuple[str, ...]
) -> None:
    quote = result(shop, "/calculate", body | {"currency": "USDT", "network": "ethereum"})

    msgspec.convert(quote, PayoutQuote)
    assert (quote["amount"], quote["merchant_amount"], quote["to_amount"]) == expected
    assert (quote["currency"], quote["network"], quote["commission"]) == ("USDT", "ethereum", "1.2")
    assert result(shop, "/history", {})["items"] == []


def test_the_calculated_amounts_are_charged_for_both_fee_bearers(shop: Client) -> None:
    asked = {"amount": "25", "currency": "USDT", "network": "ethereum"}
    assert result(shop, "/calculate", asked)["merchant_amount"] == "26.2"
    assert result(shop, "/fee-settings", {"is_subtract": False}) == {"is_subtract": False}
    assert result(shop, "/fee-settings", {}) == {"is_subtract": False}
    assert result(shop, "/calculate", asked)["to_amount"] == "23.8"

    result(shop, "", ORDER)

    balance = shop.post("/v1/balance", {}).json["result"]["items"]
    usdt = next(item for item in balance if item["currency"] == "USDT")
    assert (usdt["available"], usdt["payout_held"], usdt["total"]) == ("75", "25", "100")


def test_a_coin_with_one_network_has_it_filled_in(shop: Client) -> None:
    charge("ETH", units=10**15)

    assert result(shop, "/calculate", {"amount": "1", "currency": "ETH"})["network"] == "ethereum"


def test_services_show_available_methods_and_their_cost(shop: Client) -> None:
    services = result(shop, "/services", {})
    msgspec.convert(services, PayoutServices)
    methods = {(item["currency"], item["network"]): item for item in services["items"]}

    assert methods.keys() == context.context().catalogue.pairs.keys()
    assert methods["USDT", "ethereum"] == {
        "currency": "USDT",
        "network": "ethereum",
        "is_available": True,
        "limit": {"min_amount": "0.5", "max_amount": None},
        "commission": {"fee_amount": "1.2", "currency": "USDT"},
        "available_now": "0",
    }
    for method in (("USDT", "bsc"), ("USDT", "tron"), ("BTC", "bitcoin")):
        assert not methods[method]["is_available"]
        assert methods[method]["commission"]["fee_amount"] is None


def test_available_now_is_limited_by_balance_and_hot_wallet(
    live: Live, shop: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "CACHE_S", -1.0)
    quote = {"amount": "1", "currency": "USDT", "network": "ethereum"}

    def now() -> tuple[str, str]:
        [item] = [
            item
            for item in result(shop, "/services", {})["items"]
            if (item["currency"], item["network"]) == ("USDT", "ethereum")
        ]
        return item["available_now"], result(shop, "/calculate", quote)["available_now"]

    hold("USDT", "ethereum", 30 * UNIT + 1)
    assert now() == ("30", "30")
    hold("USDT", "ethereum", 3_000 * UNIT)
    assert now() == ("100", "100")
    freezes.freeze("merchant", str(live.shop), reason="a test", frozen_by="operator")
    assert now() == ("0", "0")
    freezes.unfreeze("merchant", str(live.shop))
    freezes.freeze("coin", "USDT:ethereum", reason="a test", frozen_by="signer")
    assert now() == ("0", "0")


# Mass -------------------------------------------------------------------------------------------------------


def test_many_at_once_answer_in_the_order_of_the_call(shop: Client) -> None:
    items = [ORDER | {"order_id": f"payout-{number}", "amount": str(number)} for number in range(3)]

    answer = result(shop, "/mass", {"payouts": [*items, {"amount": "1"}, "nonsense"], "source": "manual"})

    msgspec.convert(answer, MassResult)
    assert [item["success"] for item in answer["items"]] == [False, True, True, False, False]
    assert [item["order_id"] for item in answer["items"]] == ["payout-0", "payout-1", "payout-2", "", ""]
    assert answer["items"][0].keys() == {"success", "order_id", "message"}
    for item in answer["items"][1:3]:
        shown = result(shop, "/info", {"order_id": item["order_id"]})
        assert (shown["uuid"], shown["status"], shown["source"]) == (item["uuid"], "process", "manual")


def test_a_hundred_are_the_most_and_a_key_covers_them_all(shop: Client) -> None:
    items = [ORDER | {"order_id": f"payout-{number}", "amount": "0.5"} for number in range(100)]
    fund(_merchant(), 1000 * UNIT)
    key = {"Idempotency-Key": "all"}

    first = shop.post("/v1/payout/mass", {"payouts": items}, headers=key)
    again = shop.post("/v1/payout/mass", {"payouts": items}, headers=key)
    more = shop.post("/v1/payout/mass", {"payouts": [*items, ORDER]})

    assert sum(item["success"] for item in first.json["result"]["items"]) == 100
    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    assert (more.status_code, code_of(more)) == (400, "payout.batch_too_large")


def _merchant() -> Any:
    row = base.one("SELECT id FROM merchants WHERE name = 'Shop'")
    assert row is not None
    return row[0]


def test_an_unencodable_item_spoils_no_other_payout(shop: Client) -> None:
    hostile = [{"order_id": "\ud800"}, {"amount": "HUGE"}, {"memo": [[]]}, {"n": 10**400, "\udfff": "\ud800"}]
    body = json.dumps({"payouts": [ORDER | item for item in hostile]}).replace('"HUGE"', "1e999")

    answer = shop.signed("/v1/payout/mass", body.encode())

    assert [item["success"] for item in answer.json["result"]["items"]] == [False, False, False, True]


# History ----------------------------------------------------------------------------------------------------


def test_pages_follow_each_other_newest_first_without_gap_or_repeat(shop: Client) -> None:
    made = [make(shop, f"payout-{number}", amount="1") for number in range(5)]
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = result(shop, "/history", {"limit": 2} | ({"cursor": cursor} if cursor else {}))
        msgspec.convert(page, PayoutPage)
        seen += [item["uuid"] for item in page["items"]]
        cursor = page["next_cursor"]

    assert (seen, cursor) == (made[::-1], None)


def test_filters_narrow_the_list(shop: Client) -> None:
    charge("ETH", units=10**15)
    charge("USDT", "bsc")
    fund(_merchant(), UNIT, currency="ETH")
    old, bsc, ether = (
        make(shop, "old"),
        make(shop, "bsc", network="bsc"),
        make(shop, "eth", currency="ETH", amount="0.1"),
    )
    older = str(made_at(app_now() - timedelta(days=2)))
    execute("UPDATE payouts SET id = %s, created_at = created_at - interval '2 days' WHERE id = %s", (older, old))
    old = older
    execute("UPDATE payouts SET status = 'sent' WHERE id = %s", (bsc,))
    yesterday = (app_now() - timedelta(days=1)).isoformat()

    def ids(**filters: Any) -> list[str]:
        return [item["uuid"] for item in result(shop, "/history", filters)["items"]]

    assert ids() == [ether, bsc, old]
    assert ids(currency="ETH") == [ether]
    assert ids(network="bsc") == [bsc]
    assert ids(order_id="old") == [old]
    assert ids(date_to=yesterday) == [old]
    assert ids(date_from=yesterday) == [ether, bsc]
    # Three of the internal statuses have one word.
    assert ids(status="process") == [ether, bsc, old]
    execute("UPDATE payouts SET status = 'awaiting_cosign' WHERE id = %s", (old,))
    assert ids(status="awaiting_cosign", currency="USDT") == [old]
    assert ids(status="paid") == []


@pytest.mark.parametrize("cursor", ["x", "AAAA", "=" * 22])
def test_a_cursor_of_nobodys_is_refused(shop: Client, cursor: str) -> None:
    answer = shop.post("/v1/payout/history", {"cursor": cursor})

    assert code_of(answer) == "payout.bad_cursor"


@pytest.mark.parametrize("moment", ["yesterday", "2026-02-30", "2026-01-01T25:00", 5])
def test_an_invalid_date_is_refused(shop: Client, moment: Any) -> None:
    for name in ("date_from", "date_to"):
        assert code_of(shop.post("/v1/payout/history", {name: moment})) == "payout.bad_date"


@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00-23:59"])
def test_a_date_with_an_offset_of_a_day_is_refused(shop: Client, moment: str) -> None:
    for name in ("date_from", "date_to"):
        answer = shop.post("/v1/payout/history", {name: moment})
        assert (answer.status_code, code_of(answer)) == (400, "payout.bad_date")


def test_confirmations_follow_the_scan(shop: Client) -> None:
    payout = make(shop, "payout-1")
    execute("UPDATE payouts SET status = 'sent', txid = '0xab', block_height = 100 WHERE id = %s", (payout,))
    execute("UPDATE chain_cursors SET height = 104, head_height = 104 WHERE network = 'ethereum'")

    shown = msgspec.convert(result(shop, "/info", {"uuid": payout}), Payout)

    assert (shown.confirmations, shown.txid, shown.status) == (5, "0xab", "process")


# Rights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_a_payment_key_reaches_no_payout(client: Client, caller: FakeCaller, path: str) -> None:
    answer = client.post(f"/v1/payout{path}", ORDER, public_id="pk_payment")

    assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")
    assert caller.calls == []


@pytest.mark.parametrize("path", PATHS)
def test_payouts_need_a_signature(client: Client, caller: FakeCaller, path: str) -> None:
    assert client.public_post(f"/v1/payout{path}", ORDER).status_code == 401
    assert caller.calls == []


def test_the_actor_gets_the_principal_and_only_known_fields(client: Client, caller: FakeCaller) -> None:
    client.post("/v1/payout", ORDER | {"status": "confirmed", "created_by": "x", "fee_units": 0}, public_id="pk_payout")
    assert (caller.last.actor, caller.last.queue) == ("create_payout", "payouts")
    assert (caller.last.info.principal_id, caller.last.payload) == ("pk_payout", ORDER)

    client.post("/v1/payout/mass", {"payouts": [ORDER, 7]}, public_id="pk_payout")
    assert caller.last.actor == "create_payouts"
    assert caller.last.info.principal_id == "pk_payout"
    assert [json.loads(item) for item in caller.last.payload["items"]] == [ORDER, 7]
    assert caller.last.wait_s == 20.0


def test_of_another_merchant_nothing_is_seen(shop: Client) -> None:
    payout = make(shop, "payout-1")

    for body in ({"uuid": payout}, {"order_id": "payout-1"}, {"uuid": UNKNOWN}):
        answer = shop.post("/v1/payout/info", body, public_id="pk_stranger")
        assert (answer.status_code, code_of(answer)) == (404, "payout.not_found")
    assert result(shop, "/history", {}, public_id="pk_stranger")["items"] == []
    answer = shop.post("/v1/payout", ORDER, public_id="pk_stranger")
    assert code_of(answer) == "payout.insufficient_funds"
