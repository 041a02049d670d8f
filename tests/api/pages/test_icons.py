"""Every coin and network of the catalogue has its own icon, with a sign that can be read on its disc."""

from __future__ import annotations

import re

from api.pages import icons
from core.catalogue.catalogue import load_catalogue

CONTRAST_MIN = 4.5


def test_each_coin_and_network_has_an_icon_of_its_own() -> None:
    catalogue = load_catalogue("production")
    assert set(icons.COINS) == set(catalogue.assets)
    assert set(icons.NETWORKS) == set(catalogue.networks)
    assert len(set(icons.COINS.values())) == len(icons.COINS)
    assert len(set(icons.NETWORKS.values())) == len(icons.NETWORKS)


def test_a_sign_is_readable_on_its_disc() -> None:
    for icon in {*icons.COINS.values(), *icons.NETWORKS.values()}:
        assert re.fullmatch(r"[MmLlHhVvAaCcSsZz0-9 .,-]+", icon.path)
        assert contrast_with_white(icon.colour) >= CONTRAST_MIN, icon


def contrast_with_white(colour: str) -> float:
    """Return the contrast as WCAG 2.2 computes it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
