"""Concurrent checkouts keep the cap, and no buyer checks out a disabled link."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.invoices.calls import select_method
from actors.payment_links.checkouts import _check_out_together, check_out_link
from core.errors import (
    GatewayBusy,
    InvoiceAddressFailed,
    PaylinkAmountRequired,
    PaylinkDisabled,
    PaylinkNotFound,
    PayMethodNotAccepted,
    TooManyRequestsError,
)
from core.ids import uuid7
from core.payment_links.schemas import CheckOut
from models.db.base import close, column, execute, rows, transaction, value
from models.invoices.endings import end_unpaid
from models.payment_links import rows as payment_links
from models.payment_links.checkouts import make_room
from models.queue import calls
from models.queue.calls import AbandonedError, CallInfo, ReplayedError
from tests.actors.asking import ask
from tests.actors.payment_links.world import (
    IN_USDT,
    buyers_call,
    fill,
    free_addresses,
    link,
    open_gateway,
    sold,
    switch,
)
from tests.models.builders import CATALOGUE, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits

pytestmark = pytest.mark.usefixtures("sound")


@pytest.fixture(autouse=True)
def _gateway(database: str) -> None:
    fill(database)


def order(link_id: UUID, **fields: Any) -> dict[str, Any]:
    return {"link_id": str(link_id)} | fields


def check_out(link_id: UUID, call: CallInfo | None = None, **fields: Any) -> Any:
    return ask(check_out_link, call or buyers_call(), order(link_id, **fields))


def together(*asked: tuple[CallInfo, dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Run calls as the queue does; return the answers, None for those to be run alone."""
    replies = _check_out_together([(call, msgspec.convert(body, CheckOut)) for call, body in asked])
    return [None if reply is None else msgspec.json.decode(reply.body) for reply in replies]


def test_several_checkouts_by_one_statement_equal_single_ones(shop: UUID) -> None:
    first, other = link(shop), link(merchant(), amount_mode="open")
    asked = [order(first, **IN_USDT), order(first), order(other, amount="7.5", **IN_USDT), order(other, amount="1")]
    mine = [buyers_call() for _ in asked]

    made = together(*zip(mine, asked, strict=True))

    alone = [check_out(UUID(one["link_id"]), **{k: v for k, v in one.items() if k != "link_id"}) for one in asked]
    assert [answer and answer.keys() for answer in made] == [answer.keys() for answer in alone]
    assert [answer and answer["amount"] for answer in made] == ["10.00", "10.00", "7.50", "1.00"]
    assert "accepted" in alone[1]
    assert (sold(first), sold(other)) == (4, 4)
    # A repeated call gets the first answer.
    with pytest.raises(ReplayedError) as again:
        check_out(first, mine[0], **IN_USDT)
    assert msgspec.json.decode(again.value.response or "") == made[0]
    assert sold(first) == 4


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, {"currency": "DOGE"}),
        ({"amount_mode": "open"}, {}),
        ({"amount_mode": "open"}, {"amount": "0.01", **IN_USDT}),
        ({"pinned_currency": "USDT", "pinned_network": "bsc"}, {"currency": "ETH"}),
    ],
)
def test_a_refused_checkout_is_left_to_run_alone(shop: UUID, fields: dict[str, str], asked: dict[str, str]) -> None:
    good, bad = link(shop), link(shop, **fields)

    made = together((buyers_call(), order(good)), (buyers_call(), order(bad, **asked)), (buyers_call(), order(uuid7())))

    assert [answer is None for answer in made] == [False, True, True]
    assert sold(bad) == 0


def test_a_disabled_or_ended_link_is_refused_even_if_cached(shop: UUID) -> None:
    off, over = link(shop), link(shop, expires_in=60)
    for one in (off, over):
        check_out(one)
    switch(shop, off, active=False)
    execute("UPDATE payment_links SET expires_at = app_now() WHERE id = %s", (over,))

    assert together((buyers_call(), order(off, **IN_USDT)), (buyers_call(), order(over))) == [None, None]
    for one in (off, over):
        with pytest.raises(PaylinkNotFound):
            check_out(one, **IN_USDT)
        assert sold(one) == 1
    assert free_addresses() == 3
    with pytest.raises(PaylinkNotFound):
        check_out(uuid7())


