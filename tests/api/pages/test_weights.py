"""A page and all that it loads is light, and comes in few requests. The figures are printed after the tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from tests.api.live import Live, later
from tests.api.pages.test_languages import CODES
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import linked

# Compressed, without the logo.
BYTES_MAX: Final = 30_000
REQUESTS_MAX: Final = 6


def pages(live: Live) -> dict[str, str]:
    """Return a page of each kind, in the stages that hold most."""
    claim = f"/claim/{linked(live, title='Prize', note='Well done')['claim_token']}"
    coin = {"pay_currency": "ETH", "payer_units": 5 * 10**16}
    return {
        "claim": claim,
        "link": f"/link/{opened(live, amount_mode='range', amount_min='5', amount_max='500', title='Coffee')}",
        "select": f"/pay/{live.agnostic()}",
        "waiting": f"/pay/{live.invoice(**later(), **coin)}",
        "home": "/",
    }


@pytest.mark.parametrize("name", ["claim", "link", "select", "waiting", "home"])
def test_a_page_is_light(live: Live, name: str, record_property: Callable[[str, object], None]) -> None:
    path = pages(live)[name]
    sizes = {code: weight(live, path, code) for code in CODES}
    for code, (size, requests) in sizes.items():
        assert size <= BYTES_MAX, code
        assert requests <= REQUESTS_MAX, code
    size, requests = max(sizes.values())
    record_property(f"page weight, {name}", f"{size:,} bytes in {requests} requests")


def weight(live: Live, path: str, code: str) -> tuple[int, int]:
    """Return the bytes of a page with its files, as they are sent, and the number of requests."""
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
    page = live.client.simulate_get(path, query_string=f"lang={code}", headers=headers)
    assert page.status_code == 200
    text = live.client.simulate_get(path, query_string=f"lang={code}", headers={"Accept": "text/html"}).text
    bodies = [page.content]
    for link in set(re.findall(r'(?:href|src)="(/[a-z]+/[^"]+)"', text)):
        target, _, query = link.partition("?")
        answer = live.client.simulate_get(target, query_string=query, headers=headers)
        assert answer.status_code == 200
        bodies.append(answer.content)
    return sum(map(len, bodies)), len(bodies)
