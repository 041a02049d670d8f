"""Declares the tables of the address pool."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import BY_DATABASE, Big, Table


class AddressChunk(Table, table="address_chunks"):
    """The signature of a chunk of pool addresses."""

    family: str
    chunk: Big
    signature: bytes
    created_at: datetime = BY_DATABASE


class PoolAddress(Table, table="pool_addresses"):
    """An address that the pool gives out, by its place in the derivation."""

    family: str
    ordinal: Big
    address: str


class AddressOwner(Table, table="address_owners"):
    """The owner of an address: an invoice or a wallet."""

    family: str
    ordinal: Big
    owner_kind: str
    owner_id: UUID
    assigned_at: datetime = BY_DATABASE


class AddressReturn(Table, table="address_returns"):
    """An address that came back unused and may be given out again."""

    family: str
    ordinal: Big
    taken_at: datetime | None


class AddressMark(Table, table="address_marks"):
    """How far addresses were claimed at a moment."""

    family: str
    marked_at: datetime
    ordinal: Big
