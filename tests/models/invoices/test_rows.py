"""Invoices are created once, however often and concurrently requested, and are read as answered."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from core.ids import uuid7
from core.rates.pricing import Quote
from models.db.base import execute, rows, transaction, value
from models.invoices import creations, deadlines, views
from models.invoices import rows as invoices
from models.invoices.creations import Creation
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.queue import calls
from tests.models.builders import CATALOGUE, USDT, Chain, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import (
    FIXED_FEE,
    PRICE,
    address,
    agnostic_invoice,
    create,
    invoice,
    new_invoice,
    settled,
)
from tests.models.queue.builders import info

pytestmark = pytest.mark.usefixtures("sound")

PAY_URL: Final = "https://pay.example"
WRITTEN: Final = ("invoices", "calls", "quotes", "address_owners")


@pytest.fixture(autouse=True, params=["alone", "together"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create invoices one by one or by the statement for several, which leaves out all but clearly new ones."""
    alone = creations.create

    def together(new: Creation) -> tuple[str, str | None]:
        made = creations.create_together([new])
        return ("created", made[new.call_id]) if made else alone(new)

    if request.param == "together":
        monkeypatch.setattr(creations, "create", together)


def counted() -> dict[str, int]:
    return {table: value(f"SELECT count(*) FROM {table}") for table in WRITTEN}


def stored(new: InvoiceRow) -> InvoiceRow:
    return invoices.reread(new.id)


def rendered(new: InvoiceRow) -> str:
    """Return the answer without its times, as the actor hands it to the statement."""
    return json.dumps(views.payment_core(CATALOGUE, Shown(new), pay_url=PAY_URL, public=False))[:-1]


# Creation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({}, id="plain"),
        pytest.param({"order_id": 'a"b\\c\n\u202e', "additional_data": '{"x": "ü"}'}, id="odd texts"),
        pytest.param({"payer_units": 10**36 + 1, "price_units": 10**30}, id="more than 64 bits"),
    ],
)
def test_a_created_invoice_reads_as_it_was_answered(shop: UUID, columns: dict[str, Any]) -> None:
    new = new_invoice(shop, **columns)

    outcome, answer = create(new, response=rendered(new))

    assert (outcome, answer is None) == ("created", False)
    assert json.loads(answer or "") == views.payment(CATALOGUE, Shown(stored(new)), pay_url=PAY_URL, public=False)


def test_an_agnostic_invoice_has_no_address_or_quote(shop: UUID) -> None:
    new = agnostic_invoice(shop)

    outcome, answer = create(new, response=rendered(new), quote_s=None)

    assert outcome == "created"
    assert json.loads(answer or "") == views.payment(CATALOGUE, Shown(stored(new)), pay_url=PAY_URL, public=False)
    assert counted() == {"invoices": 1, "calls": 1, "quotes": 0, "address_owners": 0}
    assert stored(new).rate_expires_at == stored(new).expires_at


def test_the_planned_fields_are_stored(shop: UUID) -> None:
    new = new_invoice(shop, order_id="o-1", url_callback="https://shop.example/cb", accuracy_ppm=7, theme="dark")
    create(new)
    row = stored(new)

    assert {name: getattr(row, name) for name in vars(new)} == vars(new)
    assert rows("SELECT generation, payer_units, fee_fixed_units, valid_from, rate_expires_at FROM quotes") == [
        (1, PRICE, FIXED_FEE, row.created_at, row.rate_expires_at)
    ]
    assert rows("SELECT family, ordinal, owner_kind, owner_id FROM address_owners") == [
        ("evm", new.address_ordinal, "invoice", new.id)
    ]


