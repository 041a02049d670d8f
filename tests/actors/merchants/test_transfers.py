"""Transfers as calls: amounts, repetition by order_id and by key, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.merchants.transfers import transfer_to_personal
from core.errors import (
    DomainError,
    IdempotencyKeyReused,
    PayoutFrozen,
    PersonalInsufficient,
    TransferBadAmount,
    TransferUnknownCurrency,
)
from core.merchants.transfer_schemas import Transferred
from models.db.base import execute, rows, transaction, value
from models.ledger.ledger import AVAILABLE, CUSTODY, DEBT, GATEWAY, PERSONAL, Account, Transfer, post
from models.payouts import freezes
from models.queue.calls import CallInfo, ReplayedError
from models.spends import signing_stops
from tests.actors.asking import ask
from tests.actors.queue.workers import make_settings
from tests.models.builders import USDT, assert_sound
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.payouts.held import funded, owner_of
from tests.models.queue.builders import info

FIVE: dict[str, Any] = {"amount": "5", "currency": "USDT"}


@pytest.fixture
def shop(database: str) -> Iterator[UUID]:
    context.configure(make_settings(database_url=database))
    yield funded()
    assert_sound()


def transfer(merchant_id: UUID, call: CallInfo | None = None, **body: Any) -> dict[str, Any]:
    answer = ask(transfer_to_personal, call or info(merchant_id), FIVE | body)
    return msgspec.to_builtins(msgspec.convert(answer, Transferred))  # type: ignore[no-any-return]


def made() -> int:
    return value("SELECT count(*) FROM personal_transfers")


def test_the_response_has_the_fields_of_the_specification(shop: UUID) -> None:
    assert transfer(shop, amount="5.25") == {
        "currency": "USDT",
        "amount": "5.25",
        "direction": "to_personal",
        "personal_balance": "5.25",
    }
    assert transfer(shop, amount="1.000000")["personal_balance"] == "6.25"
    assert balances_of(shop) == {AVAILABLE: 9375 * USDT // 100}
    assert balances_of(owner_of(shop)) == {PERSONAL: 625 * USDT // 100}
    assert rows("SELECT DISTINCT created_by FROM personal_transfers") == [("pk_creator",)]


def test_a_repeated_order_id_moves_nothing_and_gets_the_first_response(shop: UUID) -> None:
    first = transfer(shop, order_id="t-1")
    transfer(shop, order_id="t-2", amount="7")

    again = transfer(shop, order_id="t-1")
    with_another_body = transfer(shop, order_id="t-1", amount="99999", currency="BTC")
    with_a_key = transfer(shop, info(shop, "key"), order_id="t-1")

    assert again == with_another_body == with_a_key == first
    assert made() == 2
    assert balances_of(shop) == {AVAILABLE: 88 * USDT}


def test_a_repetition_is_answered_while_the_merchant_is_frozen(shop: UUID) -> None:
    first = transfer(shop, order_id="t-1")
    freezes.freeze("all", reason="r", frozen_by="operator")

    assert transfer(shop, order_id="t-1") == first


def test_one_of_many_concurrent_calls_with_an_order_id_moves_money(shop: UUID) -> None:
    answers = at_once(8, lambda number: transfer(shop, order_id="t-1", amount=str(number + 1)))

    assert all(answer == answers[0] for answer in answers), answers
    assert made() == 1


def test_a_key_returns_the_first_response_and_refuses_another_request(shop: UUID) -> None:
    first = transfer(shop, info(shop, "key"))
    with pytest.raises(ReplayedError) as replay:
        transfer(shop, info(shop, "key"))
    assert msgspec.json.decode(replay.value.response or "") == first
    with pytest.raises(IdempotencyKeyReused):
        transfer(shop, info(shop, "key", b"other"), amount="6")
    assert made() == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"currency": "XYZ"}, TransferUnknownCurrency),
        ({"currency": "USD"}, TransferUnknownCurrency),
        ({"amount": "0"}, TransferBadAmount),
        ({"amount": "0.000000"}, TransferBadAmount),
        ({"amount": "0.0000001"}, TransferBadAmount),
        ({"amount": "1.0000000"}, TransferBadAmount),
        ({"amount": "100.000001"}, PersonalInsufficient),
        ({"amount": "9" * 30}, PersonalInsufficient),
        ({"currency": "BTC", "amount": "0.00000001"}, PersonalInsufficient),
    ],
)
def test_an_invalid_transfer_is_refused_and_uses_up_no_order_id(
    shop: UUID, body: dict[str, Any], error: type[DomainError]
) -> None:
    with pytest.raises(error):
        transfer(shop, info(shop, "key"), order_id="t-1", **body)

    assert made() == 0
    assert transfer(shop, info(shop, "key", b"other"), order_id="t-1")["amount"] == "5"


def test_a_frozen_merchant_and_a_debtor_move_no_money_away(shop: UUID) -> None:
    custody, debt = Account(GATEWAY, CUSTODY, "USDT", "ethereum"), Account(shop, DEBT, "USDT")
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")
    with pytest.raises(PayoutFrozen):
        transfer(shop)
    freezes.unfreeze("merchant", str(shop))
    with transaction():
        post("owed", [Transfer(debt, custody, 1)])
    with pytest.raises(PayoutFrozen):
        transfer(shop)
    with transaction():
        post("repaid", [Transfer(custody, debt, 1)])
    # A network's freeze does not matter: no network takes part in a transfer.
    freezes.freeze("network", "ethereum", reason="r", frozen_by="operator")

    assert transfer(shop)["personal_balance"] == "5"


def test_a_call_without_a_merchant_raises(shop: UUID) -> None:
    with pytest.raises(ValueError, match="has a merchant"):
        transfer(shop, info(None))


def test_a_call_without_a_principal_raises(shop: UUID) -> None:
    with pytest.raises(ValueError, match="has a principal"):
        transfer(shop, replace(info(shop), principal_id=None))


def test_a_balance_that_a_restore_may_have_brought_back_is_not_moved(shop: UUID) -> None:
    assert signing_stops.watch("ethereum") is None
    transfer(shop)
    execute("UPDATE database_marks SET timeline = '00000000' WHERE network = 'ethereum'")
    with pytest.raises(PayoutFrozen):
        transfer(shop)
    assert (signing_stops.watch("ethereum") is not None, made()) == (True, 1)
    with pytest.raises(PayoutFrozen):
        transfer(shop)
    with pytest.raises(PersonalInsufficient):
        transfer(shop, currency="BTC")
