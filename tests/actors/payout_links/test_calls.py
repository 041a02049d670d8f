"""Creating and cancelling cheques: each takes effect once, and no stored response holds a token."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from actors import context
from core.errors import (
    DomainError,
    GatewayBusy,
    IdempotencyInProgress,
    PayoutFeeUnavailable,
    PayoutFrozen,
    PayoutlinkBadAmount,
    PayoutlinkDisabled,
    PayoutlinkDuplicateReference,
    PayoutlinkFundsMaturing,
    PayoutlinkInsufficientFunds,
    PayoutlinkNotFound,
    PayoutlinkUnknownCurrency,
    PayoutlinkUnsupportedNetwork,
)
from core.payout_links.tokens import token_hash
from models.db import base
from models.db.base import close, execute, one, repeat_on_deadlock, rows, transaction, value
from models.ledger.ledger import AVAILABLE, MATURING, Account, Transfer, lock_balances, post
from models.merchants import emails
from models.payout_links import batches as payout_link_batches
from models.payouts import freezes
from models.queue import calls
from models.queue.calls import AbandonedError, ReplayedError
from tests.actors.payout_links.world import (
    LINK,
    PAY_URL,
    ROTATED,
    cancel,
    configure,
    create,
    create_batch,
    give_up,
    info,
    replayed,
)
from tests.models.builders import USDT, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.ledger.figures import balances_of
from tests.models.payout_links.builders import rich_merchant
from tests.models.payouts.builders import FEE, charge, fund, trade

HELD = 25 * USDT + FEE


def links() -> int:
    return value("SELECT count(*) FROM payout_links")


def mature(shop: UUID, units: int) -> None:
    with transaction():
        post("mature", [Transfer(Account(shop, MATURING, "USDT"), Account(shop, AVAILABLE, "USDT"), units)])


# Creation -------------------------------------------------------------------------------------------------------


def test_a_link_is_answered_with_its_fields_token_and_page(shop: UUID) -> None:
    answer = create(
        shop, reference="w-1", title="Prize", note="Well done", email="ann@mail.example", expires_in_hours=24
    )

    assert answer | {"link_id": "", "expires_at": "", "created_at": "", "claim_token": "", "claim_url": ""} == {
        "link_id": "", "status": "funded", "currency": "USDT", "network": "ethereum", "amount": "25", "title": "Prize",
        "note": "Well done", "email": "ann@mail.example", "reference": "w-1", "expires_at": "", "created_at": "",
        "claim_token": "", "claim_url": "",
    }  # fmt: skip
    assert answer["claim_url"] == f"{PAY_URL}/claim/{answer['claim_token']}"
    assert balances_of(shop) == {"available": 100 * USDT - HELD, "payout_held": HELD}
    assert one("SELECT expires_at - created_at = interval '24 hours', created_by FROM payout_links") == (
        True,
        "pk_creator",
    )


def test_only_the_hash_of_the_token_is_stored(shop: UUID) -> None:
    token = create(shop, email="ann@mail.example")["claim_token"]

    assert [bytes(row[0]) for row in rows("SELECT token_hash FROM payout_links")] == [token_hash(token)]
    for table in ("calls", "payout_links", "emails", "webhook_deliveries", "ledger_transfers"):
        assert not [row for row in rows(f"SELECT t::text FROM {table} t") if token in row[0]], table


def test_the_fee_is_fixed_at_creation(shop: UUID) -> None:
    create(shop)

    assert one("SELECT amount_units, fee_units FROM payout_links") == (25 * USDT, FEE)


@pytest.mark.parametrize(
    ("hours", "lifetime_h"), [(None, 1), (0, 1), (-5, 1), (1, 1), (720, 720), (721, 720), (10**30, 720)]
)
def test_the_lifetime_is_clamped_to_its_bounds(shop: UUID, hours: int | None, lifetime_h: int) -> None:
    create(shop, expires_in_hours=hours)

    assert one("SELECT extract(epoch FROM expires_at - created_at)::int FROM payout_links") == (lifetime_h * 3600,)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"currency": "XYZ"}, PayoutlinkUnknownCurrency),
        ({"currency": "USD"}, PayoutlinkUnknownCurrency),
        ({"network": None}, PayoutlinkUnsupportedNetwork),
        ({"network": "litecoin"}, PayoutlinkUnsupportedNetwork),
        ({"network": "polygon"}, PayoutlinkUnsupportedNetwork),
        ({"currency": "ETH", "network": "bsc"}, PayoutlinkUnsupportedNetwork),
        ({"amount": "0"}, PayoutlinkBadAmount),
        ({"amount": "0.4"}, PayoutlinkBadAmount),
        ({"amount": "25.0000001"}, PayoutlinkBadAmount),
        ({"amount": "98.9"}, PayoutlinkInsufficientFunds),
    ],
)
def test_a_refused_link_holds_no_money(shop: UUID, fields: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        create(shop, **fields)

    assert balances_of(shop) == {"available": 100 * USDT}
    assert (links(), one("SELECT count(*) FROM calls")) == (0, (0,))


def test_the_whole_balance_less_the_fee_can_be_given(shop: UUID) -> None:
    create(shop, amount="98.8")

    assert balances_of(shop) == {"payout_held": 100 * USDT}


def test_maturing_funds_have_their_own_error(shop: UUID) -> None:
    fund(shop, 10 * USDT, kind=MATURING)

    with pytest.raises(PayoutlinkFundsMaturing):
        create(shop, amount="100")
    with pytest.raises(PayoutlinkInsufficientFunds):
        create(shop, amount="109")

    mature(shop, 10 * USDT)
    assert create(shop, amount="100")["status"] == "funded"


def test_without_a_fresh_network_fee_no_link_is_created(shop: UUID) -> None:
    execute("DELETE FROM network_fees")
    context.context().market.forget()

    with pytest.raises(PayoutFeeUnavailable):
        create(shop)


def test_a_stop_of_signing_stops_no_link_alone_or_in_a_batch(shop: UUID) -> None:
    freezes.freeze("network", "ethereum", reason="test", frozen_by=freezes.RECOVERY)

    assert create(shop)["status"] == "funded"
    assert [item["success"] for item in create_batch(shop, LINK)["items"]] == [True]


def test_a_frozen_merchant_creates_no_link(shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")

    with pytest.raises(PayoutFrozen):
        create(shop)
    assert links() == 0


def test_links_can_be_disabled(shop: UUID, database: str) -> None:
    link_id = create(shop)["link_id"]
    configure(database, PAYOUT_LINKS_ENABLED="0")

    with pytest.raises(PayoutlinkDisabled):
        create(shop)
    with pytest.raises(PayoutlinkDisabled):
        create_batch(shop, LINK)
    assert cancel(shop, link_id)["status"] == "cancelled"


# Repetitions ------------------------------------------------------------------------------------------------


def test_a_reference_is_used_once_even_by_an_equal_request(shop: UUID) -> None:
    create(shop, info(shop, "\nsignature"), reference="w-1")

    with pytest.raises(PayoutlinkDuplicateReference):
        create(shop, info(shop, "\nsignature"), reference="w-1")
    assert links() == 1


def test_twenty_concurrent_calls_with_one_reference_make_one_link(shop: UUID) -> None:
    answers = at_once(20, lambda _: create(shop, amount="1", reference="w-1"))

    assert sorted(type(answer).__name__ for answer in answers) == ["PayoutlinkDuplicateReference"] * 19 + ["dict"]


def test_a_redelivered_call_gets_its_response_with_the_token(shop: UUID) -> None:
    call = info(shop)
    first = create(shop, call)

    with pytest.raises(ReplayedError) as replay:
        create(shop, call)
    assert replayed(replay.value) == first
    assert "claim_token" not in (replay.value.response or "")
    assert links() == 1


def test_an_identical_request_gets_the_first_response_even_after_a_rotation_of_keys(shop: UUID, database: str) -> None:
    first = create(shop, info(shop, "\nsignature"))
    configure(database, SECRET_KEYS=ROTATED)

    with pytest.raises(ReplayedError) as replay:
        create(shop, info(shop, "\nsignature"))
    assert replayed(replay.value) == first
    assert create(shop)["claim_token"] != first["claim_token"]
    assert links() == 2


def test_concurrent_links_never_exceed_the_balance(shop: UUID) -> None:
    answers = at_once(20, lambda _: create(shop))

    assert [type(answer).__name__ for answer in answers].count("dict") == 3
    assert balances_of(shop) == {"available": 100 * USDT - 3 * HELD, "payout_held": 3 * HELD}


# Batches ----------------------------------------------------------------------------------------------------


def test_a_batch_is_answered_item_by_item_and_a_bad_item_fails_alone(shop: UUID) -> None:
    answer = create_batch(shop, LINK, LINK | {"amount": "0"}, 7, {}, LINK | {"amount": "90"}, LINK | {"title": "B"})

    items = answer["items"]
    assert [item["index"] for item in items] == [0, 1, 2, 3, 4, 5]
    assert [item["success"] for item in items] == [True, False, False, False, False, True]
    assert [item["error"]["code"] for item in items if not item["success"]] == [
        "payoutlink.bad_amount", "request.bad_field", "payoutlink.unknown_currency", "payoutlink.insufficient_funds",
    ]  # fmt: skip
    assert {item["batch_id"] for item in items if item["success"]} == {answer["batch_id"]}
    assert len({item["claim_token"] for item in items if item["success"]}) == 2
    assert balances_of(shop)["payout_held"] == 2 * HELD


def test_a_reference_used_twice_in_a_batch_fails_the_second_time(shop: UUID) -> None:
    items = create_batch(shop, *[LINK | {"amount": "1", "reference": "same"}] * 2)["items"]

    assert items[1]["error"]["code"] == "payoutlink.duplicate_reference"
    assert links() == 1


def test_a_reference_goes_to_the_first_affordable_item_of_a_batch(shop: UUID) -> None:
    same = LINK | {"reference": "same"}

    items = create_batch(shop, same | {"amount": "99"}, same, same | {"amount": "1"}, LINK)["items"]

    assert [item["success"] for item in items] == [False, True, False, True]
    assert [item["error"]["code"] for item in items if not item["success"]] == [
        "payoutlink.insufficient_funds",
        "payoutlink.duplicate_reference",
    ]
    assert rows("SELECT position, reference FROM payout_links ORDER BY position") == [(1, "same"), (3, None)]


def test_items_of_a_batch_are_refused_like_single_links(shop: UUID) -> None:
    """The checks run in the order of a single link's: reference, freeze, funds."""
    charge(network="bsc")
    bsc = LINK | {"network": "bsc"}
    fund(shop, 10 * USDT, kind=MATURING)
    create(shop, amount="1", reference="used")
    freezes.freeze("network", "bsc", reason="test", frozen_by="test")
    poor = LINK | {"amount": "500"}

    items = create_batch(
        shop,
        bsc | {"reference": "used"},
        bsc | {"amount": "500"},
        poor | {"reference": "used"},
        poor,
        LINK | {"amount": "100"},
        LINK,
    )["items"]

    assert [item["error"]["code"] if "error" in item else None for item in items] == [
        "payoutlink.duplicate_reference",
        "payout.frozen",
        "payoutlink.duplicate_reference",
        "payoutlink.insufficient_funds",
        "payoutlink.funds_maturing",
        None,
    ]
    mature(shop, 10 * USDT)


