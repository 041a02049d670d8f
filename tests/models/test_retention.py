"""Old answers and bodies go; what is young, or not finished, stays."""

from __future__ import annotations

from uuid import uuid4

import pytest

from models import calls, outbox
from models.base import execute, one, rows

pytestmark = pytest.mark.usefixtures("database")


def test_calls_are_forgotten_after_a_week() -> None:
    for age in ("6 days", "8 days"):
        execute(
            "INSERT INTO calls (call_id, fingerprint, state, created_at)"
            " VALUES (%s, '', 'done', app_now() - %s::interval)",
            (uuid4(), age),
        )

    assert calls.prune() == 1
    assert one("SELECT count(*), max(app_now() - created_at) < '7 days' FROM calls") == (1, True)


def test_only_bodies_of_finished_deliveries_are_forgotten_after_a_month() -> None:
    owner, merchant = uuid4(), uuid4()
    execute("INSERT INTO owners (id, name) VALUES (%s, 'o')", (owner,))
    execute("INSERT INTO merchants (id, owner_id, name) VALUES (%s, %s, 'm')", (merchant, owner))
    for status, age in (
        ("delivered", "31 days"),
        ("dead", "31 days"),
        ("retrying", "31 days"),
        ("delivered", "29 days"),
    ):
        execute(
            "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body, status, created_at)"
            " VALUES (%s, %s, 'invoice.paid', %s, '{}', %s, app_now() - %s::interval)",
            (uuid4(), merchant, uuid4(), status, age),
        )

    assert outbox.prune() == 2
    assert outbox.prune() == 0
    kept = rows("SELECT status FROM webhook_deliveries WHERE body <> '' ORDER BY status")
    assert kept == [("delivered",), ("retrying",)]
