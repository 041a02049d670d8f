"""Keeps who owes the gateway since a reorg took what he had spent: rows that last until the debt is repaid.

Written by models.deposits.crediting and models.refunds.endings in the transaction in which a debt arises, worked off by
models.outcomes.debt_repayment. A debt arises only where nothing is available: take() is how what is lost is charged.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from models.db.base import execute, is_true, rows_as
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, DEBT, Account
from models.ledger.rows import DebtorMark


class Debtor(NamedTuple):
    """A merchant who owes, and the coin."""

    merchant_id: UUID
    currency: str


def note(merchant_id: UUID, currency: str) -> None:
    """Note a debt to be repaid; the caller has locked its account, so that it is not taken for repaid meanwhile."""
    DebtorMark(merchant_id=merchant_id, currency=currency).write("ON CONFLICT DO NOTHING")


def take(merchant_id: UUID, currency: str, units: int, *, coming_units: int = 0) -> int:
    """Return the part of a merchant's repayment that his available balance pays; records him as debtor for the rest.

    coming_units: the amount that the caller adds to that balance in the same posting. The caller has locked the debt's
    account; the balance is locked here.
    """
    [spendable] = ledger.lock_balances(Account(merchant_id, AVAILABLE, currency))
    paid = min(units, spendable + coming_units)
    if paid < units:
        note(merchant_id, currency)
    return paid


def charge(
    merchant_id: UUID, currency: str, units: int, *, into: Account, coming_units: int = 0
) -> list[ledger.Transfer]:
    """Return the legs of what a merchant must give back, from available and for the rest from debt; as take()."""
    paid = take(merchant_id, currency, units, coming_units=coming_units)
    available, debt = (Account(merchant_id, kind, currency) for kind in (AVAILABLE, DEBT))
    return [ledger.Transfer(available, into, paid), ledger.Transfer(debt, into, units - paid)]


def give(
    merchant_id: UUID, currency: str, units: int, *, out_of: Account, kind: str = AVAILABLE
) -> list[ledger.Transfer]:
    """Return the two legs of a payment to a merchant: the part that repays his debt, locked here, and the rest."""
    repaid = min(units, ledger.lock_debt(merchant_id, currency))
    debt, balance = (Account(merchant_id, each, currency) for each in (DEBT, kind))
    return [ledger.Transfer(out_of, debt, repaid), ledger.Transfer(out_of, balance, units - repaid)]


def due(limit: int) -> list[Debtor]:
    """Return debtors, the longest unvisited first."""
    sql = "SELECT merchant_id, currency FROM debtors ORDER BY looked_at, merchant_id LIMIT %s"
    return rows_as(Debtor, sql, (limit,))


def lock(debtor: Debtor) -> bool:
    """Lock a debtor until the transaction ends; False if another process has locked him, or his row is gone."""
    return is_true("SELECT 1 FROM debtors WHERE (merchant_id, currency) = (%s, %s) FOR UPDATE SKIP LOCKED", debtor)


def look_later(debtor: Debtor) -> None:
    """Move a debtor behind the others, whatever the result of his turn; call it in a short transaction of its own.

    A debtor whom another process has locked is skipped: he is having his turn.
    """
    execute(
        "UPDATE debtors SET looked_at = app_now() WHERE (merchant_id, currency) IN (SELECT merchant_id, currency"
        " FROM debtors WHERE (merchant_id, currency) = (%s, %s) FOR UPDATE SKIP LOCKED)",
        tuple(debtor),
    )


def forget(debtor: Debtor) -> None:
    """Delete a debtor who owes nothing; the caller has locked him and his debt's account."""
    execute("DELETE FROM debtors WHERE (merchant_id, currency) = (%s, %s)", tuple(debtor))
