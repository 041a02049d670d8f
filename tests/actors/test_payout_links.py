"""Creating and cancelling cheques: each takes effect once, and no answer that is stored holds a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from actors import context, payout_link_orders, payout_links
from core.claim_tokens import token_hash
from core.errors import (
    DomainError,
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
from models import freezes
from models.base import execute, one, rows, transaction
from models.calls import AbandonedError, ReplayedError
from models.ledger import AVAILABLE, MATURING, Account, Transfer, post
from tests.actors.link_world import (
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
from tests.models.builders import USDT, assert_sound, at_once, held, merchant
from tests.models.link_builders import rich_merchant
from tests.models.payout_builders import FEE, fund, trade

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD = 25 * USDT + FEE


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    configure(database)
    yield
    assert_sound()


@pytest.fixture(autouse=True)
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    bells: list[str] = []
    monkeypatch.setattr(payout_links, "ring", lambda *bell: bells.append(":".join(bell)))
    return bells


@pytest.fixture
def shop() -> UUID:
    return rich_merchant()


def links() -> int:
    return (one("SELECT count(*) FROM payout_links") or (0,))[0]


# Create -----------------------------------------------------------------------------------------------------


def test_a_link_has_its_fields_its_token_and_its_page(shop: UUID) -> None:
    answer = create(
        shop, reference="w-1", title="Prize", note="Well done", email="ann@mail.example", expires_in_hours=24
    )

    assert answer | {"link_id": "", "expires_at": "", "created_at": "", "claim_token": "", "claim_url": ""} == {
        "link_id": "", "status": "funded", "currency": "USDT", "network": "ethereum", "amount": "25", "title": "Prize",
        "note": "Well done", "email": "ann@mail.example", "reference": "w-1", "expires_at": "", "created_at": "",
        "claim_token": "", "claim_url": "",
    }  # fmt: skip
    assert answer["claim_url"] == f"{PAY_URL}/claim/{answer['claim_token']}"
    assert held(shop) == {"available": 100 * USDT - HELD, "payout_held": HELD}
    assert one("SELECT expires_at - created_at = interval '24 hours', created_by FROM payout_links") == (
        True,
        "pk_test",
    )


def test_what_is_stored_holds_the_hash_of_the_token_and_never_the_token(shop: UUID) -> None:
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
def test_the_lifetime_is_clamped(shop: UUID, hours: int | None, lifetime_h: int) -> None:
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
def test_what_cannot_be_created_holds_nothing(shop: UUID, fields: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        create(shop, **fields)

    assert held(shop) == {"available": 100 * USDT}
    assert (links(), one("SELECT count(*) FROM calls")) == (0, (0,))


def test_the_whole_balance_less_the_fee_can_be_given(shop: UUID) -> None:
    create(shop, amount="98.8")

    assert held(shop) == {"payout_held": 100 * USDT}


def test_what_is_maturing_is_told_apart(shop: UUID) -> None:
    fund(shop, 10 * USDT, kind=MATURING)

    with pytest.raises(PayoutlinkFundsMaturing):
        create(shop, amount="100")
    with pytest.raises(PayoutlinkInsufficientFunds):
        create(shop, amount="109")

    with transaction():
        post("mature", [Transfer(Account(shop, MATURING, "USDT"), Account(shop, AVAILABLE, "USDT"), 10 * USDT)])
    assert create(shop, amount="100")["status"] == "funded"


def test_without_a_fresh_network_fee_nothing_is_created(shop: UUID) -> None:
    execute("DELETE FROM network_fees")
    context.context().market.forget()

    with pytest.raises(PayoutFeeUnavailable):
        create(shop)


def test_a_frozen_merchant_creates_nothing(shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")

    with pytest.raises(PayoutFrozen):
        create(shop)
    assert links() == 0


def test_links_can_be_switched_off(shop: UUID, database: str) -> None:
    link_id = create(shop)["link_id"]
    configure(database, PAYOUT_LINKS_ENABLED="0")

    with pytest.raises(PayoutlinkDisabled):
        create(shop)
    with pytest.raises(PayoutlinkDisabled):
        create_batch(shop, LINK)
    assert cancel(shop, link_id)["status"] == "cancelled"


# Repetitions ------------------------------------------------------------------------------------------------


def test_a_reference_is_used_once_even_by_the_very_same_request(shop: UUID) -> None:
    create(shop, info(shop, "\nsignature"), reference="w-1")

    with pytest.raises(PayoutlinkDuplicateReference):
        create(shop, info(shop, "\nsignature"), reference="w-1")
    assert links() == 1


def test_twenty_at_once_with_one_reference_make_one_link(shop: UUID) -> None:
    answers = at_once(20, lambda _: create(shop, amount="1", reference="w-1"))

    assert sorted(type(answer).__name__ for answer in answers) == ["PayoutlinkDuplicateReference"] * 19 + ["dict"]


def test_a_redelivered_call_gets_its_answer_token_and_all(shop: UUID) -> None:
    call = info(shop)
    first = create(shop, call)

    with pytest.raises(ReplayedError) as replay:
        create(shop, call)
    assert replayed(replay.value) == first
    assert "claim_token" not in (replay.value.response or "")
    assert links() == 1


def test_the_very_same_request_gets_the_first_answer_also_after_the_keys_were_rotated(
    shop: UUID, database: str
) -> None:
    first = create(shop, info(shop, "\nsignature"))
    configure(database, SECRET_KEYS=ROTATED)

    with pytest.raises(ReplayedError) as replay:
        create(shop, info(shop, "\nsignature"))
    assert replayed(replay.value) == first
    assert create(shop)["claim_token"] != first["claim_token"]
    assert links() == 2


def test_a_merchant_never_spends_more_than_it_has_on_links(shop: UUID) -> None:
    answers = at_once(20, lambda _: create(shop))

    assert [type(answer).__name__ for answer in answers].count("dict") == 3
    assert held(shop) == {"available": 100 * USDT - 3 * HELD, "payout_held": 3 * HELD}


# Batches ----------------------------------------------------------------------------------------------------


def test_a_batch_answers_item_by_item_and_a_bad_one_fails_alone(shop: UUID) -> None:
    answer = create_batch(shop, LINK, LINK | {"amount": "0"}, 7, {}, LINK | {"amount": "90"}, LINK | {"title": "B"})

    items = answer["items"]
    assert [item["index"] for item in items] == [0, 1, 2, 3, 4, 5]
    assert [item["success"] for item in items] == [True, False, False, False, False, True]
    assert [item["error"]["code"] for item in items if not item["success"]] == [
        "payoutlink.bad_amount", "request.bad_field", "payoutlink.unknown_currency", "payoutlink.insufficient_funds",
    ]  # fmt: skip
    assert {item["batch_id"] for item in items if item["success"]} == {answer["batch_id"]}
    assert len({item["claim_token"] for item in items if item["success"]}) == 2
    assert held(shop)["payout_held"] == 2 * HELD


def test_a_reference_used_twice_in_a_batch_fails_the_second_time(shop: UUID) -> None:
    items = create_batch(shop, *[LINK | {"amount": "1", "reference": "same"}] * 2)["items"]

    assert items[1]["error"]["code"] == "payoutlink.duplicate_reference"
    assert links() == 1


def test_a_batch_that_was_cut_off_goes_on_where_it_stopped(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    call, make, made = info(shop, "\nsignature"), payout_link_orders.create, []

    def cut_off(*args: Any, **arguments: Any) -> dict[str, Any]:
        if len(made) == 2:
            raise ZeroDivisionError("the power fails")
        made.append(make(*args, **arguments))
        return made[-1]

    monkeypatch.setattr(payout_link_orders, "create", cut_off)
    with pytest.raises(ZeroDivisionError):
        create_batch(shop, *[LINK] * 3, call=call)
    monkeypatch.undo()
    monkeypatch.setattr(payout_links, "ring", lambda *_: None)

    answer = create_batch(shop, *[LINK] * 3, call=info(shop, "\nsignature"))

    assert [item["link_id"] for item in answer["items"]][:2] == [link["link_id"] for link in made]
    assert all(item["claim_token"] for item in answer["items"])
    assert (links(), held(shop)["payout_held"]) == (3, 3 * HELD)


def test_a_repeated_batch_makes_nothing_even_of_what_failed_the_first_time(shop: UUID) -> None:
    items = [LINK | {"amount": "90"}, LINK]
    first = create_batch(shop, LINK, *items, call=info(shop, "\nsignature"))
    fund(shop, 1000 * USDT)

    with pytest.raises(ReplayedError) as replay:
        create_batch(shop, LINK, *items, call=info(shop, "\nsignature"))

    assert replayed(replay.value) == first
    assert [item["success"] for item in first["items"]] == [True, False, True]
    assert links() == 2


def test_a_batch_that_nobody_waits_for_stops(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    call, make = info(shop), payout_link_orders.create

    def given_up(*args: Any, **arguments: Any) -> dict[str, Any]:
        made = make(*args, **arguments)
        at_once(1, lambda _: give_up(call))
        return made

    monkeypatch.setattr(payout_link_orders, "create", given_up)
    with pytest.raises(AbandonedError):
        create_batch(shop, *[LINK] * 3, call=call)

    assert links() == 1


def test_the_same_batch_twice_at_once_makes_its_links_once(shop: UUID) -> None:
    answers = at_once(4, lambda _: create_batch(shop, *[LINK] * 3, call=info(shop, "\nsignature")))

    assert links() == 3
    for answer in answers:
        assert isinstance(answer, dict | ReplayedError | IdempotencyInProgress), answer


# Cancel -----------------------------------------------------------------------------------------------------


def test_cancelling_answers_the_record_without_its_token(shop: UUID) -> None:
    answer = cancel(shop, create(shop)["link_id"])

    assert answer["status"] == "cancelled"
    assert not answer.keys() & {"claim_token", "claim_url", "claim_kid", "payout_id"}
    assert held(shop) == {"available": 100 * USDT}


def test_anothers_link_is_as_absent_as_none(shop: UUID) -> None:
    link_id = create(shop)["link_id"]

    with pytest.raises(PayoutlinkNotFound):
        cancel(merchant(), link_id)


# E-mail -----------------------------------------------------------------------------------------------------


def test_an_email_is_written_only_where_there_is_a_server_and_a_recipient(
    shop: UUID, database: str, rung: list[str]
) -> None:
    create(shop, email="ann@mail.example")
    configure(database, SMTP_URL="smtp://127.0.0.1:1")
    create(shop)
    assert one("SELECT count(*) FROM emails") == (0,)

    create(shop, email="ann@mail.example")

    assert rows("SELECT recipient, status, kind FROM emails") == [("ann@mail.example", "pending", "cheque")]
    assert "deliver_emails" in rung


def test_a_link_that_fails_sends_no_email(shop: UUID, database: str) -> None:
    configure(database, SMTP_URL="smtp://127.0.0.1:1")

    with pytest.raises(PayoutlinkInsufficientFunds):
        create(shop, amount="1000", email="ann@mail.example")
    assert one("SELECT count(*) FROM emails") == (0,)


def test_a_cheque_above_the_signers_limit_is_not_made(shop: UUID, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="24")
    trade(USDT="1")
    with pytest.raises(PayoutlinkBadAmount, match="24 USD"):
        create(shop)
    assert (links(), held(shop)) == (0, {AVAILABLE: 100 * USDT})
    assert create(shop, amount="24")["status"] == "funded"
