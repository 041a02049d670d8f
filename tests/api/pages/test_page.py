"""The hosted page shows a payment truly, and runs or leads to nothing that a merchant or a stranger wrote."""

from __future__ import annotations

import gzip
import html
import re
import uuid
from pathlib import Path

import pytest

from api.routes.invoices.pay import about
from core.catalogue.catalogue import load_catalogue
from core.errors import PayNotFound
from core.settings.settings import Settings
from core.texts.qr import qr_data_uri
from models.db import base
from models.merchants import rows as merchants
from tests.api.conftest import Client
from tests.api.rows import ADDRESS, CREATED, UNIT, add_deposit, add_invoice, add_merchant, add_sighting

pytestmark = pytest.mark.usefixtures("database")

OPEN = {"expires_at": "2100-01-31T13:00:00Z", "rate_expires_at": "2100-01-31T13:00:00Z"}
SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


def page(client: Client, **columns: object) -> str:
    answer = client.simulate_get(f"/pay/{add_invoice(add_merchant(), **OPEN | columns)}")
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
    assert f"<b>{ADDRESS[:6]}</b>{ADDRESS[6:-6]}<b>{ADDRESS[-6:]}</b></code>" in text
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
    assert 'id="view-select"' in text
    assert 'id="view-pay"' not in text
    assert "<img" not in text


def test_each_method_shows_its_present_amount(client: Client) -> None:
    for coin in ("USDT", "USD"):
        base.execute("INSERT INTO rates VALUES (%s, 1, 'test', app_now()) ON CONFLICT DO NOTHING", (coin,))
    text = page(client, status="select")
    assert re.search(
        r'data-network="bsc">.* BNB Smart Chain\s+<span class="muted small" dir="ltr">[0-9.]+ USDT</span>', text
    )


def test_each_method_shows_the_usual_fee_of_its_network_where_it_is_known(client: Client) -> None:
    base.execute(
        "INSERT INTO network_fees (network, currency, units, quoted_at, gas_units)"
        " VALUES ('bsc', 'USDT', 123456789012345678, app_now(), 1)"
    )
    text = page(client, status="select")

    fees = re.findall(
        r'data-network="(\w+)">(?:(?!</button>).)*<span class="muted small fee">([^<]*)<', text, re.DOTALL
    )
    assert fees == [("bsc", "network fee about 0.12 USDT")]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0.00123456", "0.0012"),
        ("1.25", "1.2"),
        ("0.5", "0.5"),
        ("1234.56", "1235"),
        ("10", "10"),
        ("0.000000019", "0.000000019"),
    ],
)
def test_a_fee_is_rounded_to_what_a_reader_needs(amount: str, shown: str) -> None:
    assert about(amount) == shown


