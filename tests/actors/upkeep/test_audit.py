"""Freezes all payouts if the books are wrong, and logs other violations."""

from __future__ import annotations

import threading

import pytest

from actors.upkeep import audit
from models.db.base import execute, one
from models.invariants import deposits
from models.payouts import freezes
from tests.models.builders import Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice, paid


def test_sound_books_freeze_nothing(database: str) -> None:
    del database
    paid(Chain(), invoice())
    audit.audit_ledger()
    assert freezes.listing() == []


def test_wrong_books_freeze_everything_until_an_operator_lifts_it(database: str) -> None:
    del database
    paid(Chain(), invoice())
    execute("UPDATE balances SET units = units + 1")
    audit.audit_ledger()
    audit.audit_ledger()
    (freeze,) = freezes.listing()
    assert (freeze.scope, freeze.frozen_by) == ("all", "audit")
    assert freeze.reason.startswith("balances_equal_transfers: ")

    execute("UPDATE balances SET units = units - 1")
    audit.audit_ledger()
    assert len(freezes.listing()) == 1


def test_a_wrong_invoice_freezes_nothing(database: str) -> None:
    del database
    paid(Chain(), invoice())
    execute("UPDATE invoices SET confirmed_units = confirmed_units - 1")
    assert deposits.check()
    audit.audit_ledger()
    assert freezes.listing() == []


def test_the_listed_names_are_invariants() -> None:
    assert deposits.named(is_full=True).keys() >= deposits.MONEY


def test_an_audit_continues_the_last_one_and_reads_everything_once_a_day(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del database
    paid(Chain(), invoice())
    asked: list[bool] = []
    check = deposits.check

    def watch(*, is_full: bool = False) -> list[deposits.Violation]:
        asked.append(is_full)
        return check(is_full=is_full)

    monkeypatch.setattr(deposits, "check", watch)
    audit.audit_ledger()
    audit.audit_ledger()
    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    audit.audit_ledger()

    assert asked == [True, False, True]
    assert one("SELECT through_id = (SELECT max(id) FROM ledger_transfers) FROM audit_checkpoint") == (True,)


def test_two_concurrent_audits_run_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del database
    entered, release = threading.Event(), threading.Event()
    runs: list[int] = []

    def slow(**_options: object) -> list[deposits.Violation]:
        runs.append(1)
        entered.set()
        release.wait(60)
        return []

    monkeypatch.setattr(deposits, "audit", slow)

    def run(number: int) -> None:
        if number == 0:
            audit.audit_ledger()
        else:
            assert entered.wait(60)
            audit.audit_ledger()
            release.set()

    assert not [outcome for outcome in at_once(2, run) if isinstance(outcome, Exception)]
    assert len(runs) == 1
