"""What can leave a network is what its hot wallet holds, and nobody's queued payout has claimed."""

from __future__ import annotations

from typing import Final

import pytest

from core.ids import uuid7
from core.rates.pricing import Market
from models.db.base import execute, transaction
from models.treasury import liquidity, topups
from models.treasury.rows import Topup
from tests.models.builders import CATALOGUE, USDT
from tests.models.payouts.builders import RECIPIENT
from tests.models.payouts.held import funded, payout
from tests.models.treasury.builders import ETHER, HOT, hold, pin_hot, spend

pytestmark = pytest.mark.usefixtures("database")

METHOD: Final = ("USDT", "ethereum")


def priced(sweep_fee_units: int | None = None) -> Market:
    """Return quotes that know at most what a sweep costs."""
    return Market(rates={}, network_fees={}, sweep_fees={} if sweep_fee_units is None else {METHOD: sweep_fee_units})


def room(market: Market | None = None, *, percent: int = 5) -> int:
    found = liquidity.room(CATALOGUE, market or priced(), {"ethereum"}, fee_max_percent=percent)
    return found.get(METHOD, 0)


def test_queued_payouts_have_claimed_what_they_take_until_they_are_in_a_block() -> None:
    assert room() == 0, "what was never compared nor moved is not there"
    hold("USDT", "ethereum", 50 * USDT)
    order = payout(funded())
    for status, height, expected in (
        ("pending", None, 50), ("awaiting_cosign", None, 50), ("approved", None, 40), ("broadcasting", None, 40),
        ("sent", None, 40), ("sent", 7, 50), ("confirmed", 7, 50), ("cancelled", None, 50),
    ):  # fmt: skip
        execute("UPDATE payouts SET status = %s, block_height = %s WHERE id = %s", (status, height, order.id))
        assert room() == expected * USDT
    execute("UPDATE payouts SET status = 'approved' WHERE id = %s", (order.id,))
    hold("USDT", "ethereum", 5 * USDT)
    assert room() == 0, "and never less than nothing"


def test_what_came_and_left_after_the_last_comparison_counts_once() -> None:
    pin_hot()
    hold("USDT", "ethereum", 50 * USDT, height=10)
    for height, units in ((10, 1_000_000), (11, 2_000_000), (12, -500_000)):
        execute(
            "INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)"
            " VALUES (%s, 'ethereum', %s, 'USDT', 6, %s, %s)",
            (spend(recipient=RECIPIENT, token_units=1), HOT, units, height),
        )
    assert room() == 51_500_000 * 10**12
    with transaction():
        for ordinal, height in (("1", 10), ("2", 11)):
            topups.record(
                Topup(
                    id=uuid7(), network="ethereum", txid="0x1", ordinal=ordinal, currency="USDT", units=ETHER,
                    sender="", origin="transfer", block_height=height, block_hash="0x2",
                )
            )  # fmt: skip
    assert room() == 52_500_000 * 10**12
    execute("UPDATE treasury_topups SET doubted_for = 'amount'")
    assert room() == 51_500_000 * 10**12, "nor what one provider alone has seen"


def test_deposits_count_that_a_waiting_payout_makes_worth_a_sweep() -> None:
    funded(100 * USDT)
    assert room() == 0, "without a quote nothing is swept"
    assert room(priced(5 * USDT)) == 100 * USDT
    assert room(priced(5 * USDT + 1)) == 0, "above a twentieth it is too dear"
    assert room(priced(5 * USDT), percent=0) == 0


def test_where_money_lies_in_coins_the_free_ones_count() -> None:
    found = liquidity.room(CATALOGUE, priced(), {"bitcoin"}, fee_max_percent=5)
    assert found == {("BTC", "bitcoin"): 0}
