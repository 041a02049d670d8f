"""Finds the payout that an unexplained departure paid, by gross sum, recipient, coin and memo."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg2.extras import Json

from core.ids import uuid7
from models.db.base import execute, rows, transaction
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import matching, seen, signing_stops, unexplained
from models.spends.outputs import OutputRow
from models.spends.rows import SpendRow
from models.spends.unexplained import Part, UnexplainedRow
from tests.models.builders import CATALOGUE, merchant
from tests.models.payout_links.builders import new_link
from tests.models.payouts.builders import fund
from tests.models.payouts.held import taken
from tests.models.spends.departures import a_departure, note_taker

TO = "0x" + "51" * 20
ETHER = 10**18
FEE = ETHER // 10
ADOPTED = (
    "UPDATE unexplained_departures SET status = 'adopted', settled_at = app_now(), raw = 'x', outputs = %s,"
    " spend_id = (SELECT id FROM spends) WHERE status = 'unread'"
)
GROSS = 2 * ETHER


@pytest.fixture
def shop(database: str) -> UUID:
    del database
    return merchant()


def order(shop: UUID, *, fee: int = FEE, gross: int = GROSS, **others: Any) -> PayoutRow:
    """Write a payout of ether with the network's fee inside its gross sum."""
    payout_id = uuid7()
    document: dict[str, Any] = {
        "id": payout_id, "merchant_id": shop, "order_id": str(payout_id), "kind": "payout", "currency": "ETH",
        "network": "ethereum", "address": TO, "amount_units": gross, "fee_units": fee, "to_units": gross - fee,
        "is_fee_on_top": False, "status": "approved", "created_by": "test",
    }  # fmt: skip
    new = PayoutRow(**(document | others))
    fund(shop, new.to_units + new.fee_units, currency="ETH", kind=new.funded_from)
    with transaction():
        return payouts.insert(CATALOGUE, new)


def left(units: int, txid: str = "0xlost", *, slot: int = 3, **part: Any) -> UnexplainedRow:
    """Note an unexplained departure of one output."""
    new = a_departure(txid, slot=slot, outputs=[Part(TO, units, **part).to_json()])
    with transaction():
        assert unexplained.note(new)
    departure = unexplained.find("ethereum", txid)
    assert departure is not None
    return departure


def asker(of: UnexplainedRow, *taken: UUID) -> UUID | None:
    return matching.asker(CATALOGUE, of, of.parts[0], taken)


