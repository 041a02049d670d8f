"""Invoices of concurrent calls are created together if they are clearly new, with correct answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors.invoices.calls import _create_together, create_invoice
from actors.queue.caller import CallReply
from core.errors import PaymentBelowMinimum
from core.invoices.schemas import CreatePayment
from models.db.base import column, execute, value
from models.queue.calls import CallInfo
from tests.actors.asking import ask, configure
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import begin_scans, merchant
from tests.models.queue.builders import info

pytestmark = pytest.mark.usefixtures("sound")

GOOD = {"amount": "100", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}


@pytest.fixture(autouse=True)
def _gateway(database: str) -> None:
    """Configure a gateway with a provider for ethereum, rates and a full pool."""
    configure(database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    begin_scans()
    add_chunk(0)
    for currency, usd in {"USD": 1, "USDT": 1, "ETH": 3000}.items():
        execute(
            "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, %s, 'test', app_now())", (currency, usd)
        )


def together(*asked: tuple[CallInfo, dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Run calls as the queue does; return the answers, None for those to be run alone."""
    replies = _create_together([(call, msgspec.convert(body, CreatePayment)) for call, body in asked])
    return [None if reply is None else _answer(reply) for reply in replies]


def _answer(reply: CallReply) -> dict[str, Any]:
    assert not reply.replayed
    answer: dict[str, Any] = msgspec.json.decode(reply.body)
    return answer


def free_addresses() -> int:
    """Count the addresses that returned to the pool."""
    return int(value("SELECT count(*) FROM address_returns WHERE taken_at IS NULL"))


def test_sixteen_calls_together_equal_sixteen_alone(shop: UUID) -> None:
    calls = [info(shop, f"k-{number}") for number in range(15)] + [info(merchant())]

    made = together(*[(call, GOOD | {"order_id": f"o-{number}"}) for number, call in enumerate(calls)])

    alone = ask(create_invoice, info(shop), GOOD | {"order_id": "alone"})
    answers = [answer for answer in made if answer is not None]
    assert [answer["order_id"] for answer in answers] == [f"o-{number}" for number in range(16)]
    assert all(answer.keys() == alone.keys() for answer in answers)
    assert len({answer["address"] for answer in answers}) == 16
    assert free_addresses() == 0
    assert set(column("SELECT request_id FROM invoices")) == {info(shop).request_id}
    # A repeated call gets the first answer.
    assert ask(create_invoice, calls[3], GOOD | {"order_id": "o-3"}) == answers[3]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(GOOD | {"currency": "XXX"}, id="unknown currency"),
        pytest.param(GOOD | {"amount": "0.01"}, id="below its minimum"),
        pytest.param(GOOD | {"amount": "1", "currency": "EUR"}, id="no rate"),
        pytest.param(GOOD | {"network": "tron"}, id="no such network"),
        pytest.param(GOOD | {"order_id": "o-1", "is_refresh": True}, id="may revive another"),
    ],
)
def test_a_call_that_cannot_be_created_together_is_left_to_run_alone(shop: UUID, bad: dict[str, Any]) -> None:
    made = together((info(shop), GOOD), (info(shop), bad), (info(shop), GOOD))

    assert [answer is None for answer in made] == [False, True, False]
    assert value("SELECT count(*) FROM invoices") == 2


def test_two_calls_of_one_order_id_make_one_invoice(shop: UUID) -> None:
    order, calls = GOOD | {"order_id": "o-1"}, [info(shop), info(shop), info(merchant())]

    made = together(*[(call, order) for call in calls])

    assert [answer is None for answer in made] == [False, True, False]
    assert ask(create_invoice, calls[1], order) == made[0]
    assert value("SELECT count(*) FROM invoices") == 2


def test_an_invoice_is_created_with_terms_that_changed_meanwhile(shop: UUID) -> None:
    """A process reads them once, and the statement checks their version."""
    together((info(shop), GOOD))
    execute("UPDATE merchants SET own_fee_ppm = 77, terms_version = terms_version + 1 WHERE id = %s", (shop,))
    mine, other = info(shop), info(merchant())

    made = together((mine, GOOD), (other, GOOD))

    assert [answer is None for answer in made] == [True, False]
    assert free_addresses() == 1
    assert ask(create_invoice, mine, GOOD)["payer_amount"] == "100"
    assert column("SELECT fee_ppm FROM invoices WHERE merchant_id = %s ORDER BY created_at, id", (shop,))[-1] == 77


def test_calls_that_got_the_last_addresses_are_created(shop: UUID) -> None:
    execute("SELECT setval('address_claims_evm', 61)")
    calls = [info(shop) for _ in range(4)]

    made = together(*[(call, GOOD) for call in calls])

    assert [answer is None for answer in made] == [False, False, True, True]


def test_a_gathering_without_creatable_calls_sends_no_statement(shop: UUID) -> None:
    call = info(shop)

    assert together((call, GOOD | {"amount": "0.01"})) == [None]
    with pytest.raises(PaymentBelowMinimum):
        ask(create_invoice, call, GOOD | {"amount": "0.01"})