def test_a_gathering_sells_up_to_the_cap(shop: UUID, database: str) -> None:
    open_gateway(database, PAYMENT_LINK_UNPAID_MAX="3")
    crowded, other = link(shop), link(shop)
    check_out(crowded)
    asked = [order(one, **IN_USDT) for one in (crowded, other, crowded, crowded, other)]

    made = together(*[(buyers_call(), one) for one in asked])

    assert [answer is None for answer in made] == [False, False, False, True, False]
    assert free_addresses() == 1
    with pytest.raises(TooManyRequestsError) as full:
        check_out(crowded)
    assert full.value.retry_after_s == 60


@pytest.mark.parametrize(("status", "waits"), [("select", True), ("check", True), ("paid", False), ("expired", False)])
def test_the_cap_counts_payments_that_wait_for_their_buyers(
    shop: UUID, database: str, status: str, *, waits: bool
) -> None:
    open_gateway(database, PAYMENT_LINK_UNPAID_MAX="1")
    one = link(shop)
    check_out(one)
    execute("UPDATE invoices SET status = %s WHERE link_id = %s", (status, one))

    assert (together((buyers_call(), order(one))) == [None]) is waits
    execute("UPDATE invoices SET status = 'select' WHERE link_id = %s", (one,))


# A full link ----------------------------------------------------------------------------------------------------


def crowd(shop: UUID, database: str, *sources: str) -> UUID:
    """Return a link that these sources filled, in their order, each payment a second older than the next."""
    open_gateway(database, PAYMENT_LINK_UNPAID_MAX=str(len(sources)))
    one = link(shop)
    for source in sources:
        execute("UPDATE invoices SET created_at = created_at - interval '1 second'")
        check_out(one, source=source, **IN_USDT)
    return one


def open_ones(link_id: UUID) -> list[int]:
    """Return the waiting payments of a link by number, from 0 in order of creation."""
    values = column(
        "SELECT expires_at > app_now() FROM invoices WHERE link_id = %s ORDER BY created_at, id", (link_id,)
    )
    return [number for number, is_open in enumerate(values) if is_open]


def is_full(link_id: UUID, source: str) -> bool:
    try:
        check_out(link_id, source=source, **IN_USDT)
    except TooManyRequestsError as full:
        return full.retry_after_s == 60
    return False


def test_a_few_sources_cannot_keep_a_link_full(shop: UUID, database: str) -> None:
    one = crowd(shop, database, "buyer", "a", "a", "a", "b", "b")
    assert not is_full(one, "new")
    assert open_ones(one) == [0, 2, 3, 4, 5, 6], "the oldest payment of the largest source gives way"
    assert not is_full(one, "newer")
    assert open_ones(one) == [0, 3, 4, 5, 6, 7]
    assert is_full(one, "new"), "it would have as many as the largest"
    assert not is_full(one, "newest")
    assert open_ones(one) == [0, 3, 5, 6, 7, 8]
    assert is_full(one, "another"), "no source has more than one"
    assert together((buyers_call(), order(one))) == [None]


def test_many_sources_can_keep_a_link_full_for_a_quarter_of_an_hour(shop: UUID, database: str) -> None:
    one = crowd(shop, database, "a", "b", "c")
    execute("UPDATE invoices SET created_at = created_at - interval '890 seconds'")
    assert is_full(one, "new")
    execute("UPDATE invoices SET created_at = created_at - interval '10 seconds'")
    assert not is_full(one, "new")
    assert open_ones(one) == [1, 2, 3]
    assert not is_full(one, "new"), "its own are not old enough, and others have as many"
    assert open_ones(one) == [2, 3, 4]
    assert is_full(one, "new"), "it has more than the one whose payment is old enough"


def test_payments_of_an_earlier_version_count_as_one_source(shop: UUID, database: str) -> None:
    one = crowd(shop, database, "a", "b", "c")
    execute("UPDATE invoices SET link_source = NULL")
    assert not is_full(one, "new")
    assert open_ones(one) == [1, 2, 3]


def oldest() -> UUID:
    return UUID(str(column("SELECT id FROM invoices ORDER BY created_at LIMIT 1")[0]))


