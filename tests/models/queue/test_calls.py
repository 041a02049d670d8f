from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psycopg2
import pytest
from psycopg2.extensions import connection

from core.errors import IdempotencyInProgress, IdempotencyKeyReused
from models.db import base
from models.db.base import execute, one, rows, transaction
from models.queue import calls
from models.queue.calls import AbandonedError, CallInfo, ReplayedError, UndecidedError
from tests.models.queue.builders import MERCHANT, info

pytestmark = pytest.mark.usefixtures("database")


def succeed(call: CallInfo, response: str = "{}") -> None:
    with transaction():
        calls.begin(call)
        calls.finish(call.call_id, response)


def fail(call: CallInfo) -> None:
    with transaction():
        calls.begin(call)
        execute("SELECT 1 / 0")


@pytest.fixture
def other(database_url: str) -> Iterator[connection]:
    """Open another session, in a transaction."""
    with closing(psycopg2.connect(database_url)) as session:
        yield session


def begin_in(session: connection, call: CallInfo) -> None:
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM begin_call(%s, %s, %s, %s, 2000, NULL)",
            (call.call_id, call.merchant_id, call.idem_key, call.fingerprint),
        )


# Beginning ----------------------------------------------------------------------------------------------------------


def test_a_successful_call_is_kept_with_its_response() -> None:
    call = info(key="key")
    succeed(call, '{"a":1}')

    stored = "SELECT call_id, merchant_id, idem_key, state, response FROM calls WHERE fingerprint = %s"
    assert rows(stored, (call.fingerprint,)) == [(call.call_id, MERCHANT, "key", "done", '{"a":1}')]


def test_a_call_outside_a_transaction_raises() -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        calls.begin(info())


def test_a_failed_call_leaves_no_row_and_frees_its_key() -> None:
    with pytest.raises(psycopg2.DataError):
        fail(info(key="key"))

    succeed(info(key="key"))
    assert one("SELECT count(*) FROM calls") == (1,)


@pytest.mark.parametrize("key", [None, "key"])
def test_the_same_call_again_gets_its_response_and_is_not_a_replay(key: str | None) -> None:
    call = info(key=key)
    succeed(call, "first")

    with pytest.raises(ReplayedError) as caught, transaction():
        calls.begin(call)
    assert (caught.value.response, caught.value.by_key) == ("first", False)


def test_another_call_with_the_same_key_is_a_replay() -> None:
    succeed(info(key="key"), "first")

    with pytest.raises(ReplayedError) as caught, transaction():
        calls.begin(info(key="key"))
    assert (caught.value.response, caught.value.by_key) == ("first", True)


def test_a_key_with_another_fingerprint_is_refused() -> None:
    succeed(info(key="key"))

    with pytest.raises(IdempotencyKeyReused), transaction():
        calls.begin(info(key="key", fingerprint=b"b"))


def test_keys_of_merchants_are_independent() -> None:
    succeed(info(key="key"))
    succeed(info(key="key", merchant_id=uuid.UUID(int=8), fingerprint=b"b"))

    assert one("SELECT count(*) FROM calls") == (2,)


def test_a_key_without_a_merchant_is_ignored() -> None:
    succeed(info(key="key", merchant_id=None))
    succeed(info(key="key", merchant_id=None))

    assert one("SELECT count(*) FROM calls WHERE idem_key IS NULL") == (2,)


def test_a_key_in_use_is_refused_without_waiting(other: connection, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_in(other, info(key="key"))
    monkeypatch.setattr(calls, "STEP_TIMEOUT_MS", 60_000)

    started = time.monotonic()
    with pytest.raises(IdempotencyInProgress), transaction():
        calls.begin(info(key="key"))
    assert time.monotonic() - started < 30


def test_a_key_is_the_same_for_the_statement_that_creates_invoices(other: connection) -> None:
    """create_invoice() takes the lock by itself; both must mean the same lock."""
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s::uuid || %s::text, 1))", (MERCHANT, "key"))

    with pytest.raises(IdempotencyInProgress), transaction():
        calls.begin(info(key="key"))


@pytest.mark.parametrize("key", ["k" * 255, "💶" * 255, "'; DROP TABLE calls; --"])
def test_any_key_of_legal_length_works(key: str) -> None:
    succeed(info(key=key), "first")

    with pytest.raises(ReplayedError), transaction():
        calls.begin(info(key=key))


def test_a_step_runs_under_its_own_short_timeouts() -> None:
    with transaction():
        calls.begin(info())
        inside = one(
            "SELECT current_setting('lock_timeout'), current_setting('statement_timeout'),"
            " current_setting('idle_in_transaction_session_timeout')"
        )

    assert inside == ("2s", "2s", "2s")
    assert one("SELECT current_setting('statement_timeout')") == ("10s",)


