"""The hosted page shows a payment truly, and runs or leads to nothing that a merchant or a stranger wrote."""

from __future__ import annotations

import html
import re
import uuid
from pathlib import Path

import pytest

from core.errors import PayNotFound
from core.qr import qr_data_uri
from tests.api.conftest import Client
from tests.api.rows import ADDRESS, UNIT, add_invoice, add_merchant

pytestmark = pytest.mark.usefixtures("database")

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


def page(client: Client, **columns: object) -> str:
    answer = client.simulate_get(f"/pay/{add_invoice(add_merchant(), **columns)}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.text


def section(text: str, name: str) -> str:
    return text.split(f'id="{name}"', 1)[1].split(">", 1)[0]


def test_a_buyer_without_scripts_reads_all_that_is_needed_to_pay(client: Client) -> None:
    text = page(client, order_id="order-1")

    assert "125.50 USD" in text
    assert '<span id="amount">125</span>' in text
    assert '<span id="coin">USDT</span>' in text
    assert "Ethereum" in text
    assert f">{ADDRESS}</code>" in text
    assert "order-1" in text
    assert "Waiting for your payment" in text
    assert "13:00 UTC" in text
    assert '<noscript><meta http-equiv="refresh" content="20"></noscript>' in text


def test_the_code_that_is_scanned_is_the_address_that_is_read(client: Client) -> None:
    text = page(client)

    assert html.unescape(re.findall(r'<img id="qr" src="([^"]+)"', text)[0]) == qr_data_uri(ADDRESS)
    assert f'data-address="{ADDRESS}"' in text


def test_a_buyer_who_may_choose_gets_the_methods(client: Client) -> None:
    text = page(client, status="select")

    assert re.search(r'data-currency="USDT" data-network="bsc"', text)
    assert "hidden" not in section(text, "view-select")
    assert "hidden" in section(text, "view-pay")
    assert "<img" not in text


@pytest.mark.parametrize(
    ("columns", "heading", "words"),
    [
        ({"status": "check", "detected_units": 5 * UNIT}, "Waiting for your payment", "Received 5 USDT"),
        ({"status": "paid", "is_final": True, "confirmed_units": 125 * UNIT}, "Payment received", "125 USDT arrived"),
        ({"status": "paid_over", "is_final": True, "confirmed_units": 126 * UNIT}, "Payment received", "126 USDT"),
        ({"status": "wrong_amount", "confirmed_units": 5 * UNIT}, "does not match", "5 of 125 USDT"),
        ({"status": "expired", "is_final": True}, "has expired", "do not send"),
    ],
)
def test_each_status_has_its_words(client: Client, columns: dict[str, object], heading: str, words: str) -> None:
    text = page(client, **columns)

    assert heading in text
    assert words in " ".join(text.split())
    assert ("hidden" in section(text, "view-pay")) is (columns["status"] != "check")
    assert ("http-equiv" in text) is (not columns.get("is_final", False))


@pytest.mark.parametrize("name", ["order_id", "url_return", "url_success", "additional_data", "payer_email", "txid"])
def test_what_a_merchant_wrote_is_never_markup(client: Client, name: str) -> None:
    text = page(client, **{name: SCRIPT})

    assert "<script>alert" not in text
    assert "<img src=x" not in text
    if name in {"additional_data", "payer_email"}:
        assert "alert(1)" not in text


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "vbscript:x",
        "\x01javascript:alert(1)",
        "file:///etc/passwd",
        "shop.example",
    ],
)
def test_a_link_that_is_not_of_the_web_is_no_link(client: Client, url: str) -> None:
    text = page(client, url_return=url, url_success=url, status="paid")

    assert re.findall(r'href="([^"]*)"', text) == re.findall(r'href="(/static/[^"]*)"', text)
    assert re.findall(r'data-success="([^"]*)"', text) == [""]


def test_links_of_the_web_are_links(client: Client) -> None:
    text = page(
        client, url_return="https://shop.example/cart?a=1&b=2", url_success="https://shop.example/ok", status="paid"
    )

    assert 'href="https://shop.example/cart?a=1&amp;b=2" rel="noopener noreferrer"' in text
    assert 'href="https://shop.example/ok" rel="noopener noreferrer"' in text


def test_the_browser_may_run_only_what_comes_from_here(client: Client) -> None:
    answer = client.simulate_get(f"/pay/{add_invoice(add_merchant())}")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "max-age" in answer.headers["strict-transport-security"]
    assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text)


def test_everything_the_page_loads_is_served(client: Client) -> None:
    links = re.findall(r'(?:href|src)="(/static/[^"]+)"', page(client))

    assert {Path(link.split("?")[0]).name for link in links} == {"icon.svg", "pay.css", "pay.js"}
    for link in links:
        path, _, query = link.partition("?")
        answer = client.simulate_get(path, query_string=query)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "charset=utf-8" in answer.headers["content-type"] or path.endswith(".svg")


@pytest.mark.parametrize("name", ["nothing", "pay.html", "..%2Fpages.py", "%2e%2e", ".gitignore"])
def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert client.simulate_get(f"/static/{name}").status_code == 404


def test_the_invoice_chooses_the_theme(client: Client) -> None:
    assert 'data-theme="dark"' in page(client, theme="dark")
    assert 'data-theme="light"' in page(client)


def test_who_may_pay_in_parts_is_asked_for_the_rest(client: Client) -> None:
    part = {"detected_units": 5 * UNIT}

    assert '<span id="amount">120</span>' in page(client, **part, is_payment_multiple=True)
    assert '<span id="amount">125</span>' in page(client, **part)


def test_a_page_that_cannot_be_shown_is_still_a_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    malformed, unknown = client.simulate_get("/pay/x"), client.simulate_get(f"/pay/{uuid.uuid4()}")
    monkeypatch.setattr("api.pages.find", lambda _: 1 / 0)
    broken = client.simulate_get(f"/pay/{uuid.uuid4()}")

    assert [answer.status_code for answer in (malformed, unknown, broken)] == [400, PayNotFound.status, 500]
    for answer in (malformed, unknown, broken):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "content-security-policy" in answer.headers
        assert "<h1>" in answer.text
        assert "ZeroDivisionError" not in answer.text
