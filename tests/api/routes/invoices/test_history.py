"""Lists of payments: pages, filters, codes, methods; only those of the calling merchant."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from core.catalogue.catalogue import load_catalogue
from core.invoices.schemas import PaymentPage, PaymentServices
from models.db import base
from models.rates import rates
from tests.api.conftest import Client, Keys, code_of
from tests.api.rows import ADDRESS, CREATED, add_invoice, add_merchant, made_at

pytestmark = pytest.mark.usefixtures("database")
PATH = "/v1/payment/history"


@pytest.fixture
def merchant_id(keys: Keys, database: str) -> uuid.UUID:
    del database
    merchant_id = add_merchant()
    keys.add("pk_unified", "unified", merchant_id)
    return merchant_id


def ids(answer: Any) -> list[str]:
    return [item["uuid"] for item in answer.json["result"]["items"]]


def test_pages_follow_each_other_newest_first_without_gap_or_repeat(client: Client, merchant_id: uuid.UUID) -> None:
    made = [str(add_invoice(merchant_id)) for _ in range(5)]
    add_invoice(add_merchant("Other"))

    seen: list[str] = []
    cursor = None
    for _ in range(3):
        answer = client.post(PATH, {"limit": 2} | ({"cursor": cursor} if cursor else {}))
        msgspec.convert(answer.json["result"], PaymentPage)
        seen += ids(answer)
        cursor = answer.json["result"]["next_cursor"]

    assert seen == made[::-1]
    assert cursor is None


@pytest.mark.parametrize(("limit", "shown"), [(0, 50), (-1, 50), (201, 50), (None, 50), (3, 3), (200, 55)])
def test_a_limit_outside_1_to_200_is_50(client: Client, merchant_id: uuid.UUID, limit: int | None, shown: int) -> None:
    for _ in range(55):
        add_invoice(merchant_id)

    assert len(ids(client.post(PATH, {"limit": limit}))) == shown


def test_filters_narrow_the_list(client: Client, merchant_id: uuid.UUID) -> None:
    paid = str(add_invoice(merchant_id, status="paid", is_final=True, order_id="a"))
    euro = str(add_invoice(merchant_id, price_currency="EUR"))
    old = str(add_invoice(merchant_id, created_at=CREATED - timedelta(days=2), network="bsc"))

    assert ids(client.post(PATH, {"status": "paid"})) == [paid]
    assert ids(client.post(PATH, {"currency": "EUR"})) == [euro]
    assert ids(client.post(PATH, {"network": "bsc"})) == [old]
    assert ids(client.post(PATH, {"order_id": "a"})) == [paid]
    assert ids(client.post(PATH, {"date_to": "2026-01-30"})) == [old]
    assert ids(client.post(PATH, {"date_to": f"{CREATED:%Y-%m-%d}"})) == [euro, paid, old], "the day is included"
    assert ids(client.post(PATH, {"date_to": f"{CREATED:%Y-%m-%d}T00:00:00Z"})) == [old]
    assert len(ids(client.post(PATH, {"date_to": "9999-12-31", "cursor": None, "limit": None}))) == 3
    assert ids(client.post(PATH, {"date_from": "2026-01-31T13:00:00+01:00"})) == [euro, paid]


@pytest.mark.parametrize("apart", [timedelta(minutes=-50), timedelta(minutes=50)])
def test_a_payment_named_by_a_clock_that_is_off_is_listed_by_its_date(
    client: Client, merchant_id: uuid.UUID, apart: timedelta
) -> None:
    made = str(add_invoice(merchant_id, id=made_at(CREATED + apart)))

    dates = {"date_from": CREATED.isoformat(), "date_to": (CREATED + timedelta(seconds=1)).isoformat()}

    assert ids(client.post(PATH, dates)) == [made]


def test_a_payment_is_listed_by_its_date_where_the_clock_was_moved(client: Client, merchant_id: uuid.UUID) -> None:
    base.execute("UPDATE app_clock SET ahead = interval '10 days'")
    moved = CREATED + timedelta(days=10)
    made = str(add_invoice(merchant_id, id=made_at(CREATED), created_at=moved))

    assert ids(client.post(PATH, {"date_from": moved.isoformat()})) == [made]


@pytest.mark.parametrize("cursor", ["x", "AAAA", "ü", "=" * 22, "A" * 22 + "=="])
@pytest.mark.usefixtures("merchant_id")
def test_a_cursor_of_nobodys_is_refused(client: Client, cursor: str) -> None:
    assert code_of(client.post(PATH, {"cursor": cursor})) == "payment.bad_cursor"


@pytest.mark.parametrize("moment", ["yesterday", "2026-02-30", "20260101", "2026-W01-1", "2026-01-01T25:00", 5])
@pytest.mark.usefixtures("merchant_id")
def test_an_invalid_date_is_refused(client: Client, moment: Any) -> None:
    assert code_of(client.post(PATH, {"date_from": moment})) == "payment.bad_date"
    assert code_of(client.post(PATH, {"date_to": moment})) == "payment.bad_date"


OFFSETS = [
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+23:59",
    "2026-01-01T00:00:00-23:59",
    "2026-01-01T00:00:00+16:00",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
]


@pytest.mark.parametrize("moment", OFFSETS)
@pytest.mark.usefixtures("merchant_id")
def test_a_date_with_an_offset_of_a_day_is_refused(client: Client, moment: str) -> None:
    for name in ("date_from", "date_to"):
        answer = client.post(PATH, {name: moment})
        assert (answer.status_code, code_of(answer)) == (400, "payment.bad_date")


@pytest.mark.parametrize("moment", ["0001-01-01", "9999-12-31T23:59:59.999999Z", "2026-01-01T00:00:00+15:59"])
@pytest.mark.usefixtures("merchant_id")
def test_a_date_at_the_edge_of_all_dates_is_one(client: Client, moment: str) -> None:
    assert client.post(PATH, {"date_from": moment, "date_to": moment}).json["result"]["items"] == []


@pytest.mark.usefixtures("merchant_id")
def test_an_unknown_status_is_refused(client: Client) -> None:
    assert code_of(client.post(PATH, {"status": "payed"})) == "request.bad_field"


def test_the_code_is_of_the_address_and_before_the_choice_of_the_page(client: Client, merchant_id: uuid.UUID) -> None:
    chosen, open_ = add_invoice(merchant_id), add_invoice(merchant_id, status="select")
    info = client.post("/v1/payment/info", {"uuid": str(chosen)}).json["result"]

    codes = [client.post("/v1/payment/qr", {"uuid": str(i)}).json["result"]["image"] for i in (chosen, open_)]

    assert codes[0] == info["address_qr_code"]
    assert codes[1].startswith("data:image/png;base64,")
    assert codes[1] != codes[0]


def test_a_foreign_payments_code_is_absent(client: Client, merchant_id: uuid.UUID) -> None:
    del merchant_id
    foreign = add_invoice(add_merchant("Other"))

    assert code_of(client.post("/v1/payment/qr", {"uuid": str(foreign)})) == "payment.not_found"
    assert code_of(client.post("/v1/payment/qr", {})) == "payment.no_lookup"
    assert ADDRESS  # the foreign payment has one


@pytest.mark.usefixtures("merchant_id")
def test_services_show_every_method_with_limits_and_fees(client: Client) -> None:
    with base.transaction():
        base.execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('ETH', 3000, 'test', app_now())")
    assert rates.load_market().rates["ETH"]

    answer = client.post("/v1/payment/services", {})

    items = {(i.currency, i.network): i for i in msgspec.convert(answer.json["result"], PaymentServices).items}
    ether, tether = items["ETH", "ethereum"], items["USDT", "tron"]
    assert items.keys() == load_catalogue("production").pairs.keys()
    assert (ether.commission.percent, ether.commission.fixed_usd, ether.discount_percent) == ("1.5", "0.30", 0)
    assert ether.limit.max_amount == "3333.333333333333333333"
    assert tether.limit.max_amount is None
    assert not tether.is_available
