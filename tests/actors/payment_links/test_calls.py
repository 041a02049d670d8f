"""What a link may ask for, as its merchant makes it."""

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


def test_a_price_that_no_buyer_could_pay_is_refused_at_once(shop: UUID) -> None:
    assert link(shop, amount_fixed=HIGHEST)
    with pytest.raises(PaylinkBadAmount, match="limit of this gateway"):
        link(shop, amount_fixed=ABOVE)


def test_a_least_sum_that_no_buyer_could_pay_is_refused_and_a_most_is_not(shop: UUID) -> None:
    assert link(shop, amount_min=HIGHEST, **RANGE)
    assert link(shop, amount_mode="open", amount_min=HIGHEST)
    with pytest.raises(PaylinkBadMin, match="limit of this gateway"):
        link(shop, amount_min=ABOVE, **RANGE)


def test_without_a_rate_the_limit_is_left_to_the_checkout(shop: UUID) -> None:
    execute("DELETE FROM rates")

    assert link(shop, amount_fixed=ABOVE)
