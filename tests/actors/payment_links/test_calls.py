"""Limits of a link's price when a merchant creates it."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.errors import PaylinkBadAmount, PaylinkBadMin
from models.db.base import execute
from tests.actors.payment_links.world import fill, link

pytestmark = pytest.mark.usefixtures("sound")
HIGHEST = "10000000"
ABOVE = "10000000.01"
RANGE = {"amount_mode": "range", "amount_max": "20000000"}


@pytest.fixture(autouse=True)
def _gateway(database: str) -> None:
    fill(database)


def test_a_price_that_no_method_can_carry_is_refused(shop: UUID) -> None:
    assert link(shop, amount_fixed=HIGHEST)
    with pytest.raises(PaylinkBadAmount, match="limit of this gateway"):
        link(shop, amount_fixed=ABOVE)


def test_an_impossible_minimum_is_refused_and_an_impossible_maximum_is_not(shop: UUID) -> None:
    assert link(shop, amount_min=HIGHEST, **RANGE)
    assert link(shop, amount_mode="open", amount_min=HIGHEST)
    with pytest.raises(PaylinkBadMin, match="limit of this gateway"):
        link(shop, amount_min=ABOVE, **RANGE)


def test_without_a_rate_the_checkout_checks_the_limit(shop: UUID) -> None:
    execute("DELETE FROM rates")

    assert link(shop, amount_fixed=ABOVE)