@pytest.mark.parametrize(
    ("lifetime_s", "quote_s", "rate_s"), [(3600, 900, 900), (300, 900, 300), (43_200, None, 43_200)]
)
def test_expiry_and_rate_expiry_are_counted_from_the_creations_second(
    shop: UUID, lifetime_s: int, quote_s: int | None, rate_s: int
) -> None:
    new = new_invoice(shop)
    create(new, lifetime_s=lifetime_s, quote_s=quote_s)
    row = stored(new)

    whole = row.created_at.replace(microsecond=0)
    assert row.created_at == row.updated_at
    assert row.created_at.microsecond % 1000 == 0
    assert abs(row.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert row.expires_at == whole + timedelta(seconds=lifetime_s)
    assert row.rate_expires_at == whole + timedelta(seconds=rate_s)


def test_every_call_without_key_and_order_id_creates(shop: UUID) -> None:
    outcomes = [create(new_invoice(shop))[0] for _ in range(3)]

    assert outcomes == ["created"] * 3
    assert counted() == dict.fromkeys(WRITTEN, 3)


# Repetition -------------------------------------------------------------------------------------------------


def test_a_message_delivered_twice_gets_its_answer_again(shop: UUID) -> None:
    call_id = uuid7()
    first, answer = create(new_invoice(shop), call_id=call_id)

    assert create(new_invoice(shop), call_id=call_id) == ("replayed", answer)
    assert first == "created"
    assert counted() == dict.fromkeys(WRITTEN, 1)


def test_a_repeated_message_with_an_order_id_gets_its_own_answer(shop: UUID) -> None:
    call_id = uuid7()
    _, answer = create(new_invoice(shop, order_id="o-1"), call_id=call_id)

    assert create(new_invoice(shop, order_id="o-1"), call_id=call_id) == ("replayed", answer)


def test_a_key_returns_the_first_answer_again(shop: UUID) -> None:
    _, answer = create(new_invoice(shop), idem_key="k")

    assert create(new_invoice(shop), idem_key="k") == ("replayed", answer)
    assert counted() == dict.fromkeys(WRITTEN, 1)


def test_a_key_returns_the_first_answer_after_the_invoice_ended(shop: UUID) -> None:
    new = new_invoice(shop, order_id="o-1")
    _, answer = create(new, idem_key="k")
    chain = Chain()
    chain.pass_by(stored(new).expires_at)
    settled(stored(new))

    assert create(new_invoice(shop, order_id="o-1"), idem_key="k") == ("replayed", answer)


def test_a_key_with_another_request_is_refused(shop: UUID) -> None:
    create(new_invoice(shop), idem_key="k", fingerprint=b"one")

    assert create(new_invoice(shop), idem_key="k", fingerprint=b"two")[0] == "key_reused"
    assert counted() == dict.fromkeys(WRITTEN, 1)


def test_keys_of_two_merchants_are_independent(shop: UUID) -> None:
    other = merchant()

    assert create(new_invoice(shop), idem_key="k")[0] == "created"
    assert create(new_invoice(other), idem_key="k")[0] == "created"


def test_a_hundred_concurrent_calls_with_one_key_make_one_invoice(shop: UUID) -> None:
    news = [new_invoice(shop) for _ in range(100)]

    outcomes = at_once(100, lambda number: create(news[number], idem_key="k"))

    kinds = Counter(outcome[0] for outcome in outcomes if isinstance(outcome, tuple))
    answers = {outcome[1] for outcome in outcomes if isinstance(outcome, tuple) and outcome[0] != "in_progress"}
    assert kinds["created"] == 1
    assert kinds.total() == 100
    assert set(kinds) <= {"created", "replayed", "in_progress"}
    assert len(answers) == 1
    assert counted() == dict.fromkeys(WRITTEN, 1)


def test_a_key_in_use_is_refused_without_waiting(shop: UUID) -> None:
    call = info(shop, "k")
    with transaction():
        calls.begin(call)  # another actor's call holds the very same lock
        assert at_once(1, lambda _: create(new_invoice(shop), idem_key="k")) == [("in_progress", None)]


def test_a_call_abandoned_by_its_caller_never_takes_effect(shop: UUID) -> None:
    call = info(shop, "k")
    assert calls.abandon(call) is None

    outcome, answer = create(new_invoice(shop), call_id=call.call_id, idem_key="k")

    assert (outcome, answer) == ("abandoned", None)
    assert counted() == {"invoices": 0, "calls": 1, "quotes": 0, "address_owners": 0}
    assert create(new_invoice(shop), idem_key="k")[0] == "created"


def test_a_call_that_took_effect_cannot_be_abandoned(shop: UUID) -> None:
    call = info(shop)
    _, answer = create(new_invoice(shop), call_id=call.call_id)

    assert calls.abandon(call) == answer


# Orders -----------------------------------------------------------------------------------------------------


def test_an_order_id_with_a_live_invoice_returns_it(shop: UUID) -> None:
    first = new_invoice(shop, order_id="o-1")
    create(first)

    assert create(new_invoice(shop, order_id="o-1")) == ("existing", str(first.id))
    assert counted() == dict.fromkeys(WRITTEN, 1)


def test_order_ids_of_two_merchants_are_independent(shop: UUID) -> None:
    create(new_invoice(shop, order_id="o-1"))

    assert create(new_invoice(merchant(), order_id="o-1"))[0] == "created"


@pytest.mark.parametrize(
    ("status", "is_final", "expected"),
    [
        ("select", False, "existing"),
        ("check", False, "existing"),
        ("wrong_amount", False, "existing"),
        ("wrong_amount", True, "created"),
        ("paid", True, "created"),
        ("paid_over", True, "created"),
        ("expired", True, "created"),
    ],
)
def test_an_order_id_returns_live_invoices_only(shop: UUID, status: str, is_final: bool, expected: str) -> None:  # noqa: FBT001
    first = agnostic_invoice(shop, order_id="o-1") if status == "select" else new_invoice(shop, order_id="o-1")
    create(first)
    execute("UPDATE invoices SET status = %s, is_final = %s", (status, is_final))

    assert create(new_invoice(shop, order_id="o-1"))[0] == expected
    assert invoices.is_live(stored(first)) == (expected == "existing")


def test_fifty_concurrent_calls_with_one_order_id_make_one_invoice(shop: UUID) -> None:
    news = [new_invoice(shop, order_id="o-1") for _ in range(50)]

    outcomes = at_once(50, lambda number: create(news[number]))

    kinds = Counter(outcome[0] if isinstance(outcome, tuple) else repr(outcome) for outcome in outcomes)
    assert kinds == {"created": 1, "existing": 49}
    assert counted() == dict.fromkeys(WRITTEN, 1)


# Refusals ---------------------------------------------------------------------------------------------------


def test_terms_changed_meanwhile_are_read_again(shop: UUID) -> None:
    execute("UPDATE merchants SET terms_version = 2 WHERE id = %s", (shop,))

    assert create(new_invoice(shop), terms_version=1, idem_key="k") == ("stale_terms", None)
    assert counted() == dict.fromkeys(WRITTEN, 0)
    assert create(new_invoice(shop), terms_version=2, idem_key="k")[0] == "created"


def test_an_unknown_merchant_has_no_terms() -> None:
    assert create(new_invoice(uuid7())) == ("stale_terms", None)
    assert counted() == dict.fromkeys(WRITTEN, 0)


def test_an_address_is_assigned_once(shop: UUID) -> None:
    first = new_invoice(shop)
    create(first)

    with pytest.raises(Exception, match="address_owners_pkey"):
        create(new_invoice(shop, address_ordinal=first.address_ordinal, address=first.address))
    assert counted() == dict.fromkeys(WRITTEN, 1)


# Reading ----------------------------------------------------------------------------------------------------


def test_an_invoice_is_found_by_its_merchant_alone(shop: UUID) -> None:
    mine = invoice(shop, order_id="o-1")
    other = merchant()

    assert invoices.find(shop, invoice_id=mine.id) == mine
    assert invoices.find(other, invoice_id=mine.id) is None
    assert invoices.find_by_order(shop, "o-1") == mine
    assert invoices.find_by_order(other, "o-1") is None
    assert invoices.find_public(mine.id) == mine
    assert invoices.find_public(uuid7()) is None


def test_an_order_id_finds_its_live_invoice_or_its_newest(shop: UUID) -> None:
    older, newer = invoice(shop, order_id="o-1"), None
    execute("UPDATE invoices SET status = 'expired', is_final = true")
    newer = invoice(shop, order_id="o-1")

    assert [row.id for row in (invoices.find_by_order(shop, "o-1"),) if row] == [newer.id]
    execute("UPDATE invoices SET status = 'paid', is_final = true WHERE id = %s", (newer.id,))
    assert (invoices.find_by_order(shop, "o-1") or older).id == newer.id
    assert invoices.find_live_by_order(shop, "o-1") is None

    execute("UPDATE invoices SET status = 'wrong_amount', is_final = false WHERE id = %s", (older.id,))
    assert (invoices.find_by_order(shop, "o-1") or newer).id == older.id
    assert (invoices.find_live_by_order(shop, "o-1") or newer).id == older.id
    with transaction():
        assert (invoices.lock_last_by_order(shop, "o-1") or newer).id == older.id


def test_a_creation_waits_for_the_lock_of_its_order_id(shop: UUID) -> None:
    with transaction():
        assert invoices.lock_last_by_order(shop, "o-1") is None
        outcome = at_once(1, lambda _: create(new_invoice(shop, order_id="o-1")))

    assert "lock timeout" in str(outcome[0])
    assert counted() == dict.fromkeys(WRITTEN, 0)


@pytest.mark.parametrize(("depth", "shown"), [(0, 0), (1, 1), (2, 2), (5, 2)])
def test_confirmations_are_counted_by_the_scan_and_capped(shop: UUID, depth: int, shown: int) -> None:
    mine = invoice(shop)
    chain = Chain()
    execute("UPDATE invoices SET deposit_height = %s", (chain.height + 1,))
    chain.mine(depth)

    assert invoices.reread(mine.id).confirmations == shown


def test_an_invoice_without_a_deposit_has_no_confirmations(shop: UUID) -> None:
    mine = invoice(shop)
    assert mine.confirmations == 0
    Chain()
    assert invoices.reread(mine.id).confirmations == 0


# Choice and revival -----------------------------------------------------------------------------------------


def choose(mine: InvoiceRow, *, quote_s: int | None = 900) -> str:
    ordinal, pooled = address()
    columns = {
        "pay_currency": "USDT", "network": "ethereum", "payer_units": PRICE, "fee_fixed_units": FIXED_FEE,
        "discount_ppm": 5, "generation": 1, "required_confirmations": 2,
    }  # fmt: skip
    with transaction():
        invoices.choose(mine, columns, address=pooled, ordinal=ordinal, family="evm", quote_s=quote_s)
    return pooled


def test_a_choice_sets_coin_address_and_quote_and_keeps_the_expiry(shop: UUID) -> None:
    new = agnostic_invoice(shop)
    create(new, quote_s=None, lifetime_s=600)
    before = stored(new)

    pooled = choose(before)

    after = stored(new)
    assert (after.status, after.address, after.payer_units, after.generation) == ("check", pooled, PRICE, 1)
    assert (after.discount_ppm, after.required_confirmations, after.is_multi) == (5, 2, True)
    assert after.expires_at == after.rate_expires_at == before.expires_at
    assert rows("SELECT generation, payer_units, rate_expires_at FROM quotes") == [(1, PRICE, after.rate_expires_at)]


@pytest.mark.parametrize(("quote_s", "rate_s"), [(900, 900), (None, 3600)])
def test_a_choices_quote_is_in_force_from_the_choice_on(shop: UUID, quote_s: int | None, rate_s: int) -> None:
    new = agnostic_invoice(shop)
    create(new, quote_s=None)

    choose(stored(new), quote_s=quote_s)

    after = stored(new)
    assert abs(after.rate_expires_at - after.created_at - timedelta(seconds=rate_s)) < timedelta(seconds=30)


def test_an_expired_invoice_is_revived_with_a_new_expiry_and_quote(shop: UUID) -> None:
    before = invoice(shop, lifetime_s=300)
    chain = Chain()
    chain.pass_by(before.expires_at)
    assert settled(before).status == "expired"

    with transaction():
        invoices.reopen(before, lifetime_s=7200, quote_s=900)
        invoices.add_quote(before, Quote(payer_units=11 * USDT, fee_fixed_units=7, discount_ppm=0), generation=2)

    after = invoices.reread(before.id)
    assert (after.status, after.is_final, after.address, after.payer_units) == (
        "check",
        False,
        before.address,
        11 * USDT,
    )
    assert after.rate_expires_at < after.expires_at
    assert after.expires_at - after.updated_at > timedelta(seconds=7190)
    assert rows("SELECT generation, payer_units, fee_fixed_units FROM quotes ORDER BY generation") == [
        (1, PRICE, FIXED_FEE),
        (2, 11 * USDT, 7),
    ]


def test_an_agnostic_invoice_is_revived_in_select(shop: UUID) -> None:
    new = agnostic_invoice(shop)
    create(new, quote_s=None)
    execute("UPDATE invoices SET status = 'expired', is_final = true")

    with transaction():
        invoices.reopen(stored(new), lifetime_s=600, quote_s=None)

    assert (stored(new).status, stored(new).is_final) == ("select", False)
    assert stored(new).rate_expires_at == stored(new).expires_at


def test_only_expired_invoices_are_revived(shop: UUID) -> None:
    mine = invoice(shop)

    with transaction():
        invoices.reopen(mine, lifetime_s=43_200, quote_s=None)

    assert invoices.reread(mine.id) == mine


# Time -------------------------------------------------------------------------------------------------------


def test_a_due_invoice_has_expired_by_the_clock_and_by_its_networks_scan(shop: UUID) -> None:
    mine = invoice(shop, lifetime_s=300)
    chain = Chain()
    assert not invoices.is_past_expiry(mine)

    chain.mine(at=mine.expires_at)
    assert deadlines.due_for_settlement(10) == []
    chain.mine()
    assert deadlines.due_for_settlement(10) == []  # the chain's clock is ahead of the gateway's
    execute("UPDATE app_clock SET ahead = '301 seconds'")
    assert invoices.is_past_expiry(mine)
    assert deadlines.due_for_settlement(10) == []  # that block was read before our clock passed the expiry
    chain.mine()
    assert deadlines.due_for_settlement(10) == [mine.id]


def test_an_invoice_whose_network_lags_is_not_due(shop: UUID) -> None:
    invoice(shop, lifetime_s=300)
    execute("UPDATE app_clock SET ahead = '301 seconds'")
    assert deadlines.due_for_settlement(10) == []  # never scanned
    Chain("bsc")
    assert deadlines.due_for_settlement(10) == []  # another network's scan does not count


def test_an_invoice_without_a_coin_expires_by_the_clock_alone(shop: UUID) -> None:
    new = agnostic_invoice(shop)
    create(new, quote_s=None, lifetime_s=300)
    assert deadlines.due_for_settlement(10) == []
    execute("UPDATE app_clock SET ahead = '301 seconds'")

    assert deadlines.due_for_settlement(10) == [new.id]


@pytest.mark.parametrize(("stray", "is_due"), [(None, False), ("asset", False), ("dust", True)])
def test_a_pending_deposit_delays_the_expiry_unless_it_is_dust(
    shop: UUID,
    stray: str | None,
    is_due: bool,  # noqa: FBT001
) -> None:
    mine = invoice(shop, lifetime_s=300)
    chain, late = Chain(), Chain("bsc")
    late.pay(mine, USDT, stray=stray)
    chain.pass_by(mine.expires_at)
    execute("UPDATE app_clock SET ahead = '301 seconds'")

    assert deadlines.due_for_settlement(10) == ([mine.id] if is_due else [])


def test_due_invoices_come_in_bounded_pages_oldest_first(shop: UUID) -> None:
    mine = [invoice(shop, lifetime_s=lifetime_s) for lifetime_s in (900, 300, 600)]
    Chain().pass_by(mine[0].expires_at)
    execute("UPDATE app_clock SET ahead = '901 seconds'")

    assert deadlines.due_for_settlement(2) == [mine[1].id, mine[2].id]
