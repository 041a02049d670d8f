"""Adoption gives an unexplained departure its payout, and with it refunds from suspense and cheques."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from core.ids import uuid7
from models.db.base import column, execute, rows, transaction
from models.ledger.ledger import PAYOUT_HELD
from models.outcomes import payout_hooks
from models.payout_links import claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts.rows import PayoutRow
from models.recovery import adoption, writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import matching, unexplained
from models.spends.unexplained import Part, UnexplainedRow
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.ledger.figures import balances_of
from tests.models.payout_links.builders import AMOUNT, ANN, BOB, new_link, rich_merchant
from tests.models.payouts.held import HOT_WALLET, payout, taken
from tests.models.refunds.builders import FEE, reread, send_back, short
from tests.models.spends import by_hand
from tests.models.spends.departures import SENDER, a_departure
from tests.models.treasury.builders import HOT, pin_hot

CONTRACT = CATALOGUE.pairs["USDT", "ethereum"].contract


@pytest.fixture
def shop(database: str) -> Iterator[UUID]:
    del database
    pin_hot()
    yield rich_merchant()
    assert_sound()


def left(to: str, units: int, **columns: Any) -> UnexplainedRow:
    """Note an unexplained transfer of USDT; units: the ledger's."""
    token_units = units // 10**12
    new = a_departure(
        recipient=to, token_units=token_units, currency="USDT", contract=CONTRACT, decimals=6, **columns
    )  # fmt: skip
    with transaction():
        assert unexplained.note(new)
    departure = unexplained.find("ethereum", "0xlost")
    assert departure is not None
    return departure


def linked(shop: UUID, **columns: Any) -> PayoutLinkRow:
    with transaction():
        link = payout_links.insert(new_link(shop, **columns))
        payout_links.hold(link)
    return link


def adopt(shop: UUID, order_id: str) -> Any:
    booked, _ = writeoffs.pay_order(
        CATALOGUE, "ethereum", "0xlost", merchant_id=shop, order_id=order_id, by="operator"
    )  # fmt: skip
    return booked


def test_a_refund_from_suspense_takes_over_the_fee_charged_at_its_departure(shop: UUID) -> None:
    refund = send_back(short(Chain(), shop))
    departure = left(refund.address, refund.to_units - FEE)
    with transaction():
        assert adoption.adopt(CATALOGUE, departure.id)
    after = reread(refund)
    assert (after.status, after.to_units, after.amount_units, after.fee_units, after.held_units) == (
        "sent", refund.to_units - FEE, refund.to_units - FEE, 2 * FEE, refund.held_units,
    )  # fmt: skip


def test_a_cheque_is_claimed_with_the_recipient_of_its_departure(shop: UUID) -> None:
    """Another claim is under way here: the lost part of the database had ended it."""
    link = linked(shop)
    with transaction():
        claims.begin(link, BOB, "")
    left(ANN, AMOUNT)
    booked = adopt(shop, f"payoutlink:{link.id}")
    assert (booked.kind, booked.address, booked.hold_reference) == ("cheque", ANN, link.hold_reference)
    assert (payout_links.reread(link.id).status, balances_of(shop)[PAYOUT_HELD]) == ("claimed", link.held_units)


def test_a_cheque_that_cannot_match_is_refused(shop: UUID) -> None:
    link, larger = linked(shop), linked(shop, amount_units=AMOUNT + USDT)
    left(ANN, AMOUNT)
    with transaction():
        payout_links.lock(link.id)
    for name, problem in ((larger.id, "another transfer"), (shop, "no such cheque"), ("x", "no such cheque")):
        with pytest.raises(RecoveryError, match=problem):
            adopt(shop, f"payoutlink:{name}")
    execute("UPDATE unexplained_departures SET network = 'bsc'")
    execute("DELETE FROM signing_stops")
    with transaction():
        payout_links.cancel(shop, link.id)
    execute("UPDATE unexplained_departures SET network = 'ethereum'")
    with pytest.raises(RecoveryError, match="is cancelled"):
        adopt(shop, f"payoutlink:{link.id}")
    assert rows("SELECT count(*) FROM payouts") == [(0,)]


