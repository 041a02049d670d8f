"""The audit begins at the last checkpoint, misses no late row and notices changed ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import psycopg2
import pytest
from psycopg2.extensions import connection

from models.db.base import execute, one, rows, transaction
from models.invariants import checkpoint, deposits
from models.ledger.ledger import AVAILABLE, CUSTODY, EQUITY, GATEWAY, SUSPENSE, Account, Transfer, post
from tests.models.builders import Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice, paid

SHOP = uuid4()
FROM, TO = Account(GATEWAY, CUSTODY, "USDT", "ethereum"), Account(SHOP, SUSPENSE, "USDT")


def book(count: int = 1, units: int = 5) -> None:
    for _ in range(count):
        with transaction():
            post(f"test:{uuid4()}", [Transfer(FROM, TO, units)])


def advance() -> bool:
    return checkpoint.advance(within_s=60)


def through() -> int:
    row = one("SELECT through_id FROM audit_checkpoint")
    assert row is not None
    return int(row[0])


def newest() -> int:
    row = one("SELECT COALESCE(max(id), 0) FROM ledger_transfers")
    assert row is not None
    return int(row[0])


def summed() -> tuple[int, int]:
    row = one("SELECT COALESCE(sum(transfers), 0)::bigint, COALESCE(sum(units), 0) FROM audit_sums")
    assert row is not None
    return row[0], row[1]


@pytest.fixture
def elsewhere(database: str) -> Iterator[connection]:
    """Open a second session with a transaction of its own."""
    session = psycopg2.connect(database)
    yield session
    session.close()


def late_row(session: connection) -> None:
    """Book in another session without committing: its id is drawn, its row is invisible."""
    with session.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)"
            " SELECT 'late', 0, d.id, c.id, 'USDT', 7 FROM accounts d, accounts c"
            " WHERE d.kind = 'custody' AND c.kind = 'suspense'"
        )


@pytest.mark.usefixtures("database")
def test_sums_grow_by_the_rows_since_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PORTION", 3)
    assert advance()
    assert (through(), summed()) == (0, (0, 0))

    book(7)
    assert advance()
    assert (through(), summed()) == (newest(), (7, 35))
    book(2)
    assert advance()
    assert advance()
    assert (through(), summed()) == (newest(), (9, 45))


@pytest.mark.usefixtures("database")
def test_a_checkpoint_stops_at_its_time_limit_and_continues_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PORTION", 2)
    book(5)
    assert checkpoint.advance(within_s=0) is False
    assert through() == 0
    assert advance()
    assert summed() == (5, 25)


def test_a_row_committed_behind_a_higher_id_is_summed_once(
    elsewhere: connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a writer that has drawn its id and sleeps, while others commit behind it."""
    monkeypatch.setattr(checkpoint, "WRITERS_WAIT_S", 0.2)
    book()
    advance()
    late_row(elsewhere)
    book(3)

    assert not advance(), "a row below the newest one may still commit"
    assert summed() == (1, 5)
    elsewhere.commit()
    assert advance()

    assert (through(), summed()) == (newest(), (5, 27))
    assert rows(checkpoint.DIFFERENCES) == []


def test_an_advance_waits_for_writers_that_end_soon_and_not_for_later_ones(elsewhere: connection) -> None:
    book()
    late_row(elsewhere)
    book()

    def write(number: int) -> None:
        if number == 0:
            time.sleep(0.3)
            elsewhere.commit()
        elif number == 1:
            assert advance()
        else:
            for _ in range(20):
                book()

    outcomes = at_once(3, write)

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
    assert advance()
    assert (through(), summed()[0]) == (newest(), 23)
    assert rows(checkpoint.DIFFERENCES) == []


@pytest.mark.usefixtures("database")
def test_concurrent_audits_sum_every_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PORTION", 2)
    book(20)

    def run(_number: int) -> None:
        advance()
        book()

    assert not [outcome for outcome in at_once(4, run) if isinstance(outcome, Exception)]
    assert advance()
    assert summed()[0] == 24
    assert rows(checkpoint.DIFFERENCES) == []