# Two keys -----------------------------------------------------------------------------------------------------------


def succeed_with(call: CallInfo, response: str) -> None:
    twin = call.by_signature()
    assert twin is not None
    with transaction():
        calls.begin(call)
        for call_id in (call.call_id, twin.call_id):
            calls.finish(call_id, response)


@pytest.mark.parametrize("second", [("key", None), ("other", "sig"), ("sig", None)])
def test_each_of_two_keys_returns_the_first_response(second: tuple[str, str | None]) -> None:
    succeed_with(replace(info(key="key"), signature_key="sig"), "first")

    with pytest.raises(ReplayedError) as replay, transaction():
        calls.begin(replace(info(key=second[0]), signature_key=second[1]))

    assert (replay.value.response, replay.value.by_key) == ("first", True)


def test_a_redelivered_call_with_two_keys_only_answers_again() -> None:
    call = replace(info(key="key"), signature_key="sig")
    succeed_with(call, "first")

    with pytest.raises(ReplayedError) as replay, transaction():
        calls.begin(call)

    assert (replay.value.response, replay.value.by_key) == ("first", False)
    assert one("SELECT count(*) FROM calls") == (2,)


def test_an_abandoned_call_of_two_keys_frees_both() -> None:
    call = replace(info(key="key"), signature_key="sig")
    assert calls.abandon(call) is None

    with pytest.raises(AbandonedError), transaction():
        calls.begin(call)
    succeed_with(replace(info(key="key"), signature_key="sig"), "second")


# Abandoning ---------------------------------------------------------------------------------------------------------


def test_an_abandoned_call_cannot_begin() -> None:
    call = info(key="key")
    assert calls.abandon(call) is None

    with pytest.raises(AbandonedError), transaction():
        calls.begin(call)


def test_an_abandoned_call_frees_its_key() -> None:
    calls.abandon(info(key="key"))
    succeed(info(key="key"), "second")

    assert one("SELECT response FROM calls WHERE state = 'done'") == ("second",)


def test_abandoning_a_successful_call_returns_its_response() -> None:
    call = info(key="key")
    succeed(call, "first")

    assert calls.abandon(call) == "first"
    assert one("SELECT state FROM calls") == ("done",)


def test_abandoning_a_successful_call_with_a_secret_returns_nothing() -> None:
    call = info()
    with transaction():
        calls.begin(call)

    assert calls.abandon(call) is None
    assert one("SELECT state FROM calls") == ("done",)


def test_a_call_can_be_abandoned_twice() -> None:
    call = info()

    assert (calls.abandon(call), calls.abandon(call)) == (None, None)


def test_abandoning_waits_for_a_step_under_way(other: connection) -> None:
    call = info()
    begin_in(other, call)
    with other.cursor() as cursor:
        cursor.execute("UPDATE calls SET response = 'in time' WHERE call_id = %s", (call.call_id,))
    committing = threading.Timer(0.3, other.commit)
    committing.start()

    assert calls.abandon(call) == "in time"
    committing.join()


def test_a_rolled_back_step_leaves_the_tombstone_in_force(other: connection) -> None:
    call = info()
    begin_in(other, call)
    rolling_back = threading.Timer(0.3, other.rollback)
    rolling_back.start()

    assert calls.abandon(call) is None
    rolling_back.join()
    with pytest.raises(AbandonedError), transaction():
        calls.begin(call)


