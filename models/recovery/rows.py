"""Declares the rows of losses that an operator wrote off."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import BY_DATABASE, Table, Units


class Writeoff(Table, table="treasury_writeoffs"):
    """A loss that an operator wrote off."""

    id: UUID
    network: str
    currency: str
    units: Units
    unexplained_units: Units
    reason: str
    written_by: str
    created_at: datetime = BY_DATABASE