def sighted(currency: str, units: str, stray_reason: str) -> str:
    """Return a statement that sights a transaction in no block; its arguments are SQL of an invoice i."""
    return (
        "INSERT INTO sightings (network, txid, ordinal, currency, units, address, owner_kind, owner_id, merchant_id,"
        f" stray_reason, spends, is_soon) SELECT network, id::text, '0', {currency}, {units}, address, 'invoice', id,"
        f" merchant_id, {stray_reason}, '{{{{}}}}', false FROM (SELECT *, pay_currency AS currency,"
        " payer_units AS units FROM invoices) i WHERE id = '{0}'"
    )


@pytest.mark.parametrize(
    "touch",
    [
        "UPDATE invoices SET detected_units = payer_units / 10 WHERE id = '{0}'",
        "UPDATE invoices SET confirmed_units = payer_units / 10 WHERE id = '{0}'",
        sighted("i.currency", "i.units / 10", "NULL"),
        sighted("'USDC'", "1", "'asset'"),
    ],
)
def test_a_payment_with_money_or_a_sighting_does_not_give_way(shop: UUID, database: str, touch: str) -> None:
    one = crowd(shop, database, "a", "a")
    execute(touch.format(oldest()))
    assert not is_full(one, "new")
    assert open_ones(one) == [0, 2]
    execute("DELETE FROM sightings")
    execute("UPDATE invoices SET detected_units = 0, confirmed_units = 0")


@pytest.mark.parametrize(
    "touch",
    [
        "UPDATE invoices SET detected_units = payer_units / 10 - 1 WHERE id = '{0}'",
        "UPDATE invoices SET confirmed_units = payer_units / 10 - 1 WHERE id = '{0}'",
        "UPDATE invoices SET is_growth_due = true WHERE id = '{0}'",
        sighted("i.currency", "i.units / 10 - 1", "NULL"),
        sighted("'USDC'", "1", "'dust'"),
    ],
)
def test_a_payment_with_little_money_gives_way_after_those_without(shop: UUID, database: str, touch: str) -> None:
    one = crowd(shop, database, "a", "a", "a")
    execute(touch.format(oldest()))
    assert not is_full(one, "new")
    assert open_ones(one) == [0, 2, 3], "the second is untouched"
    execute(touch.format(column("SELECT id FROM invoices ORDER BY created_at OFFSET 2 LIMIT 1")[0]))
    execute("UPDATE invoices SET created_at = created_at - interval '1 hour'")
    assert not is_full(one, "newer")
    assert open_ones(one) == [0, 2, 4], "the one without money is of a source that has less"
    assert not is_full(one, "newest")
    assert open_ones(one) == [2, 4, 5]
    execute("DELETE FROM sightings")
    execute("UPDATE invoices SET detected_units = 0, confirmed_units = 0, is_growth_due = NULL")