def test_a_transaction_leads_to_the_networks_explorer(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    txid = "0x" + "ab" * 32
    assert 'id="explorer"' not in page(client, txid=txid)
    monkeypatch.setattr(
        Settings, "transaction_url", lambda _, network, paid_by: f"https://scan.example/{network.code}/{paid_by}"
    )
    text = page(client, txid=txid)
    link = f'<a id="explorer" href="https://scan.example/ethereum/{txid}" rel="noopener noreferrer" target="_blank">'
    assert link in text
    assert 'id="explorer"' not in page(client)


CONFIRMED = {"status": "confirmed", "stray_reason": None, "currency": "USDT"}
PENDING = CONFIRMED | {"status": "pending"}
LATE = "2100-02-01T00:00:00Z"


def sums(detected: int, confirmed: int = 0) -> dict[str, object]:
    return {"detected_units": detected * UNIT, "confirmed_units": confirmed * UNIT}


def stage(client: Client, columns: dict[str, object], *deposits: dict[str, object], lang: str = "en") -> str:
    """Return the page of an invoice with these deposits."""
    path = staged(add_merchant(), columns, *deposits)
    answer = client.simulate_get(path, query_string=f"lang={lang}")
    assert answer.status_code == 200
    return answer.text


def staged(merchant_id: uuid.UUID, columns: dict[str, object], *deposits: dict[str, object]) -> str:
    """Add an invoice with these deposits, and return its page's path.

    A deposit is of 5 USDC, another coin than asked, by default. It is of the first day; the invoice is open for long.
    """
    invoice_id = add_invoice(merchant_id, **OPEN | columns)
    for number, deposit in enumerate(deposits):
        add_deposit(merchant_id, invoice_id, **{"txid": f"0x{invoice_id.hex}", "ordinal": str(number)} | deposit)
    return f"/pay/{invoice_id}"


def words(text: str) -> str:
    """Return what is read, spaces made one."""
    body = re.sub(r"<[^>]+>", " ", text.split("<main>", 1)[1])
    return " ".join(html.unescape(body).split())


STAGES: list[tuple[str, dict[str, object], list[dict[str, object]], str, str]] = [
    ("waiting", {}, [], "Waiting for your payment", "Open until 13:00 UTC"),
    (
        "detected",
        sums(125) | {"deposit_height": 7},
        [PENDING | {"amount_units": 125 * UNIT}],
        "Your payment was found",
        "125 USDT of 125 USDT arrived. The network is confirming it. This usually takes",
    ),
    (
        "detected",
        sums(130),
        [PENDING | {"amount_units": 130 * UNIT}],
        "Your payment was found",
        "130 USDT arrived: 5 USDT more than was asked.",
    ),
    ("part", sums(5), [PENDING], "A part of the payment arrived", "5 USDT of 125 USDT arrived."),
    ("wrong_coin", {}, [{}], "Another coin arrived", "5 USDC on Ethereum arrived, but USDT on Ethereum was asked for."),
    (
        "wrong_coin",
        {},
        [{"network": "bsc", "currency": "USDT", "stray_reason": "network"}],
        "Another coin arrived",
        "5 USDT on BNB Smart Chain arrived, but USDT on Ethereum was asked for.",
    ),
    ("over_time", {"expires_at": CREATED}, [], "The time to pay is over", "Please do not send anything any more."),
    (
        "over_time",
        sums(5) | {"expires_at": CREATED},
        [PENDING],
        "The time to pay is over",
        "5 USDT of 125 USDT arrived until now.",
    ),
    (
        "unpriced",
        {"rate_expires_at": CREATED, "extended_generation": 1},
        [],
        "The price cannot be told right now",
        "There is no exchange rate for USDT at the moment. Please do not send anything",
    ),
    (
        "paid",
        sums(125, 125) | {"status": "paid", "is_final": True},
        [CONFIRMED | {"amount_units": 125 * UNIT}],
        "Payment received",
        "Thank you. 125 USDT arrived.",
    ),
    (
        "paid",
        sums(120, 120) | {"status": "paid", "is_final": True},
        [CONFIRMED | {"amount_units": 120 * UNIT}],
        "Payment received",
        "120 USDT of 125 USDT arrived, and the shop takes it as paid.",
    ),
    (
        "paid_over",
        sums(126, 126) | {"status": "paid_over", "is_final": True},
        [CONFIRMED | {"amount_units": 126 * UNIT}],
        "Payment received",
        "126 USDT arrived: 1 USDT more than the 125 USDT that were asked.",
    ),
    (
        "short",
        sums(5, 5) | {"status": "wrong_amount"},
        [CONFIRMED],
        "Less than was asked arrived",
        "5 USDT of 125 USDT arrived until the time to pay was over: 120 USDT is missing.",
    ),
    (
        "late",
        sums(125, 125) | {"status": "wrong_amount"},
        [CONFIRMED | {"amount_units": 125 * UNIT, "seen_at": LATE}],
        "The payment came late",
        "125 USDT arrived after the time to pay was over.",
    ),
    (
        "late",
        sums(125, 125) | {"status": "wrong_amount"},
        [CONFIRMED | {"amount_units": 100 * UNIT}, CONFIRMED | {"amount_units": 25 * UNIT, "seen_at": LATE}],
        "The payment came late",
        "100 USDT arrived in time, and 25 USDT after the time to pay was over.",
    ),
    (
        "late",
        sums(125) | {"status": "expired", "is_final": True},
        [PENDING | {"amount_units": 125 * UNIT, "seen_at": LATE}],
        "The payment came late",
        "125 USDT arrived after the time to pay was over.",
    ),
    (
        "detected",
        sums(125) | {"status": "expired", "is_final": True},
        [PENDING | {"amount_units": 125 * UNIT}],
        "Your payment was found",
        "125 USDT of 125 USDT arrived. The network is confirming it. This usually takes",
    ),
    (
        "short",
        sums(5) | {"status": "expired", "is_final": True},
        [PENDING],
        "Less than was asked arrived",
        "5 USDT of 125 USDT arrived until the time to pay was over: 120 USDT is missing.",
    ),
    ("wrong_coin", {"status": "wrong_amount"}, [{}], "Another coin arrived", "5 USDC on Ethereum arrived"),
    ("wrong_coin", {"status": "expired", "is_final": True}, [{}], "Another coin arrived", "the time to pay is over"),
    (
        "sent_back",
        sums(5, 5) | {"status": "wrong_amount", "is_final": True},
        [CONFIRMED],
        "The money was sent back",
        "This payment is closed.",
    ),
    ("expired", {"status": "expired", "is_final": True}, [], "This payment has expired", "do not send anything"),
    ("expired", {"status": "select", "expires_at": CREATED}, [], "This payment has expired", "a new payment"),
]
INVITING = {"waiting", "part"}


@pytest.mark.parametrize(("name", "columns", "deposits", "heading", "sentence"), STAGES)
def test_each_stage_has_its_words(
    client: Client,
    name: str,
    columns: dict[str, object],
    deposits: list[dict[str, object]],
    heading: str,
    sentence: str,
) -> None:
    text = stage(client, columns, *deposits)

    assert f'data-stage="{name}"' in text
    assert f'<h1 id="heading" tabindex="-1">{heading}</h1>' in text
    assert sentence in words(text)
    # A buyer who has nothing (more) to send sees no address.
    is_inviting = name in INVITING or (name == "wrong_coin" and "status" not in columns)
    assert ('id="address"' in text) is ('id="qr"' in text) is is_inviting
    assert "hidden" in section(text, "countdown") or name in {*INVITING, "wrong_coin", "unpriced"}


def test_a_buyer_who_has_paid_in_full_is_not_asked_for_more(client: Client) -> None:
    text = stage(client, sums(125) | {"deposit_height": 7}, PENDING | {"amount_units": 125 * UNIT})

    assert "Waiting for your payment" not in text
    assert "Confirmations: 0 of 3" in words(text)
    assert "There is nothing more to send" in words(text)
    assert "data-copy" not in text


@pytest.mark.parametrize(
    ("sighted", "detected", "heading", "sentence"),
    [
        (125, 0, "Your payment was seen", "125 USDT of 125 USDT was seen. It waits for its first block."),
        (120, 5, "Your payment was seen", "125 USDT of 125 USDT was seen. It waits for its first block."),
        (130, 0, "Your payment was seen", "130 USDT was seen: 5 USDT more than was asked."),
        (20, 5, "A part of the payment was seen", "20 USDT of it waits for its first block."),
    ],
)
def test_a_payment_without_a_block_shows_as_seen(
    client: Client, sighted: int, detected: int, heading: str, sentence: str
) -> None:
    merchant_id = add_merchant()
    invoice_id = add_invoice(merchant_id, **OPEN | sums(detected))
    add_sighting(merchant_id, invoice_id, sighted * UNIT)
    text = client.simulate_get(f"/pay/{invoice_id}").text

    assert heading in words(text)
    assert sentence in words(text)
    assert "Confirmations: 0 of 3" in words(text)
    assert ('id="address"' in text) == (sighted + detected < 125)


def test_all_of_all_is_no_mismatch(client: Client) -> None:
    """However late: to read that 48.875 of 48.875 does not match, one has to be a machine."""
    asked = 48_875 * UNIT // 1_000
    columns = {"status": "wrong_amount", "payer_units": asked, "detected_units": asked, "confirmed_units": asked}
    text = words(stage(client, columns, CONFIRMED | {"amount_units": asked, "seen_at": LATE}))

    assert "48.875 USDT arrived after the time to pay was over." in text
    assert "48.875 of" not in text
    assert "match" not in text


def test_a_partly_paid_page_asks_for_the_rest(client: Client) -> None:
    """A merchant who takes payments in one piece does not invite it; it counts all the same."""
    for is_multiple, sentence in ((True, "Please send the remaining 120 USDT."), (False, "120 USDT is missing.")):
        text = stage(client, sums(5) | {"is_payment_multiple": is_multiple}, PENDING)
        assert '<span id="amount">120</span>' in text
        assert sentence in words(text)
        assert 'data-copy="amount"' in text


def test_a_stray_next_to_a_payment_is_shown(client: Client) -> None:
    text = stage(client, sums(125), PENDING | {"amount_units": 125 * UNIT}, {})

    assert "Besides, 5 USDC on Ethereum arrived, which was not asked for" in words(text)


def test_reorged_and_refunded_deposits_are_not_shown(client: Client) -> None:
    assert 'data-stage="waiting"' in stage(client, {}, PENDING | {"status": "reversed"}, {"status": "credited"})


def test_confirmations_are_shown_as_far_as_they_are_needed(client: Client) -> None:
    text = stage(client, sums(125), PENDING | {"amount_units": 125 * UNIT})

    assert re.search(r'<progress id="progress" [^>]*value="0"\s+max="3" >', text)
    assert "hidden" in section(stage(client, {}), "progress")


def test_a_page_that_has_not_changed_is_not_sent_again_but_the_time_is(client: Client) -> None:
    invoice_id = add_invoice(add_merchant(), **OPEN)
    first = client.simulate_get(f"/pay/{invoice_id}")
    again = client.simulate_get(f"/pay/{invoice_id}", headers={"If-None-Match": first.headers["etag"]})
    base.execute("UPDATE invoices SET detected_units = %s WHERE id = %s", (5 * UNIT, invoice_id))
    changed = client.simulate_get(f"/pay/{invoice_id}", headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.text) == (304, "")
    assert changed.status_code == 200
    for answer in (first, again, changed):
        assert abs(int(answer.headers["x-gateway-time"]) - base.app_now().timestamp() * 1000) < 60_000
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("name", ["order_id", "url_return", "url_success", "additional_data", "payer_email", "txid"])
def test_a_merchants_text_is_never_markup(client: Client, name: str) -> None:
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

    assert re.findall(r'href="([^"]*)"', text) == re.findall(r'href="(/static/[^"]*|[?]lang=[a-z]{2})"', text)
    assert re.findall(r'data-success="([^"]*)"', text) == [""]


def test_links_of_the_web_are_links(client: Client) -> None:
    text = page(
        client, url_return="https://shop.example/cart?a=1&b=2", url_success="https://shop.example/ok", status="paid"
    )

    assert 'href="https://shop.example/cart?a=1&amp;b=2" rel="noopener noreferrer"' in text
    assert 'href="https://shop.example/ok" rel="noopener noreferrer"' in text


def test_the_browser_may_run_only_the_gateways_files(client: Client) -> None:
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

    assert {Path(link.split("?")[0]).name for link in links} == {"icon.svg", "pages.css", "pay.js"}
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
    assert 'data-theme="light"' in page(client, theme="light")
    # Without a choice the reader's device decides.
    assert 'data-theme="light dark"' in page(client)


def test_a_page_that_cannot_be_shown_is_still_a_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    malformed, unknown = client.simulate_get("/pay/x"), client.simulate_get(f"/pay/{uuid.uuid4()}")
    monkeypatch.setattr("api.pages.pages.find", lambda _: 1 / 0)
    broken = client.simulate_get(f"/pay/{uuid.uuid4()}")

    assert [answer.status_code for answer in (malformed, unknown, broken)] == [400, PayNotFound.status, 500]
    for answer in (malformed, unknown, broken):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "content-security-policy" in answer.headers
        assert "<h1>" in answer.text
        assert "ZeroDivisionError" not in answer.text


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAYMENT = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 404),
        ("GET", "/pay/", 404),
        ("GET", "/pay", 404),
        ("GET", f"/pay//{PAYMENT}", 404),
        ("GET", f"/pay/{PAYMENT}/x", 404),
        ("GET", "/favicon.ico", 404),
        ("GET", "/static/nothing.css", 404),
        ("GET", "/v1x/payment", 404),
        ("PUT", f"/pay/{PAYMENT}", 405),
    ],
)
def test_a_browser_gets_a_page_where_a_program_gets_an_error(
    client: Client, method: str, path: str, status: int
) -> None:
    program, browser = client.simulate_request(method, path), client.simulate_request(method, path, headers=BROWSER)

    assert (program.status_code, browser.status_code) == (status, status)
    assert program.headers["content-type"] == "application/json"
    assert browser.headers["content-type"] == "text/html; charset=utf-8"
    assert browser.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in browser.headers["content-security-policy"]
    assert browser.headers.get("allow") == program.headers.get("allow")
    if method != "HEAD":
        assert set(program.json) == {"error"}
        assert "<h1>There is no page here</h1>" in browser.text