@pytest.mark.usefixtures("database")
def test_the_books_are_judged_by_checkpoint_and_tail_together() -> None:
    chain = Chain()
    paid(chain, invoice())
    assert deposits.audit(is_full=False, within_s=60) == []
    assert through() == newest() > 0
    paid(chain, invoice())
    assert through() < newest()
    assert deposits.check(is_full=True) == []

    # Books that are wrong before the checkpoint are wrong after it.
    execute("UPDATE balances SET units = units + 1")
    assert "balances_equal_transfers" in {violation.name for violation in deposits.check()}
    advance()
    assert "balances_equal_transfers" in {violation.name for violation in deposits.check()}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger_transfers SET units = units + 1 WHERE id = (SELECT min(id) FROM ledger_transfers)",
        "UPDATE ledger_transfers SET credit_account = (SELECT max(id) FROM accounts)"
        " WHERE id = (SELECT min(id) FROM ledger_transfers)",
        "DELETE FROM ledger_transfers WHERE id = (SELECT min(id) FROM ledger_transfers)",
        "UPDATE audit_sums SET units = units + 1",
        "UPDATE audit_sums SET transfers = transfers - 1",
        "DELETE FROM audit_sums",
    ],
)
@pytest.mark.usefixtures("database")
def test_a_full_audit_notices_rows_changed_before_the_checkpoint(change: str) -> None:
    paid(Chain(), invoice())
    with transaction():
        post("one:more", [Transfer(Account(GATEWAY, EQUITY, "USDT"), Account(GATEWAY, AVAILABLE, "USDT"), 1)])
    advance()
    assert rows(checkpoint.DIFFERENCES) == []
    execute("SET session_replication_role = replica")
    execute(change)
    execute("SET session_replication_role = DEFAULT")

    assert "checkpoint_equals_ledger" in {violation.name for violation in deposits.check(is_full=True)}
    assert "checkpoint_equals_ledger" in deposits.MONEY


@pytest.mark.usefixtures("database")
def test_an_audit_reports_when_it_last_passed() -> None:
    assert checkpoint.passed_at() is None
    assert checkpoint.passed_age_s() is None
    assert checkpoint.is_full_due()

    assert deposits.audit(is_full=False, within_s=60) == []
    first = checkpoint.passed_at()
    assert first is not None
    assert checkpoint.is_full_due(), "not a full audit"
    assert deposits.audit(is_full=True, within_s=60) == []
    assert not checkpoint.is_full_due()
    execute("UPDATE app_clock SET ahead = ahead - interval '1 hour'")
    assert checkpoint.is_full_due(), "the clock was set back"
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")

    paid(Chain(), invoice())
    execute("UPDATE balances SET units = units + 1")
    last = checkpoint.passed_at()
    assert deposits.audit(is_full=True, within_s=60) != []
    assert checkpoint.passed_at() == last, "the audit failed"
    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    assert checkpoint.is_full_due()
    age_s = checkpoint.passed_age_s()
    assert age_s is not None
    assert age_s >= 86_400


@pytest.mark.usefixtures("database")
def test_a_checkpoint_is_not_made_inside_a_step() -> None:
    with transaction(), pytest.raises(RuntimeError):
        advance()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("suspense_equals_undecided", "deposits_in_suspense"),
        ("custody_equals_what_came_and_left", "deposits_in_custody"),
    ],
)
@pytest.mark.usefixtures("database")
def test_pending_and_received_sums_are_read_from_an_index_alone(name: str, index: str) -> None:
    """Deposits have many wide rows."""
    with transaction():
        # PostgreSQL may read an empty table by any plan.
        execute("SET LOCAL enable_seqscan = off")
        execute("SET LOCAL enable_bitmapscan = off")
        plan = rows("EXPLAIN " + deposits.INVARIANTS[name][1])

    assert any(f"Index Only Scan using {index} " in line for (line,) in plan)
