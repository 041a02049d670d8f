"""Every stage is fit for all readers: axe-core sees no fault, large texts are whole, codes are read off the screen."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from core.texts.qr import qr_data_uri
from devstack.servers.npm import NoNpmError
from models.merchants import logos
from models.merchants import rows as merchants
from tests.api.live import Live
from tests.api.pages.test_claim_page_in_browser import site
from tests.api.pages.test_page import OPEN, STAGES, staged
from tests.api.pages.test_page_in_browser import browser
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import ANN, linked, turn
from tests.api.rows import ADDRESS, add_invoice, add_merchant
from tests.conftest import ROOT
from tests.core.merchants.test_logos import PLAIN
from tests.peers.libraries.fetched import AXE, JSQR, Bundle, fetched

__all__ = ["browser", "site"]  # the fixtures: a module has one browser

# The rules of WCAG 2.2 A and AA, and those of good practice.
RUN: Final = """async () => {
  const answer = await axe.run(document, { resultTypes: ["violations", "incomplete"] });
  const shown = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")} ${node.failureSummary || ""}`);
  return [...answer.violations, ...answer.incomplete].flatMap(shown);
}"""
# Elements whose text is wider or higher than its box, and the page if it is wider than the window.
CUT: Final = """() => {
  const cut = [...document.querySelectorAll("body *")].filter((each) => {
    const isLeftOut = each.closest(".away, svg, progress, blockquote, input, details:not([open]), [hidden]");
    if (isLeftOut || !each.textContent.trim()) return false;
    const style = getComputedStyle(each);
    return style.overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1;
  });
  const wide = [...document.querySelectorAll("body *")].filter((each) =>
    !each.closest(".away, svg, details:not([open]) > :not(summary), [hidden]")
    && (each.getBoundingClientRect().right > innerWidth + 1 || each.getBoundingClientRect().left < -1));
  return [...cut, ...wide].map((each) => `${each.tagName} ${each.id} ${each.textContent.slice(0, 40)}`);
}"""
DECODE: Final = """async (shot) => {
  const image = new Image();
  image.src = shot;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height);
  const code = jsQR(pixels.data, pixels.width, pixels.height);
  return code && code.data;
}"""


def code_of(bundle: Bundle) -> str:
    """Return another project's code; a developer without npm skips, CI must have it."""
    try:
        return fetched(os.environ, ROOT / ".sluice" / "cache", bundle).read_text(encoding="utf-8")
    except NoNpmError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def axe() -> str:
    return code_of(AXE)


@pytest.fixture
def context(browser: Browser, site: str, scheme: Any) -> Iterator[BrowserContext]:
    del site  # it serves until the pages are closed
    made = browser.new_context(viewport={"width": 360, "height": 640}, color_scheme=scheme)
    yield made
    made.close()


def faults(tab: Page, axe: str) -> list[str]:
    """Return what axe-core complains of or cannot decide, and texts that do not fit a narrow page at twice the size."""
    # So high that nothing lies above anything, which axe-core could not judge.
    tab.set_viewport_size({"width": 360, "height": 3000})
    tab.evaluate(axe)
    complaints = tab.evaluate(RUN)
    tab.set_viewport_size({"width": 320, "height": 640})
    tab.evaluate("document.documentElement.style.fontSize = '200%'")
    complaints += tab.evaluate(CUT)
    tab.evaluate("document.documentElement.style.fontSize = ''")
    tab.set_viewport_size({"width": 360, "height": 640})
    return list(complaints)


def paths(live: Live) -> dict[str, str]:
    """Return a page in each of its stages, by name; the first of a coloured shop with a logo."""
    claim = linked(live, title="Prize", note="Well done")
    gone = linked(live)
    turn(gone, "cancelled")
    shop = add_merchant()
    merchants.set_face(shop, contact="help@shop.example", accent="olive")
    logos.set_logo(shop, PLAIN)
    made = {"coloured": f"/pay/{add_invoice(shop, **OPEN)}"}
    made |= {f"{row[0]} {number}": staged(shop, row[1], *row[2]) for number, row in enumerate(STAGES)}
    made["select"] = f"/pay/{live.agnostic(order_id='order-1', url_return='https://shop.example')}"
    made["link"] = f"/link/{opened(live, amount_mode='range', amount_min='5', amount_max='500', title='Coffee')}"
    made["fixed link"] = f"/link/{opened(live, pinned_currency='USDT', pinned_network='ethereum')}"
    made |= {"claim": f"/claim/{claim['claim_token']}", "gone": f"/claim/{gone['claim_token']}"}
    return made | {"home": "/", "wrong": "/pay/x"}


@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "ar")])
def test_every_stage_holds_for_all_readers(
    context: BrowserContext, site: str, live: Live, axe: str, language: str
) -> None:
    tab = context.new_page()
    complaints: dict[str, Any] = {}
    made = paths(live)
    for name, path in made.items():
        answer = tab.goto(f"{site}{path}?lang={language}")
        assert answer is not None
        assert answer.ok or name == "wrong"
        complaints[name] = faults(tab, axe)
    tab.goto(f"{site}{made['claim']}?lang={language}")
    tab.fill("#address", "0x1")
    tab.click("#check")
    tab.wait_for_selector("[aria-invalid]")
    complaints["wrong address"] = faults(tab, axe)
    tab.fill("#address", ANN)
    tab.click("#check")
    tab.wait_for_selector("#send")
    complaints["second step"] = faults(tab, axe)

    assert {name: each for name, each in complaints.items() if each} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_foreign_decoder_reads_the_address_and_the_link_from_the_screen(context: BrowserContext, site: str) -> None:
    tab = context.new_page()
    coin = {"pay_currency": "ETH", "payer_units": 5 * 10**16}
    tab.goto(f"{site}/pay/{add_invoice(add_merchant(), **OPEN, **coin)}")
    tab.click("#wallet summary")
    link = tab.get_attribute("#wallet-link", "href")
    tab.evaluate(f"{code_of(JSQR)}; undefined")

    assert decoded(tab, "#qr") == ADDRESS
    assert decoded(tab, "#amount-qr") == link
    assert tab.get_attribute("#qr", "src") == qr_data_uri(ADDRESS)


def decoded(tab: Page, place: str) -> str | None:
    """Return the text of a code as it is seen on the screen."""
    shot = base64.b64encode(tab.locator(place).screenshot()).decode()
    text: str | None = tab.evaluate(DECODE, f"data:image/png;base64,{shot}")
    return text
