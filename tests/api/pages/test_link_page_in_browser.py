"""The page of a payment link in a real browser: a buyer says how much and in what, and is led to the payment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from api.pages.link_page import plain_amount
from models.db import base
from tests.api.live import Live
from tests.api.pages.test_claim_page_in_browser import open_page, site
from tests.api.pages.test_page_in_browser import browser
from tests.api.routes.payment_links.rows import opened, switch

__all__ = ["browser", "site"]  # the fixtures: a module has one browser


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A page that must not log a single error or violation, but for what the API refuses."""
    del site  # it serves until the page is closed
    opened_page, complaints = open_page(browser)
    yield opened_page
    opened_page.close()
    assert [text for text in complaints if not any(status in text for status in ("400 (", "404 ("))] == []


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_a_buyer_chooses_amount_and_coin_and_sees_the_amount_to_send(page: Page, site: str, live: Live) -> None:
    script = "</h1><script>document.title='owned'</script>"
    link_id = opened(
        live, amount_mode="range", amount_min="5", amount_max="500", title=script, description=f"{script}\n{'x' * 500}"
    )
    page.goto(f"{site}/link/{link_id}")
    assert page.inner_text("#title") == page.title() == script
    assert page.inner_text("#bounds") == "From 5.00 to 500.00 USD"
    assert fits(page)

    page.fill("#amount", "1")
    page.click("#submit")
    page.wait_for_selector('#amount-problem:text("too small")')
    assert page.evaluate("document.activeElement.id") == "amount"
    assert page.get_attribute("#amount", "aria-invalid") == "true"

    page.fill("#amount", " 12,5 ")
    page.check("input[data-currency=USDT][data-network=bsc]")
    page.fill("#email", "b@mail.example")
    page.click("#submit")
    page.wait_for_url(f"{site}/pay/*")

    assert page.inner_text("#price") == "12.50 USD"
    assert "USDT" in page.inner_text("#view-pay")
    assert base.rows("SELECT network, payer_email FROM invoices") == [("bsc", "b@mail.example")]
    page.go_back()
    assert page.is_enabled("#submit")


AMOUNTS = {
    "12,50": "12.50", " 12,5 ": "12.5", "12.50": "12.50", "12": "12", "0,00015": "0.00015", "0,015": "0.015",
    "1 234,50": "1234.50", "1.234,50": "1234.50", "1,234.50": "1234.50", "1'234.5": "1234.5",
    "1.234.567,8": "1234567.8", "1,234,567": "1234567", "1.234.567": "1234567",
    # In two ways, or in none: the API refuses them.
    "12,345": "12,345", "1,2,3": "1,2,3", "1.23.4": "1.23.4", "12.34,5.6": "12.34,5.6", "12.34,5": "12.34,5",
    "ten": "ten", "": "", "\u0661\u0662": "\u0661\u0662", "1,000": "1,000", "1.000": "1.000", "1\u00a0234,5": "1234.5",
    "1\u202f234,5": "1234.5", "-5": "-5", "1e3": "1e3", "0x10": "0x10",
}  # fmt: skip


def test_an_amount_is_taken_as_people_write_it() -> None:
    assert [plain_amount(text) for text in AMOUNTS] == list(AMOUNTS.values())


def test_the_button_is_in_view_on_a_small_phone(page: Page, site: str, live: Live) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"{site}/link/{opened(live, amount_mode='open', description='x ' * 600)}")
    box = page.locator("#submit").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 640


def test_a_pinned_link_needs_one_click_and_a_switched_off_one_shows_it(page: Page, site: str, live: Live) -> None:
    link_id = opened(live, pinned_currency="USDT", pinned_network="ethereum", title="Coffee")
    page.goto(f"{site}/link/{link_id}")
    assert "10.00 USD" in page.inner_text("header")
    assert "Tether" in page.inner_text("#pinned")
    assert not page.query_selector("#amount")
    switch(live, link_id, active=False)

    page.click("#submit")
    page.wait_for_selector("text=There is no such payment link")

    switch(live, link_id, active=True)
    page.reload()
    page.click("#submit")
    page.wait_for_url(f"{site}/pay/*")
    assert fits(page)