def test_a_departure_with_foreign_coins_pays_only_the_payout_that_an_operator_names(shop: UUID) -> None:
    """The foreign coins may be ours. It matches no payout by itself; a payout that it may have paid is kept."""
    order = payout(shop)
    mixed = left(order.address, order.to_units, is_transfer=False, spends=[["0xcoin", 0]])
    with transaction():
        assert not adoption.adopt(CATALOGUE, mixed.id)
    assert matching.payers(CATALOGUE, order) == ["0xlost"], "nor is the payout cancelled"
    with pytest.raises(RecoveryError, match="would be paid again"):
        writeoffs.write_off(CATALOGUE, "ethereum", "USDT", order.to_units, reason="lost", by="operator")

    booked = adopt(shop, order.order_id)
    assert (booked.id, booked.status) == (order.id, "sent")
    assert rows("SELECT status FROM unexplained_departures") == [("adopted",)]


def test_a_departure_other_than_our_transfer_pays_no_payout(shop: UUID) -> None:
    order = payout(shop)
    left(order.address, order.to_units, is_transfer=False)
    with pytest.raises(RecoveryError, match="this is no payout"):
        adopt(shop, order.order_id)


# Refused and special adoptions ----------------------------------------------------------------------------------


def adopted(departure: UnexplainedRow) -> bool:
    with transaction():
        return adoption.adopt(CATALOGUE, departure.id)


def approved(shop: UUID) -> PayoutRow:
    return payout(shop, status="approved", is_approval_required=False)


def signed(shop: UUID, **columns: Any) -> tuple[PayoutRow, UnexplainedRow]:
    """Send a payout, and note another transaction with its slot and its movements."""
    order = taken(approved(shop), "broadcasting", "sent")
    [slot] = column("SELECT slot FROM spends")
    return order, left(order.address, order.to_units, sender=HOT_WALLET, slot=slot, **columns)


def test_only_a_plain_transfer_becomes_another_attempt(shop: UUID) -> None:
    order, departure = signed(shop, is_transfer=False)
    assert not adopted(departure)
    execute("UPDATE unexplained_departures SET is_transfer = true")
    assert adopted(departure)
    assert (reread(order).txid, rows("SELECT attempts FROM spends")) == ("0xlost", [(2,)])


def test_a_spend_that_a_block_includes_gets_no_further_attempt(shop: UUID) -> None:
    _, departure = signed(shop)
    by_hand.change(
        "state = 'mined', mined_txid = '0x', mined_height = 1, mined_hash = '0x', effect = 'exact', is_success = true,"
        " chain_fee_units = 0"
    )
    assert not adopted(departure)
    assert rows("SELECT d.status, attempts FROM unexplained_departures d, spends") == [("unexplained", 1)]