def test_the_rest_of_the_balance_goes_to_later_items(shop: UUID) -> None:
    items = create_batch(shop, *[LINK | {"amount": amount} for amount in ("40", "60", "50", "5", "0.6")])["items"]

    assert [item["success"] for item in items] == [True, False, True, True, False]
    assert balances_of(shop) == {"available": 5 * USDT - 3 * FEE, "payout_held": 95 * USDT + 3 * FEE}
    # Each is held under its own reference.
    assert rows("SELECT reference FROM ledger_transfers WHERE reference LIKE 'payout_link:%' ORDER BY 1") == rows(
        "SELECT 'payout_link:' || id || ':hold' FROM payout_links ORDER BY 1"
    )


def test_a_batch_writes_the_emails_of_its_created_links(shop: UUID, database: str) -> None:
    configure(database, SMTP_URL="smtp://127.0.0.1:1")
    mailed = [LINK | {"amount": amount, "email": f"{amount}@mail.example"} for amount in ("1", "1000", "2")]

    create_batch(shop, *mailed, LINK)

    assert rows("SELECT recipient FROM emails ORDER BY recipient") == [("1@mail.example",), ("2@mail.example",)]
    assert one("SELECT count(*) FROM emails e JOIN payout_links l ON l.id = e.object_id AND l.email = e.recipient") == (
        2,
    )


