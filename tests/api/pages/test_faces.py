"""A shop's logo and colour are on its pages, readable on both grounds, and can do nothing but be seen."""

from __future__ import annotations

import hashlib
import re
from typing import Final
from uuid import uuid4

import pytest

from api.pages.pages import HERE
from core.merchants.accents import ACCENTS
from models.merchants import logos
from models.merchants import rows as merchants
from models.merchants.rows import IdentityError, UnknownMerchantError
from tests.api.conftest import Client
from tests.api.live import Live
from tests.api.pages.test_page import OPEN
from tests.api.routes.payment_links.rows import opened
from tests.api.rows import add_invoice, add_merchant
from tests.core.merchants.test_logos import PLAIN, header, pixels, png

pytestmark = pytest.mark.usefixtures("database")

CONTRAST_MIN: Final = 4.5
CSS: Final = (HERE / "static" / "pages.css").read_text(encoding="utf-8")
OTHER: Final = png(header(2, 4), pixels(4 * 9))


def test_a_logo_is_shown_and_served_as_a_picture_alone(client: Client) -> None:
    shop = add_merchant()
    path = f"/pay/{add_invoice(shop, **OPEN)}"
    assert "/logo/" not in client.simulate_get(path).text
    logos.set_logo(shop, PLAIN)

    digest = hashlib.sha256(PLAIN).hexdigest()
    assert re.findall(r'<img class="logo" src="([^"]+)" alt="">', client.simulate_get(path).text) == [f"/logo/{digest}"]
    answer = client.simulate_get(f"/logo/{digest}")
    assert (answer.status_code, answer.content) == (200, PLAIN)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    head = client.simulate_head(f"/logo/{digest}")
    assert (head.status_code, head.content) == (200, b"")


def test_another_logo_has_another_address_and_none_has_none(client: Client) -> None:
    shop, twin = add_merchant(), add_merchant()
    for merchant_id, content in ((shop, PLAIN), (twin, PLAIN), (shop, OTHER)):
        logos.set_logo(merchant_id, content)
    before, after = (hashlib.sha256(content).hexdigest() for content in (PLAIN, OTHER))
    assert merchants.face_of(shop).logo == after

    logos.set_logo(twin, None)
    assert merchants.face_of(twin).logo == ""
    assert client.simulate_get(f"/logo/{before}").status_code == 404
    assert client.simulate_get(f"/logo/{after}").status_code == 200
    with pytest.raises(UnknownMerchantError):
        logos.set_logo(uuid4(), PLAIN)


@pytest.mark.parametrize("name", ["x", "A" * 64, "0" * 63, "0" * 64, "0" * 4096, "%00", "..%2Fpay"])
def test_no_other_address_is_a_logo(client: Client, name: str) -> None:
    assert client.simulate_get(f"/logo/{name}").status_code == 404


def test_pages_have_the_shops_colour(client: Client, live: Live) -> None:
    shop = add_merchant()
    path = f"/pay/{add_invoice(shop, **OPEN)}"
    assert "data-accent" not in client.simulate_get(path).text
    merchants.set_face(shop, accent="violet")
    assert 'data-accent="violet">' in client.simulate_get(path).text
    for colour in ("mauve", "#ff0000", "VIOLET", '"><script>'):
        with pytest.raises(IdentityError, match="one of teal"):
            merchants.set_face(shop, accent=colour)
    merchants.set_face(shop, accent="")
    assert "data-accent" not in client.simulate_get(path).text

    merchants.set_face(live.shop, accent="rose")
    logos.set_logo(live.shop, PLAIN)
    link = live.client.simulate_get(f"/link/{opened(live)}").text
    assert 'data-accent="rose">' in link
    assert 'class="logo"' in link


def shades() -> dict[str, tuple[str, str]]:
    """Return the shades of each colour, for light and for dark; the gateway's own is the first."""
    named = re.findall(r'\[data-accent="(\w+)"\] \{ --day: (#\w{6}); --night: (#\w{6}); \}', CSS)
    own = re.findall(r"--day: (#\w{6}); --night: (#\w{6}); --accent", CSS)
    return {"teal": own[0]} | {name: (day, night) for name, day, night in named}


def variables(theme: str) -> dict[str, str]:
    """Return the colours of a theme."""
    block = CSS.split(f"{theme} {{", 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([\w-]+): (#\w{6});", block))


def test_the_twelve_colours_have_their_shades() -> None:
    assert tuple(shades()) == ACCENTS
    assert len(ACCENTS) == 12
    assert len({shade for pair in shades().values() for shade in pair}) == 24


@pytest.mark.parametrize("accent", ACCENTS)
def test_a_colour_is_readable_on_both_grounds_and_under_texts(accent: str) -> None:
    day, night = shades()[accent]
    light, dark = variables(":root"), variables(':root[data-theme="dark"]')
    for shade, theme in ((day, light), (night, dark)):
        for ground in ("card", "ground", "note", "on-accent"):
            assert contrast(shade, theme[ground]) >= CONTRAST_MIN, (shade, ground)


@pytest.mark.parametrize("theme", [":root", ':root[data-theme="dark"]'])
def test_all_texts_are_readable_on_their_grounds(theme: str) -> None:
    colours = variables(theme)
    pairs = {
        "card": ("ink", "muted", "error"), "ground": ("ink", "muted"), "note": ("ink", "muted"),
        "good-ground": ("ink", "good"), "attention-ground": ("ink", "attention"),
    }  # fmt: skip
    for ground, texts in pairs.items():
        for text in texts:
            assert contrast(colours[text], colours[ground]) >= CONTRAST_MIN, (text, ground)


def contrast(one: str, other: str) -> float:
    """Return the contrast as WCAG 2.2 computes it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
