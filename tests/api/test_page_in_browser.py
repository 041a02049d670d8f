"""The hosted page in a real browser: it keeps itself current, lets the buyer choose, and breaks no rule of its own."""

from __future__ import annotations

import os
import shutil
import socketserver
import threading
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest

from api.app import create_app
from core.errors import PayMethodNotAccepted
from models import base
from tests.api.conftest import FakeCaller, FakeQueues, Keys, make_settings
from tests.api.rows import ADDRESS, UNIT, add_invoice, add_merchant

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
            make_settings(PAY_URL=url), caller=caller, queues=queues, find_key=keys.find, find_begun=lambda codes: codes
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
    assert [text for text in complaints if "400 (Bad Request)" not in text] == []


def test_the_page_follows_the_payment(page: Page, site: str) -> None:
    invoice_id = add_invoice(add_merchant(), expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")

    assert page.inner_text("#address") == ADDRESS
    assert page.is_visible("#qr")
    assert "left" in page.inner_text("#remaining")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    base.execute("UPDATE invoices SET detected_units = %s WHERE id = %s", (5 * UNIT, invoice_id))
    page.wait_for_selector("text=Received 5 USDT")

    base.execute(
        "UPDATE invoices SET status = 'paid', is_final = true, confirmed_units = %s WHERE id = %s",
        (125 * UNIT, invoice_id),
    )
    page.wait_for_selector("text=Payment received")
    assert "125 USDT arrived" in page.inner_text("#outcome")
    assert not page.is_visible("#view-pay")


def test_a_buyer_chooses_a_coin(page: Page, site: str, caller: FakeCaller) -> None:
    invoice_id = add_invoice(add_merchant(), status="select", expires_at="2100-01-01")
    page.goto(f"{site}/pay/{invoice_id}")

    caller.error = PayMethodNotAccepted("Not this one.")
    page.click('[data-currency="USDT"][data-network="ethereum"]')
    page.wait_for_selector("text=Not this one.")

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

    assert page.inner_text("#address") == ADDRESS
    assert caller.last.payload == {"invoice_id": str(invoice_id), "currency": "USDT", "network": "ethereum"}


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