def test_the_bare_address_leads_a_lost_buyer_back_to_the_shop(client: Client) -> None:
    for query in ("", "lang=de", "utm=1"):
        answer = client.simulate_get("/", query_string=query, headers=BROWSER)
        title = "Bezahlen mit Coins" if query == "lang=de" else "Payments with coins"
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert f"<h1>{title}</h1>" in answer.text
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    head = client.simulate_head("/", headers=BROWSER)
    assert (head.status_code, head.text) == (200, "")
    assert client.simulate_get("/").json["error"]["code"] == "request.not_found"


@pytest.mark.parametrize("spelling", ["{}", "{{{}}}", "urn:uuid:{}", "%7B{}%7D", "{} ", "{}%00", "{}?x", "{}\u0660"])
@pytest.mark.parametrize("page", ["pay", "link"])
def test_only_the_canonical_spelling_of_an_id_is_a_page(client: Client, page: str, spelling: str) -> None:
    for number in (PAYMENT.upper(), PAYMENT.replace("-", ""), PAYMENT[:-1], f"{PAYMENT}0"):
        answer = client.simulate_get(f"/{page}/{spelling.format(number)}", headers=BROWSER)
        assert answer.status_code in {400, 404}
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("page", ["pay", "link", "claim"])
def test_a_slash_behind_the_address_of_a_page_leads_a_browser_to_the_page(client: Client, page: str) -> None:
    path = f"/{page}/{PAYMENT}/"

    assert client.simulate_get(path).json["error"]["code"] == "request.not_found"
    led = client.simulate_get(path, query_string="lang=de", headers=BROWSER)
    assert (led.status_code, led.headers["location"]) == (308, f"/{page}/{PAYMENT}?lang=de")
    # No other site, and nothing that is no name of a page.
    for strange in (f"//x.example/{page}/{PAYMENT}/", f"/{page}/a/b/", f"/{page}/..%2F/", f"/{page}//"):
        assert "location" not in client.simulate_get(strange, headers=BROWSER).headers