def test_an_interrupted_batch_leaves_no_link_and_its_repetition_creates_all(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: Any) -> None:
        raise ZeroDivisionError("the power fails")

    with monkeypatch.context() as patch:
        patch.setattr(calls, "finish", cut_off)
        with pytest.raises(ZeroDivisionError):
            create_batch(shop, *[LINK] * 3, call=info(shop, "\nsignature"))
    assert (links(), balances_of(shop)) == (0, {"available": 100 * USDT})

    answer = create_batch(shop, *[LINK] * 3, call=info(shop, "\nsignature"))

    assert all(item["claim_token"] for item in answer["items"])
    assert (links(), balances_of(shop)["payout_held"]) == (3, 3 * HELD)


def test_a_repeated_batch_creates_nothing_even_of_failed_items(shop: UUID) -> None:
    items = [LINK | {"amount": "90"}, LINK]
    first = create_batch(shop, LINK, *items, call=info(shop, "\nsignature"))
    fund(shop, 1000 * USDT)

    with pytest.raises(ReplayedError) as replay:
        create_batch(shop, LINK, *items, call=info(shop, "\nsignature"))

    assert replayed(replay.value) == first
    assert [item["success"] for item in first["items"]] == [True, False, True]
    assert links() == 2


def test_a_batch_whose_caller_got_503_leaves_no_link_funded(shop: UUID) -> None:
    call = info(shop)
    give_up(call)

    with pytest.raises(AbandonedError):
        create_batch(shop, *[LINK] * 3, call=call)

    assert (links(), balances_of(shop)) == (0, {"available": 100 * USDT})


