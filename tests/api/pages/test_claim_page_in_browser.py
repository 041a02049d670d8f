"""The page of a cheque in a real browser: its holder names an address, sees what became of it, and nothing leaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from api.app import create_app
from models.db import base
from tests.api.conftest import FakeQueues, Keys, make_settings
from tests.api.live import Live, LocalCaller
from tests.api.pages.test_page_in_browser import QuietHandler, Server, browser
from tests.api.routes.payout_links.rows import ANN, linked, turn

__all__ = ["browser"]  # the fixture: a module has one browser


@pytest.fixture
def site(queues: FakeQueues, keys: Keys, live: Live) -> Iterator[str]:
    del live
    server = Server(("127.0.0.1", 0), QuietHandler)
    url = f"http://127.0.0.1:{server.server_port}"
    settings = make_settings(PAY_URL=url, RATE_LIMIT_PUBLIC_MINUTE="1000", RATE_LIMIT_CLAIM_MINUTE="1000")
    server.set_app(create_app(settings, caller=LocalCaller(), queues=queues, find_key=keys.find))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield url
    server.shutdown()
    thread.join()
    server.server_close()


def open_page(browser: Browser, **options: Any) -> tuple[Page, list[str]]:
    """Return a page on a small screen, and the list that its complaints will be in."""
    opened = browser.new_page(viewport={"width": 360, "height": 740}, **options)
    opened.set_default_timeout(15_000)
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    return opened, complaints


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A page that must not log a single error or violation, but for what the API refuses."""
    del site  # it serves until the page is closed
    opened, complaints = open_page(browser)
    yield opened
    opened.close()
    assert [text for text in complaints if not any(status in text for status in ("400 (", "409 (", "410 ("))] == []


def test_the_holder_names_an_address_and_sees_where_it_went(page: Page, site: str, live: Live) -> None:
    link = linked(live, title="Prize", note="Well done")
    page.goto(f"{site}/claim/{link['claim_token']}")
    assert "25 USDT" in page.inner_text("header")
    assert page.inner_text("#title") == "Prize"
    assert "left" in page.inner_text("#until")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    page.fill("#address", "0x1")
    page.click("#check")
    page.wait_for_selector("text=This is not a valid Ethereum address")
    assert page.get_attribute("#address", "aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "address"

    page.fill("#address", f" {ANN.lower()} ")
    page.click("#check")
    page.wait_for_selector("text=Is this address right?")
    assert page.evaluate("document.activeElement.id") == "heading"
    # Shown as the network writes it, in groups of four.
    assert page.text_content("#checked") == ANN
    assert page.inner_text("#checked span:first-child") == ANN[:4]
    page.click("#change")
    page.wait_for_selector("text=Where should it go?")
    assert page.input_value("#address") == ANN
    page.click("#check")
    page.wait_for_selector("#send")
    page.reload()
    assert not page.query_selector("#send"), "a step that was left begins again"
    page.fill("#address", ANN)
    page.click("#check")
    page.click("#send")
    page.wait_for_selector("text=It is on its way")

    assert page.inner_text("#sent-to") == ANN
    row = base.one("SELECT p.id::text, p.address FROM payouts p JOIN payout_links l ON l.payout_id = p.id")
    assert row == (page.inner_text("#payout-id"), ANN.lower())
    assert page.query_selector("form") is None
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    base.execute("UPDATE payouts SET status = 'sent', txid = %s, block_height = 7", ("0x" + "ab" * 32,))
    page.wait_for_selector("#txid")
    page.reload()
    assert page.inner_text("#txid") == "0x" + "ab" * 32
    base.execute("UPDATE payouts SET status = 'confirmed'")
    page.wait_for_selector("text=It has been sent")


def test_the_page_follows_the_link(page: Page, site: str, live: Live) -> None:
    link = linked(live)
    page.goto(f"{site}/claim/{link['claim_token']}")
    turn(link, "cancelled")

    page.wait_for_selector("text=The sender has taken this back")

    assert page.query_selector("form") is None


def test_a_late_claim_shows_that_it_is_late(page: Page, site: str, live: Live) -> None:
    link = linked(live)
    page.goto(f"{site}/claim/{link['claim_token']}")
    # The first poll would show it at once.
    page.wait_for_load_state("networkidle")
    base.execute("UPDATE payout_links SET expires_at = app_now()")

    page.fill("#address", ANN)
    page.click("#check")

    page.wait_for_selector("text=This link has expired")


def test_a_script_of_the_merchants_is_a_text(page: Page, site: str, live: Live) -> None:
    script = "</p><script>document.title='owned'</script>"
    link = linked(live, title=script, note=f"{script}\nsecond line {'x' * 500}")
    page.goto(f"{site}/claim/{link['claim_token']}")

    assert page.inner_text("#title") == script
    assert script in page.inner_text("#note")
    assert page.title() == "Receive 25 USDT"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_page_loads_only_its_own_site_and_sends_no_referrer(browser: Browser, site: str, live: Live) -> None:
    link = linked(live)
    opened, complaints = open_page(browser)
    asked: list[Any] = []
    opened.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - playwright marks its handlers
    opened.goto(f"{site}/claim/{link['claim_token']}")
    opened.wait_for_load_state("networkidle")

    assert {request.url.startswith(site) for request in asked} == {True}
    assert not [request.url for request in asked if "referer" in request.all_headers()]
    assert link["claim_token"] not in opened.content()
    opened.close()
    assert complaints == []


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(243, 245, 247)"), ("dark", "rgb(17, 23, 29)")])
def test_the_page_is_light_or_dark_as_its_reader_likes(
    browser: Browser, site: str, live: Live, scheme: Any, ground: str
) -> None:
    link = linked(live, title="Prize", note="Well done")
    opened, complaints = open_page(browser, color_scheme=scheme)
    opened.goto(f"{site}/claim/{link['claim_token']}")

    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    opened.close()
    assert complaints == []