@pytest.mark.parametrize("path", ["/v1/nothing", "//v1/payment", "/v1/payment", "/v1", "/metrics/", "/readyz/x"])
def test_the_api_answers_in_json_whatever_is_accepted(client: Client, path: str) -> None:
    # The Accept header of Java's own HTTP client.
    answer = client.simulate_get(path, headers={"Accept": "text/html, image/gif, */*; q=.2"})

    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json) == {"error"}


def test_the_shop_and_the_rate_are_named(client: Client) -> None:
    text = page(client)
    assert '<bdi id="shop">Shop</bdi>' in text
    assert '<bdi id="rate" dir="ltr">1 USDT = 1.00400 USD</bdi>' in text
    assert '<bdi id="price">125.50 USD</bdi>' in text


def test_a_buyer_in_trouble_is_led_to_the_shop(client: Client) -> None:
    merchant_id = add_merchant()
    merchants.set_face(merchant_id, display_name="Corner <Shop>", contact="help@shop.example")
    for columns, is_shown in (({"status": "expired", "is_final": True}, True), (OPEN, False)):
        text = client.simulate_get(f"/pay/{add_invoice(merchant_id, **columns)}").text
        assert '<bdi id="shop">Corner &lt;Shop&gt;</bdi>' in text
        assert ('<a href="mailto:help@shop.example"' in text) is is_shown
    assert 'id="contact"' not in page(client, status="expired", is_final=True)


