"""Sightings keep invoices open, are shown, are deleted, and give deposits their time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from core.invoices.timeline_schemas import Timeline
from models.db.base import app_now, column, execute, rows
from models.deposits import rows as deposits
from models.deposits import sightings
from models.invoices import deadlines, timeline
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from tests.models.builders import CATALOGUE, Chain, pass_time
from tests.models.invoices.builders import PRICE, expired, invoice, keep_rates, settled
from tests.models.invoices.builders import seen as looked

pytestmark = pytest.mark.usefixtures("sound")


def seen(of: InvoiceRow, **columns: Any) -> sightings.Sighting:
    """Note a payment of an invoice's whole price that is in no block yet."""
    new = sightings.Sighting(
        **{
            "network": "ethereum",
            "txid": "0xwaits",
            "ordinal": "0",
            "currency": "USDT",
            "units": PRICE,
            "address": of.address.lower(),
            "owner_kind": "invoice",
            "owner_id": of.id,
            "merchant_id": of.merchant_id,
            "stray_reason": None,
            "spends": ["0xfunds:0"],
            "is_soon": True,
        }
        | columns
    )
    noted(new)
    return new


def noted(new: sightings.Sighting) -> None:
    """Note a sighting of an invoice whose quotes are written up to now."""
    now = app_now()
    sightings.note([new], now=now)
    if new.is_soon:
        sightings.expect(new.network, [new.txid], now=now)


@pytest.mark.parametrize(
    ("stray_reason", "status", "units"), [(None, "check", PRICE), ("asset", "check", 0), ("dust", "expired", 0)]
)
def test_an_unshown_stray_keeps_an_invoice_open_and_dust_does_not(
    shop: UUID, chain: Chain, stray_reason: str | None, status: str, units: int
) -> None:
    mine = invoice(shop)
    seen(mine, stray_reason=stray_reason)
    assert invoices.reread(mine.id).sighted_units == units
    pass_time(4_000)
    chain.pass_by(mine.expires_at)

    assert (deadlines.due_for_settlement(9) == []) == (status == "check")
    assert settled(mine).status == status


def test_a_sighting_after_the_expiry_does_not_keep_the_invoice_open(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pass_time(4_000)
    seen(mine)

    assert expired(chain, mine).status == "expired"


def test_a_mined_sighting_holds_the_quote_until_the_scan_reads_its_block(shop: UUID, chain: Chain) -> None:
    """Otherwise the page would show another price, while the deposit is judged by the first one."""
    mine = invoice(shop)
    seen(mine)
    keep_rates(USD=1, USDT=1)
    pass_time(1_000)
    chain.pass_by(mine.rate_expires_at)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height + 1)
    pass_time(2)
    assert looked(mine).generation == 1

    chain.pay(mine, PRICE, txid="0xwaits")
    chain.confirm()
    got = settled(mine)
    assert (got.status, got.generation) == ("paid", 1)


def test_a_lost_sighting_holds_the_quote_until_it_is_deleted(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    keep_rates(USD=1, USDT=1)
    pass_time(1_000)
    chain.pass_by(mine.rate_expires_at)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height)
    chain.mine()
    assert sightings.forget_lost("ethereum") == ["0xwaits"]

    assert looked(mine).generation == 2


