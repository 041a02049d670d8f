"""Sightings: which of them keep an invoice open, which are shown, which are forgotten; what a deposit has of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from core.invoices.timeline_schemas import Timeline
from models.db.base import app_now, column, execute, rows
from models.deposits import sightings
from models.invoices import rows as invoices
from models.invoices import timeline
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from tests.models.builders import CATALOGUE, Chain
from tests.models.invoices.builders import PRICE, expired, invoice, keep_rates, settled
from tests.models.invoices.builders import seen as looked

pytestmark = pytest.mark.usefixtures("sound")


def seen(of: InvoiceRow, **columns: Any) -> sightings.Sighting:
    """Note a payment of all that an invoice asks for, unless told otherwise, which no block has."""
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


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


@pytest.mark.parametrize(
    ("stray_reason", "status", "units"), [(None, "check", PRICE), ("asset", "check", 0), ("dust", "expired", 0)]
)
def test_a_stray_keeps_an_invoice_open_unseen_and_dust_does_not(
    shop: UUID, chain: Chain, stray_reason: str | None, status: str, units: int
) -> None:
    mine = invoice(shop)
    seen(mine, stray_reason=stray_reason)
    assert invoices.reread(mine.id).sighted_units == units
    pass_time(4_000)
    chain.pass_by(mine.expires_at)

    assert (invoices.due_for_settlement(9) == []) == (status == "check")
    assert settled(mine).status == status


def test_what_is_seen_after_the_expiry_keeps_nothing_open(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pass_time(4_000)
    seen(mine)

    assert expired(chain, mine).status == "expired"


def test_what_left_the_pools_for_a_block_holds_the_quote_until_the_scan_has_read_it(shop: UUID, chain: Chain) -> None:
    """Or the page asks for another price, and the deposit is judged by the first one all the same."""
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


def test_what_left_the_pools_for_good_holds_the_quote_no_longer_than_until_it_is_forgotten(
    shop: UUID, chain: Chain
) -> None:
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
def test_specks_that_wait_hold_no_quote(shop: UUID, chain: Chain, units: int, *, is_due: bool) -> None:
    mine = invoice(shop)
    seen(mine, units=units)
    keep_rates(USD=1, USDT=1)
    pass_time(1_000)
    chain.pass_by(mine.rate_expires_at)

    assert looked(mine).generation == (2 if is_due else 1)


def test_what_is_about_to_be_included_later_has_its_moment_from_then_on(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    found = seen(mine, is_soon=False)
    pass_time(600)
    noted(found.but(is_soon=True))
    later = chain.time + timedelta(seconds=700)
    pass_time(60)
    chain.pay(mine, PRICE, txid="0xwaits", at=later)

    ((deposit_at, soon_at, seen_first, detected_at),) = rows(
        "SELECT d.seen_at, s.soon_at, s.seen_at, d.detected_at FROM deposits d JOIN sightings s USING (network, txid)"
    )
    assert (deposit_at, detected_at) == (soon_at, seen_first)
    assert timedelta(seconds=599) < soon_at - seen_first < timedelta(seconds=660)


def test_a_block_that_is_older_than_the_sighting_keeps_its_own_time(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pass_time(600)
    seen(mine)
    chain.pay(mine, PRICE, txid="0xwaits")

    assert column("SELECT seen_at = block_time FROM deposits") == [True]


def test_a_sighting_of_another_invoice_gives_no_moment(shop: UUID, chain: Chain) -> None:
    mine, other = invoice(shop), invoice(shop)
    seen(other)
    chain.pay(mine, PRICE, txid="0xwaits", at=chain.time + timedelta(seconds=900))

    assert column("SELECT seen_at = block_time FROM deposits") == [True]


def test_the_timeline_tells_of_it_in_the_declared_form(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height)
    chain.mine()
    assert sightings.forget_lost("ethereum") == ["0xwaits"]
    told = {"items": timeline.read(CATALOGUE, Shown(invoices.reread(mine.id)))}

    msgspec.json.decode(msgspec.json.encode(told), type=Timeline)
    assert [event["event"] for event in told["items"]] == ["created", "quoted", "detected"]


def test_what_replaced_another_and_vanishes_leaves_that_shown(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    pass_time(1)
    seen(mine, txid="0xdearer")
    assert invoices.reread(mine.id).shown_txid == "0xdearer"
    sightings.lose("ethereum", ["0xdearer"], height=chain.height)
    chain.mine()
    sightings.forget_lost("ethereum")

    assert invoices.reread(mine.id).shown_txid == "0xwaits"


def test_what_is_old_and_settled_is_forgotten_and_nothing_else(shop: UUID, chain: Chain) -> None:
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


def test_what_was_forgotten_and_is_mined_after_all_has_its_blocks_time(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    seen(mine)
    sightings.lose("ethereum", ["0xwaits"], height=chain.height)
    chain.mine()
    sightings.forget_lost("ethereum")
    chain.pay(mine, PRICE, txid="0xwaits", at=chain.time + timedelta(seconds=900))

    assert column("SELECT seen_at = block_time FROM deposits") == [True]
