"""One statement creates the invoices of several calls and leaves out all that are not clearly new.

tests.models.invoices.test_rows checks that it creates a clearly new invoice as the single statement does.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import psycopg2
import pytest

from models.db import locks
from models.db.base import execute, rows, transaction, value
from models.db.locks import LockSeed
from models.invoices import creations
from models.invoices import rows as invoices
from models.invoices.creations import Creation
from models.queue import calls
from models.queue.calls import CallInfo
from tests.models.builders import merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import agnostic_invoice, create, creation, new_invoice

pytestmark = pytest.mark.usefixtures("sound")


def info(of: Creation) -> CallInfo:
    return CallInfo(
        call_id=of.call_id,
        merchant_id=of.invoice.merchant_id,
        request_id="",
        idem_key=of.idem_key,
        fingerprint=of.fingerprint,
    )


def give_up(new: Creation) -> None:
    assert calls.abandon(info(new)) is None


def change_terms(new: Creation) -> None:
    execute("UPDATE merchants SET terms_version = terms_version + 1 WHERE id = %s", (new.invoice.merchant_id,))


def use_its_key(new: Creation) -> None:
    create(new_invoice(new.invoice.merchant_id), idem_key=new.idem_key)


def use_its_order(new: Creation) -> None:
    create(new_invoice(new.invoice.merchant_id, order_id=new.invoice.order_id))


def deliver(new: Creation) -> None:
    assert creations.create(new)[0] == "created"


@pytest.mark.parametrize("happens", [give_up, change_terms, use_its_key, use_its_order, deliver])
def test_unclear_calls_are_left_out_and_their_neighbours_are_created(
    shop: UUID, happens: Callable[[Creation], None]
) -> None:
    mine = creation(new_invoice(shop, order_id="o-1"), idem_key="k")
    with_its_names = creation(new_invoice(merchant(), order_id="o-1"), idem_key="k")
    neighbours = [creation(agnostic_invoice(merchant())), with_its_names]
    happens(mine)
    before = rows("SELECT * FROM calls ORDER BY 1"), rows("SELECT id FROM invoices ORDER BY 1")

    made = creations.create_together([neighbours[0], mine, neighbours[1]])

    assert made.keys() == {new.call_id for new in neighbours}
    assert [calls.abandon(info(new)) for new in neighbours] == [made[new.call_id] for new in neighbours]
    assert all(invoices.find_public(new.invoice.id) for new in neighbours)
    execute("DELETE FROM calls WHERE call_id = ANY(%s)", (list(made),))
    ours = [new.invoice.id for new in neighbours]
    assert before == (
        rows("SELECT * FROM calls ORDER BY 1"),
        rows("SELECT id FROM invoices WHERE id <> ALL(%s) ORDER BY 1", (ours,)),
    )


@pytest.mark.parametrize(
    ("name", "seed"), [("k", LockSeed.IDEMPOTENCY_KEY), ("o-1", LockSeed.INVOICE_ORDER)], ids=["key", "order"]
)
def test_a_call_locked_by_another_process_is_left_out_without_waiting(shop: UUID, name: str, seed: LockSeed) -> None:
    mine = creation(new_invoice(shop, order_id="o-1"), idem_key="k")
    neighbour = creation(new_invoice(shop))
    execute("SET lock_timeout = '1ms'")
    with transaction():
        locks.wait_turn(f"{shop}{name}", seed=seed)
        (made,) = at_once(1, lambda _: creations.create_together([mine, neighbour]))

    assert not isinstance(made, Exception)
    assert made.keys() == {neighbour.call_id}


def test_all_invoices_of_a_gathering_have_one_time(shop: UUID) -> None:
    news = [creation(new_invoice(shop, order_id=f"o-{number}"), idem_key=f"k-{number}") for number in range(16)]

    made = creations.create_together(news)

    assert made.keys() == {new.call_id for new in news}
    assert value("SELECT count(DISTINCT (created_at, updated_at)) FROM invoices") == 1
    assert value("SELECT count(DISTINCT xmin::text) FROM invoices") == 1


def test_a_gathering_delivered_to_several_workers_at_once_takes_effect_once(shop: UUID) -> None:
    """They may hold the calls in any order: they wait for each other without a deadlock."""
    news = [creation(new_invoice(shop)) for _ in range(16)]

    made = at_once(8, lambda number: creations.create_together(news if number % 2 else news[::-1]))

    assert sorted(len(answers) for answers in made if not isinstance(answers, Exception)) == [0] * 7 + [16]
    assert value("SELECT count(*) FROM invoices") == 16


def test_one_invalid_row_fails_the_whole_gathering(shop: UUID) -> None:
    good, bad = creation(new_invoice(shop)), creation(new_invoice(shop, status="no such status"))

    with pytest.raises(psycopg2.errors.CheckViolation):
        creations.create_together([good, bad])

    assert [value(f"SELECT count(*) FROM {table}") for table in ("invoices", "calls", "quotes")] == [0, 0, 0]


def test_an_order_id_is_looked_up_by_its_index_even_without_statistics(shop: UUID) -> None:
    """A session keeps its first plan; one by another index would read all of a merchant's invoices."""
    plan = rows("EXPLAIN SELECT count(*) FROM invoices WHERE merchant_id = %s AND order_id = 'o-1'", (shop,))

    assert "invoices_of_order" in str(plan)
