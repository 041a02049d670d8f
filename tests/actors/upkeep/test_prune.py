"""Deletes old responses and bodies, and keeps young and unfinished ones."""

from __future__ import annotations

from uuid import uuid4

import pytest

from actors.upkeep import prune
from models.batches import rows as batches
from models.db.base import execute, one, rows
from models.payouts import queue as payout_queue
from models.queue import calls
from models.webhooks import outbox
from tests.actors.payout_links.world import configure
from tests.models.batches.test_rows import add as batch

pytestmark = pytest.mark.usefixtures("database")


def test_calls_are_deleted_after_a_week() -> None:
    for age in ("6 days", "8 days"):
        execute(
            "INSERT INTO calls (call_id, fingerprint, state, created_at)"
            " VALUES (%s, '', 'done', app_now() - %s::interval)",
            (uuid4(), age),
        )

    assert calls.prune(limit=20) == 1
    assert one("SELECT count(*), max(app_now() - created_at) < '7 days' FROM calls") == (1, True)


def test_only_bodies_of_finished_deliveries_are_deleted_after_a_month() -> None:
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

    assert outbox.prune(limit=20) == 2
    assert outbox.prune(limit=20) == 0
    kept = rows("SELECT status FROM webhook_deliveries WHERE body <> '' ORDER BY status")
    assert kept == [("delivered",), ("retrying",)]


def test_batches_and_their_items_are_deleted_a_month_after_completion() -> None:
    for status, age in (("completed", "31 days"), ("completed", "29 days"), ("processing", None)):
        batch_id = batch()
        execute(
            "UPDATE batches SET status = %s, created_at = app_now() - interval '40 days',"
            " completed_at = app_now() - %s::interval WHERE id = %s",
            (status, age, batch_id),
        )

    assert batches.prune(limit=20) == 1
    assert batches.prune(limit=20) == 0
    assert rows("SELECT status FROM batches ORDER BY status") == [("completed",), ("processing",)]
    assert one("SELECT count(DISTINCT batch_id), count(*) FROM batch_items") == (2, 6)


def test_oracle_verdicts_are_deleted_once_they_no_longer_hold() -> None:
    for address, age in (("0xa", "25 hours"), ("0xb", "23 hours")):
        payout_queue.store_verdict("ethereum", address, is_sanctioned=False)
        execute("UPDATE sanction_verdicts SET checked_at = app_now() - %s::interval WHERE address = %s", (age, address))

    assert payout_queue.prune_verdicts(limit=20) == 1
    assert rows("SELECT address FROM sanction_verdicts") == [("0xb",)]


def test_a_large_backlog_is_deleted_in_portions_and_notifies_the_next(
    database: str, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(database)
    monkeypatch.setattr(prune, "PORTIONS", dict.fromkeys(prune.PORTIONS, 2))
    for _ in range(3):
        batch()
    execute("UPDATE batches SET status = 'completed', completed_at = app_now() - interval '31 days'")
    rung.clear()

    prune.prune()
    assert (one("SELECT count(*) FROM batches"), rung) == ((1,), ["prune"])
    prune.prune()
    assert (one("SELECT count(*) FROM batches"), rung) == ((0,), ["prune"])

    rung.clear()
    for number in range(3):
        payout_queue.store_verdict("ethereum", f"0x{number}", is_sanctioned=False)
    execute("UPDATE sanction_verdicts SET checked_at = app_now() - interval '25 hours'")
    prune.prune()
    prune.prune()
    assert (one("SELECT count(*) FROM sanction_verdicts"), rung) == ((0,), ["prune"])
