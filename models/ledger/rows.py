"""Declares the tables of the books, of what matures and of what is owed."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import BY_DATABASE, Big, Small, Table, Units


class LedgerAccount(Table, table="accounts"):
    """An account of the books: its holder's, of a kind, in a coin."""

    id: Big = BY_DATABASE
    holder: UUID
    kind: str
    currency: str
    network: str


class Balance(Table, table="balances b"):
    """What an account has."""

    account_id: Big
    units: Units


class LedgerTransfer(Table, table="ledger_transfers"):
    """A leg of a posting, from the account debited to the account credited."""

    id: Big
    reference: str
    leg: Small
    debit_account: Big
    credit_account: Big
    currency: str
    units: Units
    booked_at: datetime


class MaturingCredit(Table, table="maturing_credits"):
    """A credit that a reorg could still take."""

    deposit_id: UUID
    round: int
    merchant_id: UUID
    network: str
    block_height: Big
    currency: str
    units: Units


class DebtorMark(Table, table="debtors"):
    """A merchant who may owe the gateway something of a coin."""

    merchant_id: UUID
    currency: str
    noted_at: datetime = BY_DATABASE
    looked_at: datetime = BY_DATABASE


class LedgerScale(Table, table="ledger_scales"):
    """The scale that a coin's stored units have."""

    currency: str
    scale: Small