def test_a_transaction_with_the_coins_of_two_spends_is_an_attempt_of_neither(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, departure = signed(shop)
    monkeypatch.setattr(unexplained, "holders", lambda _: [*column("SELECT id FROM spends"), uuid7()])
    assert not adopted(departure)


@pytest.mark.parametrize(("units", "is_transfer", "is_adopted"), [(0, True, True), (0, False, False), (1, True, False)])
def test_a_filler_is_a_plain_transfer_of_nothing(
    shop: UUID, units: int, *, is_transfer: bool, is_adopted: bool
) -> None:
    del shop
    assert adopted(left(SENDER, units * 10**12, is_transfer=is_transfer)) == is_adopted


def test_a_transfer_out_of_a_deposit_address_pays_no_payout(shop: UUID) -> None:
    order = approved(shop)
    assert not adopted(left(order.address, order.to_units, key_ordinal=5))


def test_an_adopted_payout_waits_for_nothing(shop: UUID) -> None:
    order = approved(shop)
    execute("UPDATE payouts SET refused_since = app_now(), wait_reason = 'refused'")
    assert adopted(left(order.address, order.to_units))
    assert rows("SELECT status, refused_since, wait_reason FROM payouts") == [("sent", None, "")]


def test_a_payout_that_cannot_begin_rolls_its_adoption_back(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    order = approved(shop)
    departure = left(order.address, order.to_units)
    with monkeypatch.context() as patch:
        patch.setattr(payout_hooks, "begin", lambda *_: False)
        with pytest.raises(LookupError, match="changed while it was locked"):
            adopted(departure)
    assert rows("SELECT status FROM unexplained_departures") == [("unexplained",)]


def test_without_a_hot_wallet_a_transaction_of_no_sender_has_no_wallet(shop: UUID) -> None:
    del shop
    departure = left(ANN, 1, sender="", slot=None)
    assert adoption.wallet_of(departure) == HOT
    execute("DELETE FROM treasury_addresses")
    with pytest.raises(LookupError, match="no hot wallet yet"):
        adoption.wallet_of(departure)


def outputs(txid: str, *parts: Part, **columns: Any) -> UnexplainedRow:
    """Note an unexplained transfer of USDT with these outputs."""
    new = a_departure(
        txid, outputs=[part.to_json() for part in parts], currency="USDT", contract=CONTRACT, decimals=6, **columns
    )
    with transaction():
        assert unexplained.note(new)
    noted = unexplained.find("ethereum", txid)
    assert noted is not None
    return noted


def asked(departure: UnexplainedRow) -> list[UUID | None]:
    with transaction():
        return [None if order is None else order.id for order in adoption.asked_by(CATALOGUE, departure)]


def test_a_payout_that_an_operator_named_belongs_to_its_output_alone(shop: UUID) -> None:
    order = approved(shop)
    paid = Part(order.address, order.to_units // 10**12)
    first = outputs("0xone", paid, paid)
    assert asked(first) == [order.id, None]
    named = unexplained.name_payout(first, 1, order.id)
    assert asked(named) == [None, order.id]
    assert asked(outputs("0xtwo", paid, slot=4)) == [None]


def test_an_output_of_another_call_asks_for_no_payout_by_itself(shop: UUID) -> None:
    order = approved(shop)
    mixed = outputs("0xmixed", Part(order.address, order.to_units // 10**12), is_transfer=False, spends=[["0xcoin", 0]])
    assert asked(mixed) == [None]


def test_an_operator_settles_no_departure_whose_claim_a_spend_has(shop: UUID) -> None:
    """That spend may yet be included instead, so that its order would be paid by nothing."""
    order, _ = signed(shop)
    execute("UPDATE unexplained_departures SET outputs = jsonb_set(outputs, '{0,recipient}', '\"0xother\"')")
    with pytest.raises(RecoveryError, match="claims what 0xlost has"):
        adopt(shop, "another")
    with pytest.raises(RecoveryError, match="claims what 0xlost has"):
        writeoffs.write_off(CATALOGUE, "ethereum", "USDT", order.to_units, reason="lost", by="operator")


@pytest.mark.parametrize(
    ("change", "back"), [("status = 'pending'", "status = 'approved'"), ("hold_reference = ''", "hold_reference = %s")]
)
def test_a_named_payout_pays_only_while_it_is_approved_and_held(shop: UUID, change: str, back: str) -> None:
    order = approved(shop)
    named = unexplained.name_payout(outputs("0xone", Part(order.address, 1)), 0, order.id)
    assert asked(named) == [order.id]
    execute(f"UPDATE payouts SET {change}")
    assert asked(named) == [None]
    execute(f"UPDATE payouts SET {back}", (order.hold_reference,) if "%s" in back else ())
    assert asked(named) == [order.id]


@pytest.mark.parametrize(
    ("places", "columns", "purpose"),
    [
        ((0, 1), {}, "gas"),
        ((0,), {}, "gas"),
        # Another's address among them, the hot wallet's own, a token, or a deposit address that pays.
        ((0, 2), {}, None),
        ((0, 3), {}, None),
        ((0, 1), {"currency": "USDT", "contract": CONTRACT, "decimals": 6}, None),
        ((0, 1), {"key_ordinal": 5}, None),
    ],
)
def test_coin_for_several_addresses_of_the_pool_is_gas(
    shop: UUID, places: tuple[int, ...], columns: dict[str, Any], purpose: str | None
) -> None:
    del shop
    people = ["0xpool0", "0xpool1", "0xstranger", HOT]
    for ordinal, address in enumerate(people[:2], start=900):
        execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', %s, %s)", (ordinal, address))
    parts = [Part(people[place], 5).to_json() for place in places]
    with transaction():
        assert unexplained.note(a_departure(**{"sender": HOT, "outputs": parts} | columns))
    noted = unexplained.find("ethereum", "0xlost")
    assert noted is not None
    assert adopted(noted) == (purpose is not None)
    assert column("SELECT purpose FROM spends") == ([] if purpose is None else [purpose])
