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
SHIFT: Final = """() => new Promise((resolve) => {
  let shift = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { shift += entry.value; }))
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => resolve(shift), 300);
})"""
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
    # Of the ways into a stage, the last.
    made |= {name: staged(shop, columns, *deposits) for name, columns, deposits, *_ in STAGES}
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


def test_pages_work_without_scripts(browser: Browser, site: str, live: Live) -> None:
    claim = f"/claim/{linked(live)['claim_token']}"
    link = f"/link/{opened(live, amount_mode='range', amount_min='5', amount_max='500')}"
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 640}, locale="de-AT")
    tab = context.new_page()
    tab.goto(f"{site}{link}")
    tab.fill("#amount", "1")
    tab.click("#submit")
    assert tab.inner_text("#amount-problem") == "Der Betrag ist zu klein."
    tab.fill("#amount", "12,5")
    tab.check("input[data-currency=USDT][data-network=bsc]")
    tab.click("#submit")
    tab.wait_for_url(f"{site}/pay/*")
    assert tab.is_visible("#address")
    assert not tab.is_visible("#copy-address"), "copying needs a script"
    assert not tab.is_visible("#remaining")

    tab.goto(f"{site}/pay/{live.agnostic()}?lang=ru")
    tab.click("#choose-USDT-bsc")
    tab.wait_for_selector("text=Ждём ваш платёж")
    assert tab.is_visible("#qr")

    tab.goto(f"{site}{claim}?lang=es")
    tab.fill("#address", ANN)
    tab.click("#check")
    tab.click("#send")
    tab.wait_for_selector("text=El dinero está en camino")
    assert tab.inner_text("#sent-to") == ANN
    context.close()


def test_a_cheque_is_claimed_and_a_coin_chosen_by_keys_alone(browser: Browser, site: str, live: Live) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 640})
    tab = context.new_page()
    tab.goto(f"{site}/claim/{linked(live)['claim_token']}")
    go_to(tab, "address")
    tab.keyboard.type(ANN)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#send")
    tab.wait_for_function("document.activeElement.id === 'heading'")
    go_to(tab, "send")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#sent-to")

    tab.goto(f"{site}/pay/{live.agnostic()}")
    go_to(tab, "choose-USDT-bsc")
    tab.keyboard.press("Space")
    tab.wait_for_selector("#qr")
    tab.wait_for_function("document.activeElement.id === 'heading'")
    go_to(tab, "copy-amount")
    context.close()


def go_to(tab: Page, name: str) -> None:
    """Press Tab until an element has the focus, which has to be seen there."""
    for _ in range(30):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == name:
            assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"{name} is not reached")


def test_nothing_moves_while_a_page_loads(browser: Browser, site: str) -> None:
    """The shift of its layout, as browsers measure it: good is under 0.1, ours under 0.01."""
    tab = browser.new_page(viewport={"width": 360, "height": 640})
    tab.goto(f"{site}/pay/{add_invoice(add_merchant(), **OPEN)}")
    tab.wait_for_load_state("networkidle")
    shift = tab.evaluate(SHIFT)
    tab.close()
    assert shift < 0.01


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