@pytest.mark.parametrize(("units", "is_due"), [(PRICE // 10, False), (PRICE // 10 - 1, True)])
def test_a_sighting_holds_a_quote_if_it_pays_a_tenth_of_it(
    shop: UUID, chain: Chain, units: int, *, is_due: bool
) -> None:
    mine = invoice(shop)
    seen(mine, units=units)
    keep_rates(USD=1, USDT=1)
    pass_time(1_000)
    chain.pass_by(mine.rate_expires_at)

    assert looked(mine).generation == (2 if is_due else 1)


def test_a_sighting_is_counted_from_the_moment_it_became_soon(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    shown = seen(mine, is_soon=False)
    pass_time(600)
    noted(shown.but(is_soon=True))
    later = chain.time + timedelta(seconds=700)
    pass_time(60)
    chain.pay(mine, PRICE, txid="0xwaits", at=later)

    ((deposit_at, soon_at, seen_first, detected_at),) = rows(
        "SELECT d.seen_at, s.soon_at, s.seen_at, d.detected_at FROM deposits d JOIN sightings s USING (network, txid)"
    )
    assert (deposit_at, detected_at) == (soon_at, seen_first)
    assert timedelta(seconds=599) < soon_at - seen_first < timedelta(seconds=660)


def test_a_deposit_in_a_block_older_than_its_sighting_keeps_the_blocks_time(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pass_time(600)
    seen(mine)
    chain.pay(mine, PRICE, txid="0xwaits")

    assert column("SELECT seen_at = block_time FROM deposits") == [True]


def test_a_sighting_of_the_last_day_dates_a_deposit_whose_block_is_dated_ahead(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    pass_time(sightings.COUNTED_S - 60)
    chain.pay(mine, PRICE, txid="0xwaits", at=chain.time + timedelta(seconds=sightings.COUNTED_S + 3_600))

    assert rows("SELECT d.seen_at = s.soon_at, d.detected_at = s.seen_at FROM deposits d, sightings s") == [
        (True, True)
    ]


@pytest.mark.parametrize(("ahead_s", "counted_s"), [(-3600, -60), (60, 0)])
def test_a_deposit_in_a_block_dated_back_counts_from_the_block_before_it(
    shop: UUID, chain: Chain, ahead_s: int, counted_s: int
) -> None:
    """Otherwise its miner could give a payer the price of an hour ago, or a payment after the expiry its sale."""
    mine = invoice(shop)
    now = app_now()
    chain.mine(at=now + timedelta(seconds=min(ahead_s, 0) // 60))
    chain.pay(mine, PRICE, at=now + timedelta(seconds=ahead_s))
    [deposit] = deposits.of_owner(mine.id)
    assert abs((deposit.seen_at - now).total_seconds() - counted_s) < 30


def test_a_sighting_of_another_invoice_gives_a_deposit_no_time(shop: UUID, chain: Chain) -> None:
    mine, other = invoice(shop), invoice(shop)
    seen(other)
    pass_time(1_000)
    chain.pay(mine, PRICE, txid="0xwaits", at=chain.time + timedelta(seconds=900))

    assert column("SELECT seen_at = block_time FROM deposits") == [True]


def test_the_timeline_shows_a_sighting_in_the_declared_form(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height)
    chain.mine()
    assert sightings.forget_lost("ethereum") == ["0xwaits"]
    document = {"items": timeline.read(CATALOGUE, Shown(invoices.reread(mine.id)))}

    msgspec.json.decode(msgspec.json.encode(document), type=Timeline)
    assert [event["event"] for event in document["items"]] == ["created", "quoted", "detected"]


def test_a_replaced_sighting_is_shown_again_when_its_replacement_vanishes(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    pass_time(1)
    seen(mine, txid="0xdearer")
    assert invoices.reread(mine.id).shown_txid == "0xdearer"
    sightings.lose("ethereum", ["0xdearer"], height=chain.height)
    chain.mine()
    sightings.forget_lost("ethereum")

    assert invoices.reread(mine.id).shown_txid == "0xwaits"


def test_only_old_and_settled_sightings_are_deleted(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    seen(mine, txid="0xgone", spends=["0xother:0"])
    seen(mine, txid="0xmined", spends=["0xthird:0"])
    execute("UPDATE sightings SET gone_at = app_now() WHERE txid = '0xgone'")
    chain.pay(mine, PRICE, txid="0xmined")
    assert sightings.prune(limit=9) == 0
    pass_time(86_400 * (sightings.KEPT_DAYS + 1))

    assert sightings.prune(limit=1) + sightings.prune(limit=9) == 2
    assert column("SELECT txid FROM sightings") == ["0xwaits"]


def test_a_payment_mined_after_its_sighting_was_deleted_has_its_blocks_time(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height)
    chain.mine()
    sightings.forget_lost("ethereum")
    pass_time(1_000)
    chain.pay(mine, PRICE, txid="0xwaits", at=chain.time + timedelta(seconds=900))

    assert column("SELECT seen_at = block_time FROM deposits") == [True]
