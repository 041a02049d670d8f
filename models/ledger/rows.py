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
    """The balance of an account."""

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


class SplitShare(Table, table="split_shares s"):
    """A part of a credit that waits, or waited, in its merchant's hold for a recipient, and where its units are."""

    id: UUID
    deposit_id: UUID
    round: int
    rule_id: UUID
    merchant_id: UUID
    recipient_id: UUID
    currency: str
    percent_ppm: int
    units: Units
    left_units: Units
    taken_units: Units
    released_units: Units
    reversed_units: Units
    # A reorg took its deposit; the amount that a refund returns is then its merchant's.
    is_reversed: bool
    release_at: datetime
    created_at: datetime
    # Its credit no longer waits for a depth.
    is_mature: bool
    # The principal that set its rule.
    set_by: str
    # Given back to its merchant, since one of its rule's keys is revoked.
    returned_units: Units
    # The principal that co-signed its rule; empty if none had to.
    cosigned_by: str


class SplitTake(Table, table="split_takes"):
    """The part of a share that a refund took."""

    payout_id: UUID
    share_id: UUID
    units: Units


class SplitEarnings(Table, table="split_earnings e"):
    """A merchant's earnings from others' sales."""

    recipient_id: UUID
    currency: str
    units: Units


class LedgerScale(Table, table="ledger_scales"):
    """The scale that a coin's stored units have."""

    currency: str
    scale: Small
