"""Declares the tables of the audit."""

from __future__ import annotations

from datetime import datetime

from models.db.table import Big, Numeric, Table


class AuditCheckpoint(Table, table="audit_checkpoint"):
    """Up to which transfer the books were audited."""

    only_row: bool
    through_id: Big
    passed_at: datetime | None
    full_passed_at: datetime | None


class AuditSum(Table, table="audit_sums"):
    """The sum that one account gave another up to the checkpoint."""

    debit_account: Big
    credit_account: Big
    currency: str
    transfers: Big
    units: Numeric