def test_a_wallet_link_asks_for_what_remains_and_a_tokens_link_is_no_code(client: Client) -> None:
    merchant_id = add_merchant()
    invoice_id = add_invoice(merchant_id, **OPEN, detected_units=5 * UNIT)
    add_deposit(merchant_id, invoice_id, amount_units=5 * UNIT, **CONFIRMED)
    text = html.unescape(client.simulate_get(f"/pay/{invoice_id}").text)
    chain = load_catalogue("development").networks["ethereum"].chain_identity
    assert f"@{chain}/transfer?address={ADDRESS}&uint256=120000000" in text
    assert 'id="amount-qr"' not in text

    coin = {"pay_currency": "ETH", "payer_units": 5 * 10**16}
    text = html.unescape(page(client, **coin))
    link = re.findall(r'id="wallet-link" class="button wide" href="([^"]+)"', text)[0]
    assert link.startswith(f"ethereum:{ADDRESS}@")
    assert link.endswith("?value=50000000000000000")
    assert re.findall(r'<img id="amount-qr" class="second" src="([^"]+)"', text)[0] == qr_data_uri(link)


def test_pages_and_files_are_compressed_for_those_who_accept_it(client: Client) -> None:
    path = f"/pay/{add_invoice(add_merchant(), **OPEN)}"
    plain = client.simulate_get(path)
    packed = client.simulate_get(path, headers={"Accept-Encoding": "gzip"})

    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Language, Accept-Encoding"
    assert gzip.decompress(packed.content).decode() == plain.text
    assert len(packed.content) * 2 < len(plain.content)
    # A reader may ask with the one form's validator for the other.
    assert plain.headers["ETag"] == packed.headers["ETag"]
    for headers in ({}, {"Accept-Encoding": "gzip"}):
        known = client.simulate_get(path, headers=headers | {"If-None-Match": plain.headers["ETag"]})
        assert known.status_code == 304
        assert known.content == b""
    static = re.findall(r'href="(/static/pages.css[^"]+)"', plain.text)[0]
    answer = client.simulate_get(static, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content) == client.simulate_get(static).content
