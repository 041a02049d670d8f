"""A network can pay out its hot wallet's balance less the sums of queued payouts."""

from __future__ import annotations

from typing import Any, Final

import pytest

from core.ids import uuid7
from core.rates.pricing import Market
from models.db.base import execute, rows, transaction
from models.spends import coins
from models.spends.coins import CoinRow
from models.treasury import liquidity, topups
from models.treasury.rows import Topup
from tests.models.builders import CATALOGUE, USDT, begin_scan
from tests.models.payout_links import builders
from tests.models.payouts.builders import RECIPIENT
from tests.models.payouts.held import funded, payout
from tests.models.treasury.builders import COLD, ETHER, HOT, hold, pin_hot, spend

pytestmark = pytest.mark.usefixtures("database")

METHOD: Final = ("USDT", "ethereum")
SATOSHI: Final = 10**6


def priced(sweep_fee_units: int | None = None) -> Market:
    """Return quotes that know at most the cost of a sweep."""
    return Market(rates={}, network_fees={}, sweep_fees={} if sweep_fee_units is None else {METHOD: sweep_fee_units})


def room(market: Market | None = None, *, percent: int = 5) -> int:
    rooms = liquidity.room(CATALOGUE, market or priced(), {"ethereum"}, fee_max_percent=percent)
    return rooms.get(METHOD, 0)


def test_queued_payouts_claim_their_sums_until_they_are_in_a_block() -> None:
    assert room() == 0, "a coin never compared or moved counts as zero"
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
    assert room() == 0, "never below zero"


def test_movements_after_the_last_comparison_count_once() -> None:
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
                    sender="", address=HOT, origin="transfer", block_height=height, block_hash="0x2",
                )
            )  # fmt: skip
    assert room() == 52_500_000 * 10**12
    execute("UPDATE treasury_topups SET doubted_for = 'amount'")
    assert room() == 51_500_000 * 10**12, "a top-up of one provider does not count"


def test_deposits_worth_a_sweep_count() -> None:
    funded(100 * USDT)
    assert room() == 0, "without a quote no sweep is made"
    assert room(priced(5 * USDT)) == 100 * USDT
    assert room(priced(5 * USDT + 1)) == 0, "above a twentieth a sweep is too expensive"
    assert room(priced(5 * USDT), percent=0) == 0


def test_a_sweep_in_no_block_counts_with_its_deposits() -> None:
    pin_hot()
    funded(100 * USDT)
    ((address,),) = rows("SELECT address FROM deposits")
    taken = spend(purpose="sweep", sender=address, recipient=HOT, currency="USDT", token_units=100 * USDT)
    execute("UPDATE deposits SET sweep_id = %s", (taken,))
    for columns, expected in (
        ("state = 'signed'", 100), ("state = 'sent'", 100), ("state = 'confirmed'", 100), ("state = 'failed'", 0),
        ("state = 'mined', mined_txid = '0x1', mined_height = 1, mined_hash = '0x2', is_success = false", 0),
        ("mined_txid = NULL, mined_height = NULL, mined_hash = NULL, is_success = NULL, state = 'sent'", 100),
    ):  # fmt: skip
        execute(f"UPDATE spends SET {columns}")
        execute("DELETE FROM spend_movements")
        assert room() == expected * USDT, columns
    execute("UPDATE deposits SET status = 'reversed'")
    assert room() == 0, "the sweep may move nothing"
    execute("UPDATE deposits SET status = 'credited'")
    execute("UPDATE treasury_addresses SET is_current = false")
    assert room() == 0, "it goes to a former hot wallet"


def test_a_spend_counted_by_a_comparison_is_not_counted_again() -> None:
    pin_hot()
    hold("USDT", "ethereum", 50 * USDT, height=10)
    coming = spend(purpose="sweep", sender="0xd", recipient=HOT, currency="USDT", token_units=8 * USDT)
    going = spend(purpose="cold", recipient=COLD, currency="USDT", token_units=USDT)
    paying = spend(purpose="payout", recipient=RECIPIENT, currency="USDT", token_units=10 * USDT)
    order = payout(funded(), status="broadcasting")
    execute("UPDATE spend_outputs SET payout_id = %s WHERE spend_id = %s", (order.id, paying))
    for signed_height, waiting, expected in (
        (10, None, 50 + 8 - 1 - 10), (9, [], 50), (9, [coming], 50 + 8), (9, [going], 50 - 1), (9, [paying], 50 - 10),
        (9, None, 50 - 10),
    ):  # fmt: skip
        execute("UPDATE spends SET signed_height = %s", (signed_height,))
        execute("UPDATE reconciliations SET waiting_ids = %s::uuid[]", (waiting,))
        assert room() == expected * USDT, (signed_height, waiting)
    (stock,) = (
        each
        for each in liquidity.stocks(CATALOGUE, priced(), {"ethereum"}, fee_max_percent=5)
        if each.currency == "USDT"
    )
    assert stock.queued_units == 10 * USDT


