"""The hosted page in a real browser: it keeps itself current, lets the buyer choose, and breaks no rule of its own."""

from __future__ import annotations

import os
import re
import shutil
import socketserver
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
from playwright.sync_api import Browser, Page

from api.app import create_app
from core.errors import PayMethodNotAccepted
from models.db import base
from tests.api.conftest import FakeCaller, FakeQueues, Keys, all_usable, make_settings
from tests.api.rows import ADDRESS, UNIT, add_deposit, add_invoice, add_merchant, add_sighting

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# A browser's log line for an answer that a test caused.
ANSWERED = re.compile(r"status of (400|429|500|503) ")


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_args: Any) -> None:
        pass


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        assert "CI" not in os.environ, "there is no chromium on PATH, and CI must have one"
        pytest.skip("there is no chromium on PATH")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only where a browser is

    with sync_playwright() as playwright:
        # As root, as in most containers, chromium has no sandbox.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield launched
        launched.close()


@pytest.fixture
def site(caller: FakeCaller, queues: FakeQueues, keys: Keys, database: str) -> Iterator[str]:
    del database
    server = Server(("127.0.0.1", 0), QuietHandler)
    url = f"http://127.0.0.1:{server.server_port}"
    server.set_app(
        create_app(
            make_settings(PAY_URL=url, POLYGON_RPC_URLS="http://127.0.0.1:1"),
            caller=caller,
            queues=queues,
            find_key=keys.find,
            read_usable=all_usable,
        )
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield url
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A page, on a small screen, that must not log a single error or violation."""
    del site  # it serves until the page is closed
    opened = browser.new_page(viewport={"width": 360, "height": 740})
    opened.set_default_timeout(10_000)
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield opened
    opened.close()
    assert [text for text in complaints if not ANSWERED.search(text)] == []


def test_the_page_follows_the_payment(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")

    assert page.inner_text("#address") == ADDRESS
    assert page.is_visible("#qr")
    assert "left" in page.inner_text("#remaining")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    pay(invoice_id, 5)
    page.wait_for_selector("text=5 USDT of 125 USDT arrived.")
    assert page.inner_text("#amount") == "120"
    assert page.inner_text("#progress-text") == "Confirmations: 0 of 3"

    pay(invoice_id, 120)
    page.wait_for_selector("text=Your payment was found")
    assert "125 USDT of 125 USDT arrived." in page.inner_text("#lines")
    assert page.is_visible("#progress")
    assert page.query_selector("#address, #qr, #copy-amount") is None
    assert not page.is_visible("#countdown")

    base.execute(
        "UPDATE invoices SET status = 'paid', is_final = true, confirmed_units = %s WHERE id = %s",
        (125 * UNIT, invoice_id),
    )
    page.wait_for_selector("text=Payment received")
    assert "125 USDT arrived" in page.inner_text("#lines")
    assert page.query_selector("#view-pay") is None


def pay(invoice_id: uuid.UUID, amount: int, **columns: Any) -> None:
    """Let a deposit of USDT be found."""
    merchant_id = uuid.UUID(str(base.rows("SELECT merchant_id FROM invoices WHERE id = %s", (invoice_id,))[0][0]))
    fields = {"txid": f"0x{uuid.uuid4().hex}", "currency": "USDT", "stray_reason": None, "status": "pending"}
    add_deposit(merchant_id, invoice_id, **fields | {"amount_units": amount * UNIT} | columns)
    base.execute("UPDATE invoices SET detected_units = detected_units + %s WHERE id = %s", (amount * UNIT, invoice_id))


def test_the_page_shows_a_seen_payment_until_its_block(page: Page, site: str) -> None:
    merchant_id = add_merchant()
    invoice_id = add_invoice(merchant_id, expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    add_sighting(merchant_id, invoice_id, 125 * UNIT)
    page.wait_for_selector("text=Your payment was seen")
    assert "It waits for its first block." in page.inner_text("#lines")
    assert page.inner_text("#progress-text") == "Confirmations: 0 of 3"
    assert page.query_selector("#address, #qr, #copy-amount") is None

    base.execute("UPDATE sightings SET gone_at = app_now()")
    page.wait_for_selector("text=Waiting for your payment")
    pay(invoice_id, 125)
    page.wait_for_selector("text=Your payment was found")


def test_the_rest_of_the_amount_is_copied(page: Page, site: str, browser: Browser) -> None:
    del browser
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    page.focus("#copy-amount")
    pay(invoice_id, 5)
    page.wait_for_selector("text=5 USDT of 125 USDT arrived.")

    assert page.evaluate("document.activeElement.id") == "copy-amount", "whoever has the focus keeps it"
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "120"


def test_a_page_left_open_on_an_expired_payment_notices_a_late_one(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), status="expired", is_final=True)
    page.clock.install()
    page.goto(f"{site}/pay/{invoice_id}")
    assert "This payment has expired" in page.inner_text("#heading")
    page.wait_for_load_state("networkidle")

    pay(invoice_id, 125, seen_at="2099-01-01")
    page.clock.run_for(16_000)

    page.wait_for_selector("text=The payment came late")
    assert "125 USDT arrived after the time to pay was over." in page.inner_text("#lines")


def test_the_countdown_goes_by_the_clock_of_the_gateway(page: Page, site: str) -> None:
    """That of the device may be wrong by hours, and may be set while the page is open."""
    invoice_id = add_invoice(add_merchant(), expires_at=base.app_now() + timedelta(hours=1))
    page.clock.install(time=base.app_now() - timedelta(hours=9))
    page.goto(f"{site}/pay/{invoice_id}")

    page.wait_for_selector(r"#remaining:text-matches('^ ?· 5\\d:\\d\\d left$')")
    page.clock.set_system_time(base.app_now() + timedelta(days=2))
    page.clock.run_for(2_000)
    assert re.fullmatch(r" · 5\d:\d\d left", page.text_content("#remaining") or "")


def test_a_page_stops_asking_for_money_when_the_time_is_over(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    assert page.is_visible("#address")

    base.execute("UPDATE invoices SET expires_at = app_now() WHERE id = %s", (invoice_id,))

    page.wait_for_selector("text=The time to pay is over")
    assert page.query_selector("#address, #qr, #copy-amount") is None


@pytest.mark.parametrize("status", [429, 503])
def test_a_page_waits_for_retry_after(page: Page, site: str, status: int) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.clock.install()
    page.goto(f"{site}/pay/{invoice_id}")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    busy = {"status": status, "headers": {"Retry-After": "50"}, "body": "busy"}
    page.route(f"{site}/pay/*", lambda route: asked.append(route.request.url) or route.fulfill(**busy))
    page.clock.run_for(4_000)
    page.wait_for_timeout(300)
    assert len(asked) == 1

    page.clock.run_for(45_000)
    page.wait_for_timeout(300)
    assert len(asked) == 1
    page.clock.run_for(25_000)
    page.wait_for_timeout(300)
    assert len(asked) == 2
    # It does not pretend to know better.
    assert page.is_visible("#stale")
    assert "could not be refreshed" in page.inner_text("#stale")

    page.unroute(f"{site}/pay/*")
    page.clock.run_for(70_000)
    page.wait_for_selector("#stale", state="hidden")


def test_a_failing_server_is_asked_ever_more_seldom(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.clock.install()
    page.goto(f"{site}/pay/{invoice_id}")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.route(f"{site}/pay/*", lambda route: asked.append("") or route.fulfill(status=500, body=""))
    for _ in range(60):
        page.clock.run_for(2_000)
        page.wait_for_timeout(20)

    assert 3 <= len(asked) <= 7


def test_changes_are_announced_to_screen_readers(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    region = page.locator("[role=status]").first
    assert region.get_attribute("aria-live") == "polite"
    kept = region.element_handle()
    pay(invoice_id, 125)
    page.wait_for_selector("text=Your payment was found")

    # A live region that was replaced itself would be silent.
    assert kept is not None
    assert "Your payment was found" in (kept.text_content() or "")
    assert page.get_attribute("#progress", "aria-labelledby") == "progress-text"


def test_a_buyer_chooses_a_coin(page: Page, site: str, caller: FakeCaller) -> None:
    invoice_id = add_invoice(add_merchant(), status="select", expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")

    caller.error = PayMethodNotAccepted("Not this one.")
    page.click('[data-currency="USDT"][data-network="ethereum"]')
    page.wait_for_selector("text=This coin is not accepted here.")
    page.wait_for_function("document.activeElement.id === 'choose-USDT-ethereum'")

    def choose(_called: Any) -> Any:
        return {"payment_status": "check", "address": ADDRESS}

    caller.error, caller.result = None, choose
    base.execute(
        "UPDATE invoices SET status = 'check', pay_currency = 'USDT', network = 'ethereum', payer_units = %s,"
        " address = %s WHERE id = %s",
        (125 * UNIT, ADDRESS, invoice_id),
    )
    page.click('[data-currency="USDT"][data-network="ethereum"]')
    page.wait_for_selector("#qr")
    assert page.evaluate("document.activeElement.id") == "heading"

    assert page.inner_text("#address") == ADDRESS
    assert caller.last.payload == {"invoice_id": str(invoice_id), "currency": "USDT", "network": "ethereum"}
    page.goto(f"{site}/pay/{add_invoice(add_merchant(), status='select', expires_at='2100-01-01')}")
    assert page.get_attribute(".methods li", "data-coin") == "USDT", "the last choice is the first"


def test_a_paid_buyer_goes_on_to_the_shop(page: Page, site: str) -> None:
    target = f"{site}/pay/{uuid.uuid4()}"
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01", url_success=target)
    page.goto(f"{site}/pay/{invoice_id}")
    assert not page.is_visible("#success")

    base.execute("UPDATE invoices SET status = 'paid', is_final = true WHERE id = %s", (invoice_id,))

    page.wait_for_selector("#success")
    assert page.get_attribute("#success", "href") == target


def test_a_script_in_an_order_id_is_a_text(page: Page, site: str) -> None:
    script = "</p><script>document.title='owned'</script>"
    page.goto(f"{site}/pay/{add_invoice(add_merchant(), order_id=script)}")

    assert script in page.inner_text("header")
    assert page.title() == "Pay 125.50 USD"


HOSTILE = {
    "long": "x" * 4096,
    "turned": "\u202eegap siht no yap\u202c\u2066",
    "invisible": "\u200b\u200d\ufeff" * 50 + "a",
    "quotes": "\"'`</bdi></p><h1>Payment received</h1><button>Pay</button>",
    "controls": "a\u0007b\u0085c\u2028d",
}


def test_no_text_of_a_merchant_leaves_its_place(page: Page, site: str) -> None:
    shop = add_merchant()
    for name, text in HOSTILE.items():
        page.goto(f"{site}/pay/{add_invoice(shop, expires_at='2100-01-01', order_id=text)}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert page.text_content(".order bdi") == text, name
        assert page.locator("h1").all_inner_texts() == ["Waiting for your payment"], name
        # The direction of the text ends with it.
        assert page.evaluate("getComputedStyle(document.querySelector('.order bdi')).unicodeBidi") == "isolate"
        assert page.inner_text("#address") == ADDRESS


def test_all_that_is_needed_to_pay_is_in_view_on_a_small_phone(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"{site}/pay/{add_invoice(add_merchant(), expires_at='2100-01-01', order_id='order-2041')}")

    for place in ("#shop", "#amount", "#copy-amount", "#qr", "#address", "#copy-address"):
        box = page.locator(place).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 640, place
    for place in ("#copy-amount", "#copy-address"):
        box = page.locator(place).bounding_box()
        assert box is not None
        assert box["height"] >= 44, place
    sizes = "[...document.querySelectorAll('body *')].map((each) => parseFloat(getComputedStyle(each).fontSize))"
    assert page.evaluate(f"Math.max(...{sizes})") == page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('#amount')).fontSize)"
    )


def test_a_new_quote_is_announced_and_a_part_payment_is_no_new_quote(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    page.click("#wallet summary")
    base.execute(
        "UPDATE invoices SET payer_units = %s, rate_expires_at = '2099-12-01' WHERE id = %s", (130 * UNIT, invoice_id)
    )

    page.wait_for_selector("text=The exchange rate has changed")
    assert page.inner_text("#amount") == "130"
    assert page.is_visible("#wallet-link"), "what the reader opened stays open"
    assert page.is_visible("#rate-left")
    pay(invoice_id, 30)
    page.wait_for_selector("text=30 USDT of 130 USDT arrived.")
    assert not page.is_visible("#changed")
    assert page.inner_text("#amount") == "100"


def test_a_paid_buyer_may_stay(page: Page, site: str) -> None:
    target = f"{site}/pay/{uuid.uuid4()}"
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01", url_success=target)
    page.clock.install()
    page.goto(f"{site}/pay/{invoice_id}")
    page.wait_for_load_state("networkidle")
    base.execute("UPDATE invoices SET status = 'paid', is_final = true WHERE id = %s", (invoice_id,))
    page.clock.run_for(3_100)
    page.wait_for_selector("#leaving")
    announced = page.text_content("#announced")
    assert re.fullmatch(r"You are taken to the shop in [45] s[.]", announced or "")
    page.clock.run_for(1_100)
    assert page.inner_text("#leaving-s") == "4"
    # A reader of the screen says it once, not each second.
    assert page.text_content("#announced") == announced
    assert page.locator("[role=status] #leaving-s, [aria-live] #leaving-s").count() == 0

    page.click("#stay")
    page.clock.run_for(10_000)
    assert not page.is_visible("#leaving")
    assert page.url.endswith(str(invoice_id))


DARK, LIGHT = "rgb(17, 23, 29)", "rgb(243, 245, 247)"


@pytest.mark.parametrize(
    ("theme", "device", "ground"),
    [("", "dark", DARK), ("", "light", LIGHT), ("light", "dark", LIGHT), ("dark", "light", DARK)],
)
def test_the_merchant_or_else_the_device_chooses_the_theme(
    browser: Browser, site: str, theme: str, device: Any, ground: str
) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01", theme=theme)
    opened = browser.new_page(color_scheme=device)
    opened.goto(f"{site}/pay/{invoice_id}")
    shown = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    opened.close()
    assert shown == ground


def test_the_language_stays_while_the_page_follows_the_payment(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")
    page.click("text=Deutsch")
    page.wait_for_selector("text=Wir warten auf Ihre Zahlung")
    pay(invoice_id, 5)
    page.wait_for_selector("text=Ein Teil der Zahlung ist eingegangen")
    assert "noch " in page.inner_text("#remaining")

    page.click("text=العربية")
    page.wait_for_selector("text=وصل جزء من الدفعة")
    assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # The digits of moments are those of the amounts.
    assert re.search(r"[0-9]:[0-9]{2}", page.inner_text("#expiry"))
    assert page.inner_text("#amount") == "120"
    pay(invoice_id, 120)
    page.wait_for_selector("text=عثرنا على دفعتك")


def test_a_buyer_searches_among_many_methods(page: Page, site: str) -> None:
    page.goto(f"{site}/pay/{add_invoice(add_merchant(), status='select', expires_at='2100-01-01')}")
    assert page.locator(".methods li:visible").count() > 5
    page.fill("#search", "tether")
    assert page.locator(".methods li:visible").get_attribute("data-coin") == "USDT"
    page.fill("#search", "polygon pos")
    assert page.locator('.methods li:visible [data-network="polygon"]').count() > 1
    page.keyboard.press("Enter")
    assert page.is_visible("#search"), "no form was sent"


def test_the_script_does_not_fetch_the_page_again_at_once(page: Page, site: str) -> None:
    answers: list[int] = []
    page.on("response", lambda answer: answers.append(answer.status) if "/pay/" in answer.url else None)
    page.goto(f"{site}/pay/{add_invoice(add_merchant(), expires_at='2100-01-01')}")
    page.wait_for_load_state("networkidle")
    assert answers[:2] == [200, 304]
