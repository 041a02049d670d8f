"""Every coin and network of the catalogue has its own icon, with a sign that can be read on its disc."""

from __future__ import annotations

import re

from api.pages import icons
from core.catalogue.catalogue import load_catalogue
from tests.api.pages.test_faces import contrast

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
        assert contrast(icon.colour, "#ffffff") >= CONTRAST_MIN, icon
