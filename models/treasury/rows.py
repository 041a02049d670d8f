"""Tables of the gateway's own money."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import Big, Numeric, Table, Units


class Reconciliation(Table, table="reconciliations"):
    """A place's balance on its chain, against the books."""

    network: str
    currency: str
    place: str
    height: Big
    chain_units: Numeric
    expected_units: Numeric
    is_sound: bool
    misses: int
    address: str
    detail: str
    checked_at: datetime


class TreasuryAddress(Table, table="treasury_addresses"):
    """An address of the gateway's own."""

    network: str
    role: str
    address: str
    is_current: bool


class Topup(Table, table="treasury_topups"):
    """What came to an address of the gateway's own."""

    id: UUID
    network: str
    txid: str
    ordinal: str
    currency: str
    units: Units
    sender: str
    origin: str
    block_height: Big
    block_hash: str
    status: str
    round: int
    created_at: datetime
    doubted_for: str | None
    agreed_at: datetime | None
    asked_at: datetime | None
    attempts: int
    next_attempt_at: datetime
    problem: str


class TreasuryWalk(Table, table="treasury_walks"):
    """Where a round over deposit addresses goes on."""

    network: str
    walker: str
    currency: str
    address: str


class Writeoff(Table, table="treasury_writeoffs"):
    """What an operator wrote off."""

    id: UUID
    network: str
    currency: str
    units: Units
    unexplained_units: Units
    reason: str
    written_by: str
    created_at: datetime
