"""Declares the tables of the gateway's own money."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from models.db.table import BY_DATABASE, Big, Numeric, Table, Units, derived

Place = Literal["hot", "deposits", "cold"]
Origin = Literal["transfer", "balance", "adopted", "cold", "unowned"]


class Reconciliation(Table, table="reconciliations r"):
    """The last comparison of a coin at a place with the books."""

    network: str
    currency: str
    place: Place
    height: Big
    chain_units: Numeric
    expected_units: Numeric
    is_sound: bool
    misses: int
    address: str
    detail: str
    # Of the hot wallet: spends under way that its balance did not show yet.
    waiting_ids: list[UUID] | None
    checked_at: datetime = BY_DATABASE
    age_s: int = derived("extract(epoch FROM app_now() - checked_at)::integer")


class BalanceSnapshot(Table, table="balance_snapshots b"):
    """What a place held of a coin at a block that was not scanned yet. Units are the network's token units."""

    network: str
    place: Place
    currency: str
    address: str
    units: Units
    height: Big
    block_hash: str
    witnesses: int
    # Where money lies in coins: up to which scanned block these were asked for.
    asked_height: Big | None
    asked_hash: str | None
    taken_at: datetime = BY_DATABASE


class TreasuryAddress(Table, table="treasury_addresses t"):
    """An address of the gateway's own."""

    network: str
    role: str
    address: str
    is_current: bool = BY_DATABASE


class Topup(Table, table="treasury_topups t"):
    """A top-up: a transfer to the hot wallet, or to a pool address without an owner. Units are the ledger's.

    It has no txid if only the balance shows it.
    """

    id: UUID
    network: str
    txid: str
    ordinal: str
    currency: str
    units: Units
    sender: str
    # Where it came to, in the stored form.
    address: str
    origin: Origin
    block_height: Big
    block_hash: str
    # Of a booked return from the cold address: the amount that the books had there, and the excess.
    known_units: Units = BY_DATABASE
    excess_units: Units = BY_DATABASE
    # The least number of confirmations, even if the network's maturity is less.
    depth_min: int = 0
    status: str = BY_DATABASE
    round: int = BY_DATABASE
    created_at: datetime = BY_DATABASE
    doubted_for: str | None = BY_DATABASE
    agreed_at: datetime | None = BY_DATABASE
    asked_at: datetime | None = BY_DATABASE
    attempts: int = BY_DATABASE
    next_attempt_at: datetime = BY_DATABASE
    problem: str = BY_DATABASE


class TreasuryWalk(Table, table="treasury_walks"):
    """Where a round over deposit addresses goes on."""

    network: str
    walker: str
    currency: str
    address: str


class Move(Table, table="treasury_moves"):
    """An amount that an operator carried from a cold address to another network."""

    id: UUID
    currency: str
    from_network: str
    to_network: str
    # The transaction by which it left the cold address.
    txid: str
    units: Units
    moved_by: str
    created_at: datetime = BY_DATABASE


class LiquidityAlarm(Table, table="liquidity_alarms l"):
    """A coin that a network's payouts lacked, and when that was last logged."""

    network: str
    currency: str
    logged_at: datetime = BY_DATABASE