@pytest.mark.parametrize(
    ("fields", "units", "is_matched"),
    [
        ({}, GROSS - FEE, True),
        ({}, GROSS - 3 * FEE, True),
        ({}, GROSS - FEE // 3, True),
        ({}, GROSS - 5 * FEE, False),
        ({}, GROSS - FEE // 5, False),
        ({}, GROSS + FEE, False),
        ({"status": "pending"}, GROSS - FEE, False),
        ({"is_fee_on_top": True}, GROSS - 3 * FEE, False),
        ({"is_fee_on_top": True, "funded_from": "suspense", "kind": "stray"}, GROSS - 3 * FEE, True),
        ({"memo": "7"}, GROSS - 3 * FEE, False),
        ({"memo": "7"}, GROSS - FEE, False),
        ({"address": "0x" + "52" * 20}, GROSS - 3 * FEE, False),
    ],
)
def test_a_payout_is_found_by_its_gross_sum(
    shop: UUID, fields: dict[str, Any], units: int, *, is_matched: bool
) -> None:
    made = order(shop, **fields)
    departure = left(units)
    assert asker(departure) == (made.id if is_matched else None)
    assert asker(departure, made.id) is None
    is_open = is_matched or (units <= GROSS and fields in ({}, {"status": "pending"}))
    assert [each.id for each in matching.rivals(CATALOGUE, departure, departure.parts[0])] == [made.id] * is_open
    assert matching.payers(CATALOGUE, made) == ["0xlost"] * is_open


def test_an_exact_sum_is_preferred_to_a_gross_one(shop: UUID) -> None:
    order(shop)
    exact = order(shop, gross=GROSS - 2 * FEE, fee=FEE)
    assert asker(left(GROSS - 3 * FEE)) == exact.id


def test_memos_distinguish_payouts(shop: UUID) -> None:
    order(shop, memo="1")
    second = order(shop, memo="2")
    assert asker(left(GROSS - 2 * FEE, memo="2")) == second.id


def test_a_departure_that_two_merchants_payouts_match_is_left_to_an_operator(shop: UUID) -> None:
    first = order(shop)
    other = order(merchant())
    departure = left(GROSS - 2 * FEE)
    assert asker(departure) is None
    assert asker(departure, other.id) == first.id
    order(shop)
    assert asker(departure, other.id) == first.id, "of two equal payouts the oldest"


def test_a_payout_that_matches_two_sums_gets_neither(shop: UUID) -> None:
    made = order(shop)
    first = left(GROSS - 2 * FEE)
    left(GROSS - 2 * FEE, "0xalike", slot=4)
    assert asker(first) == made.id
    left(GROSS - 9 * FEE, "0xfar", slot=5)
    assert asker(first) == made.id
    left(GROSS - 3 * FEE, "0xnear", slot=6)
    assert asker(first) is None


def test_a_payout_takes_over_the_sums_of_its_departure(shop: UUID) -> None:
    kept, back = order(shop), order(shop, is_fee_on_top=True, funded_from="suspense", kind="stray", amount_units=1)
    for made in (kept, back):
        with transaction():
            after = payouts.reprice(made, to_units=GROSS - 2 * FEE)
        assert (after.to_units, after.fee_units, after.held_units) == (GROSS - 2 * FEE, 2 * FEE, GROSS)
        assert after.amount_units == (GROSS if made is kept else GROSS - 2 * FEE)


def test_an_order_may_be_a_repeat_while_a_matching_departure_waits(shop: UUID) -> None:
    """It is checked before the order is written."""
    new = order(shop)
    execute("UPDATE payouts SET status = 'cancelled'")
    assert not matching.is_repeat(CATALOGUE, new)
    left(GROSS - 9 * FEE)
    assert not matching.is_repeat(CATALOGUE, new), "no charged fee explains the sum"
    departure = left(GROSS - 2 * FEE, "0xnear", slot=4)
    assert matching.is_repeat(CATALOGUE, new)
    order(shop)
    assert not matching.is_repeat(CATALOGUE, new), "another payout matches it"
    execute("UPDATE payouts SET status = 'cancelled'")
    with transaction():
        unexplained.name_payout(departure, 0, new.id)
    assert not matching.is_repeat(CATALOGUE, new), "an operator has named its payout"
    assert "0xnear" in matching.payers(CATALOGUE, new)


def test_a_departure_that_is_no_payout_of_an_offered_coin_matches_none(shop: UUID) -> None:
    made = order(shop)
    departure = left(GROSS - FEE)
    gone = departure.but(currency="USDT", contract="0xelsewhere")
    assert asker(gone) is None
    assert matching.rivals(CATALOGUE, departure.but(key_ordinal=4), departure.parts[0]) == []
    assert matching.rivals(CATALOGUE, departure.but(is_transfer=False), departure.parts[0]) == []
    mixed = departure.but(is_transfer=False, spends=[["0xcoin", 0]])
    assert [each.id for each in matching.rivals(CATALOGUE, mixed, mixed.parts[0])] == [made.id]
    assert matching.rivals(CATALOGUE, departure, departure.parts[0]._replace(has_effect=False)) == []
    assert matching.payers(CATALOGUE, made.but(currency="BTC")) == []
    assert matching.payers(CATALOGUE, made) == ["0xlost"]
    execute("UPDATE unexplained_departures SET is_transfer = false")
    assert matching.payers(CATALOGUE, made) == []
    execute("UPDATE unexplained_departures SET claim = 'coins', slot = NULL, spends = '[[\"0xcoin\", 0]]'")
    assert matching.payers(CATALOGUE, made) == ["0xlost"], "foreign coins among ours may be ours too"
    assert matching.ledger_units(CATALOGUE, departure.but(currency="BTC"), 1) is None


def test_a_named_payout_is_matched_at_any_fee_up_to_its_sum(shop: UUID) -> None:
    made = order(shop)
    departure = left(1)
    assert matching.is_paid_by(made, departure, departure.parts[0], 1)
    assert not matching.is_paid_by(made, departure, departure.parts[0], GROSS + 1)
    assert not matching.is_paid_by(made.but(is_fee_on_top=True), departure, departure.parts[0], 1)
    assert not matching.is_paid_by(made.but(memo="7"), departure, departure.parts[0], 1)


@pytest.mark.parametrize(("end", "at"), [("expires_at", "app_now()"), ("expires_height", "9"), ("expires_block", "9")])
def test_a_sent_payout_may_have_been_signed_again_in_the_lost_time(shop: UUID, end: str, at: str) -> None:
    made = order(shop)
    departure = left(GROSS - FEE)

    def rivals() -> list[UUID]:
        return [each.id for each in matching.rivals(CATALOGUE, departure, departure.parts[0])]

    taken(made, "broadcasting")
    assert rivals() == [], "its slot is its own"
    execute(
        f"INSERT INTO spend_attempts (spend_id, number, network, txid, raw, ceiling_units, terms, {end})"
        f" SELECT id, 0, network, '0xours', '\\x00', 1, '{{}}', {at} FROM spends"
    )
    assert rivals() == [made.id]
    taken(made, "sent")
    assert rivals() == [made.id]
    seen.note("ethereum", ["0xours"], height=1, block_hash="0x1")
    assert rivals() == [], "the scan has seen it in a block"
    execute("DELETE FROM attempts_seen")
    note_taker("ethereum", "0xours")
    assert rivals() == [made.id], "no node has shown it yet"
    execute(ADOPTED, (Json([Part(TO, 1).to_json()]),))
    assert rivals() == []
    execute("DELETE FROM unexplained_departures WHERE txid = '0xours'")
    taken(made, "confirmed")
    assert rivals() == []


def test_cheques_of_a_sum_are_found(shop: UUID) -> None:
    departure = left(GROSS)
    link = new_link(shop, currency="ETH", amount_units=GROSS)
    link.write()
    assert matching.cheques(CATALOGUE, departure, departure.parts[0], limit=9) == [link.id]
    assert matching.has_moved(CATALOGUE, network="ethereum", currency="ETH", units=GROSS)
    execute("UPDATE unexplained_departures SET outputs = %s || outputs", (Json([Part(TO, 1).to_json()]),))
    assert matching.has_moved(CATALOGUE, network="ethereum", currency="ETH", units=GROSS), "one of several outputs"
    assert not matching.has_moved(CATALOGUE, network="ethereum", currency="ETH", units=1 + GROSS)
    assert not matching.has_moved(CATALOGUE, network="ethereum", currency="USDT", units=1), "USDT has fewer digits"
    assert not matching.has_moved(CATALOGUE, network="bitcoin", currency="ETH", units=GROSS)


def test_coins_of_a_network_that_is_not_signed_for_are_doubted(shop: UUID) -> None:
    """By its stop, and before that by its mark alone."""
    del shop
    served = {"ethereum", "tron", "bitcoin"}
    assert signing_stops.watch("ethereum") is None
    execute("INSERT INTO database_marks (network, system_identifier, timeline) VALUES ('pool:evm', '', '')")
    assert signing_stops.doubtful() == set()
    execute("UPDATE database_marks SET timeline = '00000000' WHERE network = 'ethereum'")
    assert rows("SELECT 1 FROM signing_stops") == []
    assert {"ETH", "USDT"} <= signing_stops.doubted_coins(CATALOGUE, served)
    assert "BTC" not in signing_stops.doubted_coins(CATALOGUE, served)
    assert signing_stops.doubted_coins(CATALOGUE, served, but="ethereum") == set()
    assert signing_stops.doubted_coins(CATALOGUE, {"tron"}) == set()


@pytest.mark.parametrize(("asked", "moved"), [("1", "1"), ("1", "2"), ("", "1"), ("1", "")])
def test_a_departure_with_another_memo_is_no_attempt_of_a_spend(asked: str, moved: str) -> None:
    """Two payouts of one sum to one exchange differ by their memos alone."""
    output = OutputRow(spend_id=uuid7(), recipient="0xthem", token_units=7, memo=asked)
    spend = SpendRow(
        id=output.spend_id, network="ethereum", purpose="payout", sender="0xhot", currency="ETH", contract=None,
        decimals=18, token_units=7, slot=None,
    )  # fmt: skip
    spend = spend.but(outputs=(output,))
    departure = a_departure(contract=None, outputs=[Part("0xthem", 7, memo=moved).to_json()])
    assert unexplained.may_be(departure, spend) is (asked == moved)