def test_free_coins_count_and_signed_payouts_hold_theirs() -> None:
    rooms = liquidity.room(CATALOGUE, priced(), {"bitcoin"}, fee_max_percent=5)
    assert rooms == {("BTC", "bitcoin"): 0}
    begin_scan("bitcoin", height=200)
    network = CATALOGUE.networks["bitcoin"]
    made = [
        CoinRow(
            network="bitcoin", txid=txid, vout=0, address="bc1", currency="BTC", units=units, created_height=1,
            created_hash="0x1",
        )
        for txid, units in (("a", 7 * SATOSHI), ("b", 5 * SATOSHI))
    ]  # fmt: skip
    with transaction():
        coins.note("bitcoin", made, [], height=1, block_hash="0x1")
        held_by = spend(network="bitcoin", recipient=RECIPIENT, currency="BTC", token_units=1)
        execute("UPDATE coins SET held_by = %s WHERE txid = 'b'", (held_by,))
    merchant_id = funded()
    orders = [payout(merchant_id, status="approved"), payout(merchant_id, status="approved")]
    execute(
        "UPDATE payouts SET network = 'bitcoin', currency = 'BTC', fee_units = 0, amount_units = 2000000,"
        " to_units = 2000000, held_units = 2000000"
    )
    free = coins.free("bitcoin", network.family, "BTC", limit=9, depth=network.maturity)
    assert [coin.units for coin in free] == [7 * SATOSHI]
    for status, expected in (("approved", 3), ("broadcasting", 5), ("sent", 5)):
        execute("UPDATE payouts SET status = %s WHERE id = %s", (status, orders[0].id))
        rooms = liquidity.room(CATALOGUE, priced(), {"bitcoin"}, fee_max_percent=5)
        assert rooms == {("BTC", "bitcoin"): expected * SATOSHI}, status
    [stock] = liquidity.stocks(CATALOGUE, priced(), {"bitcoin"}, fee_max_percent=5)
    assert (stock.held_units, stock.usable_units, stock.queued_units) == (12 * SATOSHI, 7 * SATOSHI, 2 * SATOSHI)


def test_a_spend_that_comes_into_a_block_meanwhile_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pin_hot()
    hold("USDT", "ethereum", 12 * USDT, height=10)
    order = payout(funded(), status="sent")
    spend_id = spend(purpose="payout", recipient=RECIPIENT, currency="USDT", token_units=10 * USDT)

    def then_mined(sql: str, params: Any = ()) -> list[Any]:
        shown = rows(sql, params)
        execute("UPDATE payouts SET block_height = 11 WHERE id = %s", (order.id,))
        execute(
            "INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)"
            " VALUES (%s, 'ethereum', %s, 'USDT', 6, -10000000, 11) ON CONFLICT DO NOTHING",
            (spend_id, HOT),
        )
        return shown

    monkeypatch.setattr(liquidity, "rows", then_mined)
    assert [room(), room()] == [2 * USDT] * 2


def test_a_shortage_of_queued_payouts_is_shown_for_their_network_alone() -> None:
    merchant_id = funded()
    pin_hot()
    hold("USDT", "ethereum", 4 * USDT, height=10)
    order = payout(merchant_id, status="approved")
    networks = {"ethereum", "bsc"}
    missing = liquidity.missing(CATALOGUE, priced(), networks, fee_max_percent=5)
    assert {method: units for method, units in missing.items() if units} == {METHOD: 6 * USDT}
    assert missing["USDT", "bsc"] == 0, "networks without a shortage are shown too"
    spend(purpose="cold", recipient=COLD, currency="USDT", token_units=9 * USDT, mined=(10, "0xa"))
    with transaction():
        topups.record(
            Topup(
                id=uuid7(), network="ethereum", txid="0x1", ordinal="1", currency="USDT", units=USDT,
                sender=COLD, address=HOT, origin="cold", block_height=10, block_hash="0xa",
            )
        )  # fmt: skip
    stocks = liquidity.stocks(CATALOGUE, priced(5 * USDT), networks, fee_max_percent=5)
    mine = next(each for each in stocks if (each.currency, each.network) == METHOD)
    assert {each.network for each in stocks} == networks
    assert (mine.hot_units, mine.deposit_units, mine.cold_units) == (4 * USDT, 100 * USDT, 8 * USDT)
    assert (mine.usable_units, mine.queued_units, mine.missing_units) == (104 * USDT, 10 * USDT, 0)
    assert liquidity.owed() == {"USDT": 100 * USDT}
    execute("UPDATE payouts SET status = 'sent', block_height = 11 WHERE id = %s", (order.id,))
    assert liquidity.owed() == {"USDT": 89 * USDT}, "the payout has left, with its fee"
    builders.funded(merchant_id)
    assert liquidity.owed() == {"USDT": 89 * USDT}, "a cheque can still be claimed"


def test_a_shortage_is_logged_once_an_hour_even_if_the_clock_moves() -> None:
    assert [liquidity.note_missing("USDT", "ethereum") for _ in range(2)] == [True, False]
    assert liquidity.note_missing("USDT", "bsc")
    for shift, expected in (("59 minutes", False), ("2 minutes", True), ("-1 day", True)):
        execute(f"UPDATE app_clock SET ahead = ahead + interval '{shift}'")
        assert liquidity.note_missing("USDT", "ethereum") is expected, shift