def test_money_that_arrives_while_room_is_made_keeps_its_payment(
    shop: UUID, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = crowd(shop, database, "a", "a", "a")

    def late(sql: str, asked: dict[str, Any]) -> list[UUID]:
        values: list[UUID] = column(sql, asked)
        execute("UPDATE invoices SET detected_units = payer_units WHERE id = ANY(%s::uuid[])", (values,))
        return values

    monkeypatch.setattr("models.payment_links.checkouts.column", late)
    assert is_full(one, "new")
    assert open_ones(one) == [0, 1, 2]
    execute("UPDATE invoices SET detected_units = 0")


@pytest.mark.parametrize("end", ["status = 'expired', is_final = true", "expires_at = created_at"])
def test_payment_that_ends_while_room_is_made_keeps_its_expiry(
    shop: UUID, database: str, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    one = crowd(shop, database, "a", "a", "a")

    def ended(sql: str, asked: dict[str, Any]) -> list[UUID]:
        values: list[UUID] = column(sql, asked)
        execute(f"UPDATE invoices SET {end} WHERE id = ANY(%s::uuid[])", (values,))
        return values

    monkeypatch.setattr("models.payment_links.checkouts.column", ended)
    assert make_room(one, source="new", unpaid_max=3) is None


def test_a_payment_that_gave_way_ends_like_any_unpaid_one(shop: UUID, database: str) -> None:
    one = crowd(shop, database, "a", "a", "a")
    assert not is_full(one, "new")
    assert rows("SELECT status, count(*) FROM invoices GROUP BY status") == [("check", 4)], (
        "the scan has not passed its end"
    )
    execute("UPDATE chain_cursors SET (block_time, moved_at) = (app_now() + interval '1 second', app_now())")
    assert end_unpaid(CATALOGUE, limit=10) == 1
    assert column("SELECT status FROM invoices ORDER BY created_at, id") == ["expired", "check", "check", "check"]


def test_concurrent_checkouts_that_make_room_sell_up_to_the_cap(shop: UUID, database: str) -> None:
    one = crowd(shop, database, *["a"] * 12)

    outcomes = at_once(8, lambda number: is_full(one, f"new-{number}"))

    assert len(open_ones(one)) == 12
    assert sold(one) == 12 + outcomes.count(False)


def test_buyers_addresses_are_stored_as_digests_for_their_link(shop: UUID) -> None:
    first, second = link(shop), link(shop)
    for one, source in ((first, "192.0.2.7"), (first, "192.0.2.7"), (second, "192.0.2.7"), (first, "192.0.2.8")):
        check_out(one, source=source)
    check_out(first)
    same, again, other_link, other, unknown = column("SELECT link_source FROM invoices ORDER BY created_at, id")
    assert (same, unknown) == (again, "")
    assert len({same, other_link, other}) == 3
    assert all(len(each) == 32 for each in (same, other_link, other))


def test_a_hundred_concurrent_checkouts_sell_up_to_the_cap(shop: UUID, database: str) -> None:
    open_gateway(database, PAYMENT_LINK_UNPAID_MAX="37")
    one = link(shop)

    def work(number: int) -> list[Any]:
        asked = [(buyers_call(), order(one)) for _ in range(10)]
        return together(*asked) if number % 2 else [_outcome(one) for _ in asked]

    answers = [answer for several in at_once(10, work) for answer in several]  # type: ignore[union-attr]

    assert sold(one) == 37
    assert sum(isinstance(answer, dict) for answer in answers) == 37
    assert {type(answer) for answer in answers} <= {dict, type(None), TooManyRequestsError}


def _outcome(link_id: UUID) -> Any:
    try:
        return check_out(link_id)
    except TooManyRequestsError as full:
        return full


@pytest.mark.parametrize(
    "ends",
    [
        "UPDATE payment_links SET is_active = false",
        "UPDATE payment_links SET expires_at = app_now()",
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_checkout_waits_for_the_end_of_its_link(shop: UUID, ends: str, *, alone: bool) -> None:
    one = link(shop)
    check_out(one)
    answers: list[Any] = []

    def buy() -> None:
        try:
            answers.append(check_out(one) if alone else together((buyers_call(), order(one)))[0])
        except PaylinkNotFound as refusal:
            answers.append(refusal)
        finally:
            close()

    with transaction():
        execute(ends)
        buyer = threading.Thread(target=buy)
        buyer.start()
        wait_until_somebody_waits()
    buyer.join()

    assert isinstance(answers[0], PaylinkNotFound) if alone else answers == [None]
    assert sold(one) == 1


def test_links_are_locked_in_the_order_of_their_ids(shop: UUID) -> None:
    first, second = link(shop), link(shop)
    # Moved behind the second.
    execute("UPDATE payment_links SET title = 'moved' WHERE id = %s", (first,))
    made: list[Any] = []

    def buy() -> None:
        # As the planner reads a small table: from its beginning.
        execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
        made.extend(together((buyers_call(), order(second)), (buyers_call(), order(first))))
        close()

    lock = "SELECT 1 FROM payment_links WHERE id = %s FOR UPDATE NOWAIT"
    with transaction():
        assert value(lock, (first,))
        buyer = threading.Thread(target=buy)
        buyer.start()
        wait_until_somebody_waits()
        assert value(lock, (second,)), "the session that waits for the first holds the second"
    buyer.join()

    assert None not in made


def test_ending_a_link_waits_for_its_checkout(shop: UUID) -> None:
    one = link(shop)

    def toggle() -> None:
        with transaction():
            payment_links.switch(shop, one, is_active=False)
        close()

    toggler = threading.Thread(target=toggle)
    with transaction():
        check_out_alone = together((buyers_call(), order(one)))
        toggler.start()
        wait_until_somebody_waits()
    toggler.join()

    assert check_out_alone != [None]
    assert not payment_links.is_open(one)


@pytest.mark.parametrize("asked", [{}, {"currency": "DOGE"}])
def test_an_abandoned_call_takes_no_effect_and_gets_no_answer(shop: UUID, asked: dict[str, str]) -> None:
    one, call = link(shop), buyers_call()
    assert calls.abandon(call) is None

    assert together((call, order(one, **asked))) == [None]
    with pytest.raises(AbandonedError):
        check_out(one, call, **asked)
    assert sold(one) == 0


def test_a_redelivered_call_gets_its_answer_even_if_it_would_be_refused_now(shop: UUID) -> None:
    one, call = link(shop), buyers_call()
    first = check_out(one, call, **IN_USDT)
    switch(shop, one, active=False)
    for _ in range(2):
        with pytest.raises(ReplayedError) as again:
            check_out(one, call, **IN_USDT)
        assert msgspec.json.decode(again.value.response or "") == first
        execute("DELETE FROM rates")
        context.context().market.forget()


def test_a_payment_is_created_with_terms_that_changed_meanwhile(shop: UUID) -> None:
    one = link(shop)
    check_out(one, **IN_USDT)
    execute("UPDATE merchants SET own_fee_ppm = 77, terms_version = terms_version + 1 WHERE id = %s", (shop,))

    assert together((buyers_call(), order(one, **IN_USDT))) == [None]
    check_out(one, **IN_USDT)

    assert column("SELECT fee_ppm FROM invoices ORDER BY created_at, id")[1:] == [77]
    assert free_addresses() == 2


def test_terms_that_changed_meanwhile_refuse_or_allow(shop: UUID) -> None:
    one = link(shop)
    check_out(one, **IN_USDT)
    accept = "INSERT INTO accepted_methods (merchant_id, currency, network) VALUES (%s, 'ETH', 'ethereum')"
    for change in (accept, "DELETE FROM accepted_methods WHERE merchant_id = %s"):
        execute(change, (shop,))
        execute("UPDATE merchants SET terms_version = terms_version + 1 WHERE id = %s", (shop,))
        if change == accept:
            with pytest.raises(PayMethodNotAccepted):
                check_out(one, **IN_USDT)
    assert check_out(one, **IN_USDT)["payer_currency"] == "USDT"


def test_terms_that_keep_changing_make_the_call_busy(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    one = link(shop)
    stale = context.context().terms.refresh(shop)
    execute("UPDATE merchants SET terms_version = terms_version + 1 WHERE id = %s", (shop,))
    monkeypatch.setattr(type(context.context().terms), "refresh", lambda *_: stale)

    with pytest.raises(GatewayBusy):
        check_out(one, **IN_USDT)
    assert sold(one) == 0


# The pool -----------------------------------------------------------------------------------------------------------


def test_the_last_addresses_are_reserved_for_signed_calls(shop: UUID, database: str) -> None:
    """A payment whose method is chosen on its page counts as the link's, too."""
    one = link(shop)
    agnostic = check_out(one)
    signed = value("SELECT gen_random_uuid()::text")
    execute(
        "INSERT INTO invoices SELECT n.* FROM invoices i,"
        " jsonb_populate_record(i, jsonb_build_object('id', %s::text, 'link_id', NULL)) AS n",
        (signed,),
    )
    open_gateway(database, POOL_LOW="400")

    for ask_for in (
        lambda: check_out(one, **IN_USDT),
        lambda: ask(select_method, buyers_call(), {"invoice_id": agnostic["uuid"], **IN_USDT}),
    ):
        with pytest.raises(InvoiceAddressFailed):
            ask_for()
    assert together((buyers_call(), order(one, **IN_USDT)), (buyers_call(), order(one)))[0] is None
    assert ask(select_method, buyers_call(), {"invoice_id": signed, **IN_USDT})["payment_status"] == "check"
    open_gateway(database)
    assert ask(select_method, buyers_call(), {"invoice_id": agnostic["uuid"], **IN_USDT})["address"]


def test_with_links_disabled_no_checkout_is_made(shop: UUID, database: str) -> None:
    one = link(shop)
    open_gateway(database, PAYMENT_LINKS_ENABLED="0")

    assert together((buyers_call(), order(one))) == [None]
    with pytest.raises(PaylinkDisabled):
        check_out(one)
    open_gateway(database)
    with pytest.raises(PaylinkAmountRequired):
        check_out(link(shop, amount_mode="open"))
