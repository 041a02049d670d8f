"""Reads balances and debts from the ledger for tests."""

from __future__ import annotations

from itertools import chain
from typing import Final
from uuid import UUID

from models.db.base import one
from models.ledger.ledger import DEBT, Account, holdings

_NET: Final = (
    "(SELECT COALESCE(sum(CASE WHEN t.credit_account = a.id THEN t.units ELSE -t.units END), 0) FROM accounts a"
    " JOIN ledger_transfers t ON a.id IN (t.credit_account, t.debit_account)"
    " WHERE (a.holder, a.kind, a.currency, a.network) = (%s, %s, %s, %s))"
)


def balances_of(merchant_id: UUID, currency: str = "USDT") -> dict[str, int]:
    """Return a merchant's non-zero balances of a coin."""
    return {kind: units for kind, units in holdings(merchant_id).get(currency, {}).items() if units}


def net_of(account: Account) -> int:
    """Return an account's received units less its sent units."""
    (net,) = nets_of(account)
    return net


def nets_of(*accounts: Account) -> list[int]:
    """Return the same for several accounts, in one statement."""
    row = one(f"SELECT {', '.join([_NET] * len(accounts))}", tuple(chain.from_iterable(accounts)))
    return list(map(int, row or ()))


def owes(merchant_id: UUID, currency: str = "USDT") -> int:
    """Return a merchant's debt."""
    return -net_of(Account(merchant_id, DEBT, currency))
