"""Books that are wrong stop all payouts; what is wrong elsewhere is told."""

from __future__ import annotations

from actors import audit
from models import freezes, invariants
from models.base import execute
from tests.models.builders import Chain, invoice, paid


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
    (found,) = freezes.listing()
    assert (found.scope, found.frozen_by) == ("all", "audit")
    assert found.reason.startswith("balances_equal_transfers: ")

    execute("UPDATE balances SET units = units - 1")
    audit.audit_ledger()
    assert len(freezes.listing()) == 1


def test_what_is_wrong_with_an_invoice_freezes_nothing(database: str) -> None:
    del database
    paid(Chain(), invoice())
    execute("UPDATE invoices SET confirmed_units = confirmed_units - 1")
    assert invariants.check()
    audit.audit_ledger()
    assert freezes.listing() == []


def test_the_names_are_those_of_invariants() -> None:
    assert invariants.INVARIANTS.keys() >= invariants.MONEY