def test_a_caller_that_gives_up_during_the_write_gets_the_response(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    call, fund_all, collected = info(shop), payout_link_batches.fund, []

    def meanwhile(*args: Any) -> Any:
        made = fund_all(*args)
        thread = threading.Thread(target=lambda: collected.append(in_thread(lambda: calls.abandon(call))))
        thread.start()
        threads.append(thread)
        return made

    threads: list[threading.Thread] = []
    monkeypatch.setattr(payout_link_batches, "fund", meanwhile)
    answer = create_batch(shop, *[LINK] * 3, call=call)
    threads[0].join()

    # The caller's tombstone waited for the batch, which was first: the response is the batch's.
    assert [item["link_id"] for item in json.loads(collected[0])["items"]] == [
        item["link_id"] for item in answer["items"]
    ]
    assert links() == 3


def in_thread(step: Any) -> Any:
    try:
        return step()
    finally:
        close()


def test_a_merchant_has_one_long_call_at_a_time_and_delays_no_others(shop: UUID) -> None:
    other, held_up, release = rich_merchant(), threading.Event(), threading.Event()

    def hold(_: int) -> None:
        with transaction():
            calls.take_turn(shop)
            held_up.set()
            release.wait(60)

    holder = threading.Thread(target=lambda: at_once(1, hold))
    holder.start()
    assert held_up.wait(60)
    try:
        with pytest.raises(GatewayBusy):
            create_batch(shop, LINK)
        assert create_batch(other, LINK)["items"][0]["success"]
        assert create(shop)["status"] == "funded", "a short call does not wait"
    finally:
        release.set()
        holder.join()
    assert links() == 2
    assert create_batch(shop, LINK)["items"][0]["success"]


def test_a_redelivered_batch_is_not_refused_for_its_first_delivery(shop: UUID) -> None:
    call = info(shop)
    answers = at_once(4, lambda _: create_batch(shop, *[LINK] * 3, call=call))

    assert links() == 3
    assert sorted(type(answer).__name__ for answer in answers) == ["ReplayedError"] * 3 + ["dict"]


def test_a_batch_and_concurrent_single_links_make_each_reference_once(shop: UUID) -> None:
    fund(shop, 10_000 * USDT)
    names = [f"w-{number}" for number in range(40)]

    def race(number: int) -> Any:
        if number == 0:
            return repeat_on_deadlock(
                lambda: create_batch(shop, *[LINK | {"amount": "1", "reference": name} for name in names])
            )
        return repeat_on_deadlock(lambda: create(shop, amount="1", reference=names[-number]))

    at_once(12, race)

    assert one("SELECT count(*), count(DISTINCT reference) FROM payout_links") == (40, 40)
    assert balances_of(shop)["payout_held"] == 40 * (USDT + FEE)


def test_five_hundred_cheques_are_written_in_a_few_statements(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    fund(shop, 100_000 * USDT)
    asked: list[str] = []
    run = base.run

    def counted(sql: str, params: Any = ()) -> Any:
        asked.append(sql)
        return run(sql, params)

    monkeypatch.setattr(base, "run", counted)
    items = [LINK | {"amount": "1", "reference": f"w-{number}"} for number in range(500)]

    answer = create_batch(shop, *items)

    assert sum(item["success"] for item in answer["items"]) == 500
    assert len(asked) <= 25, asked
    assert balances_of(shop)["payout_held"] == 500 * (USDT + FEE)


def test_the_same_batch_twice_at_once_makes_its_links_once(shop: UUID) -> None:
    answers = at_once(4, lambda _: create_batch(shop, *[LINK] * 3, call=info(shop, "\nsignature")))

    assert links() == 3
    for answer in answers:
        assert isinstance(answer, dict | ReplayedError | IdempotencyInProgress), answer


# Cancellation ---------------------------------------------------------------------------------------------------


def test_cancelling_returns_the_record_without_its_token(shop: UUID) -> None:
    answer = cancel(shop, create(shop)["link_id"])

    assert answer["status"] == "cancelled"
    assert not answer.keys() & {"claim_token", "claim_url", "claim_kid", "payout_id"}
    assert balances_of(shop) == {"available": 100 * USDT}


def test_another_merchants_link_is_not_found(shop: UUID) -> None:
    link_id = create(shop)["link_id"]

    with pytest.raises(PayoutlinkNotFound):
        cancel(merchant(), link_id)


# E-mail -----------------------------------------------------------------------------------------------------


def test_an_email_is_written_only_with_a_server_and_a_recipient(shop: UUID, database: str, rung: list[str]) -> None:
    create(shop, email="ann@mail.example")
    configure(database, SMTP_URL="smtp://127.0.0.1:1")
    create(shop)
    assert one("SELECT count(*) FROM emails") == (0,)

    create(shop, email="ann@mail.example")

    assert rows("SELECT recipient, status, kind FROM emails") == [("ann@mail.example", "pending", "cheque")]
    assert "deliver_emails" in rung


@pytest.mark.parametrize("is_batch", [False, True])
def test_an_email_takes_its_turn_before_any_balance_is_locked(shop: UUID, database: str, *, is_batch: bool) -> None:
    """Settlement writes a receipt first and credits then; in the other order the two would deadlock."""
    configure(database, SMTP_URL="smtp://127.0.0.1:1")

    def make() -> None:
        try:
            if is_batch:
                create_batch(shop, LINK | {"email": "ann@mail.example"})
            else:
                create(shop, email="ann@mail.example")
        finally:
            close()

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            emails.wait_turn(shop)
            made = pool.submit(make)
            wait_until_somebody_waits(limit_s=10)
            lock_balances(Account(shop, AVAILABLE, "USDT"))
        made.result()
    assert (links(), value("SELECT count(*) FROM emails")) == (1, 1)


def test_a_failed_link_sends_no_email(shop: UUID, database: str) -> None:
    configure(database, SMTP_URL="smtp://127.0.0.1:1")

    with pytest.raises(PayoutlinkInsufficientFunds):
        create(shop, amount="1000", email="ann@mail.example")
    assert one("SELECT count(*) FROM emails") == (0,)


def test_a_cheque_above_the_signers_limit_is_refused(shop: UUID, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="24")
    trade(USDT="1")
    with pytest.raises(PayoutlinkBadAmount, match="24 USD"):
        create(shop)
    assert (links(), balances_of(shop)) == (0, {AVAILABLE: 100 * USDT})
    assert create(shop, amount="24")["status"] == "funded"