def test_a_step_that_does_not_end_leaves_the_call_undecided(other: connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot happen while the step's own timeouts work."""
    monkeypatch.setattr(calls, "GRACE_S", 0.3)
    call = info()
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO calls (call_id, fingerprint, state) VALUES (%s, '', 'done')", (call.call_id,))
    execute("SET lock_timeout = '100ms'")

    with pytest.raises(UndecidedError):
        calls.abandon(call)


def test_a_step_is_waited_for_until_its_calls_deadline(other: connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the wait for its row is cut short."""
    monkeypatch.setattr(calls, "GRACE_S", 0.0)
    call = info()
    begin_in(other, call)
    with other.cursor() as cursor:
        cursor.execute("UPDATE calls SET response = 'in time' WHERE call_id = %s", (call.call_id,))
    execute("SET lock_timeout = '50ms'")
    committing = threading.Timer(1.0, other.commit)
    committing.start()

    assert calls.abandon(call, life_left_s=60) == "in time"
    committing.join()


def test_a_transaction_cannot_commit_after_its_calls_deadline(other: connection) -> None:
    """Even if the process misjudges the time, PostgreSQL checks it at COMMIT."""
    with other.cursor() as cursor:
        cursor.execute("SELECT * FROM begin_call(%s, %s, NULL, %s, 2000, 500)", (uuid.uuid4(), MERCHANT, b"f"))
        for _ in range(6):
            cursor.execute("SELECT pg_sleep(0.1)")

    with pytest.raises(psycopg2.errors.QueryCanceled, match="ended"):
        other.commit()
    assert one("SELECT count(*) FROM calls") == (0,)


def test_a_transaction_commits_within_its_calls_deadline_and_the_next_has_none() -> None:
    succeed(replace(info(), ends_at=time.monotonic() + 60))
    with transaction():
        assert one("SELECT current_setting('sluice.call_ends_at', true)") in {("",), (None,)}
    assert one("SELECT count(*) FROM calls") == (1,)


def test_the_first_statement_after_a_calls_deadline_ends_its_transaction() -> None:
    def step() -> None:
        with transaction():
            calls.begin(replace(info(), ends_at=time.monotonic() + 0.3))
            while True:
                execute("SELECT pg_sleep(0.02)")

    with pytest.raises(base.StepOverdueError):
        step()
    assert one("SELECT count(*) FROM calls") == (0,)


def test_a_call_past_its_deadline_cannot_begin() -> None:
    with pytest.raises(AbandonedError), transaction():
        calls.begin(replace(info(), ends_at=time.monotonic()))
    assert one("SELECT count(*) FROM calls") == (0,)


def test_no_timeout_of_a_step_exceeds_its_calls_deadline() -> None:
    with transaction():
        calls.begin(replace(info(), ends_at=time.monotonic() + 1))
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            row = one(f"SELECT extract(epoch FROM current_setting('{name}')::interval) <= 1")
            assert row == (True,), name


def test_a_pause_within_a_step_ends_it(other: connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "STEP_TIMEOUT_MS", 200)
    call = info()
    with other.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM begin_call(%s, %s, NULL, %s, 200, NULL)", (call.call_id, MERCHANT, call.fingerprint)
        )

    assert calls.abandon(call) is None
    with pytest.raises(psycopg2.Error):
        other.commit()


def test_an_unreachable_store_leaves_the_call_undecided(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "ABANDON_PAUSE_S", 0.0)
    base.connect("postgresql://nobody@127.0.0.1:1/none")
    try:
        with pytest.raises(UndecidedError):
            calls.abandon(info())
    finally:
        base.connect(database)


def test_a_store_that_returns_at_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tombstone, failures = calls._tombstone, [1]

    def cut_once(call: CallInfo) -> str | None:
        if failures:
            failures.pop()
            raise base.StoreUnavailableError("cut")
        return tombstone(call)

    monkeypatch.setattr(calls, "_tombstone", cut_once)

    assert calls.abandon(info()) is None


def test_a_tombstone_lost_at_its_own_commit_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tombstone, failures = calls._tombstone, [1]

    def cut_after(call: CallInfo) -> str | None:
        outcome = tombstone(call)
        if failures:
            failures.pop()
            raise base.StoreUnavailableError("cut at COMMIT")
        return outcome

    monkeypatch.setattr(calls, "_tombstone", cut_after)
    call = info()

    assert calls.abandon(call) is None
    assert one("SELECT state FROM calls WHERE call_id = %s", (call.call_id,)) == ("abandoned",)


# Forgetting ---------------------------------------------------------------------------------------------------------


def test_calls_are_deleted_after_seven_days() -> None:
    old, young = info(key="old"), info(key="young")
    for call in (old, young):
        succeed(call)
    calls.abandon(abandoned := info())
    execute(
        "UPDATE calls SET created_at = app_now() - interval '7 days 1 second' WHERE call_id IN (%s, %s)",
        (old.call_id, abandoned.call_id),
    )

    assert calls.prune(limit=1_000) == 2
    assert rows("SELECT idem_key FROM calls") == [("young",)]


def test_a_deleted_key_may_be_used_for_another_request() -> None:
    call = info(key="key")
    succeed(call)
    execute("UPDATE calls SET created_at = app_now() - interval '8 days'")
    calls.prune(limit=1_000)

    succeed(replace(info(key="key"), fingerprint=b"b" * 32))


def test_a_deletion_step_is_bounded() -> None:
    for _ in range(3):
        succeed(info())
    execute("UPDATE calls SET created_at = app_now() - interval '8 days'")

    assert [calls.prune(limit=2) for _ in range(3)] == [2, 1, 0]
