"""Joins an invoice's row with what no column of it has: the quotes that are derived and not written.

Made by models.invoices.quoting; read by models.invoices.views and timeline, and by the payment page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from models.invoices.rows import HOLDING_PART, InvoiceRow, QuoteRow


@dataclass(frozen=True, slots=True)
class Shown:
    """An invoice at the quote that is in force at a moment."""

    invoice: InvoiceRow
    # Since when there is no price; None while there is one.
    unpriced_at: datetime | None = None
    # The quotes that followed the stored one and are not written, oldest first.
    later: tuple[QuoteRow, ...] = ()

    @property
    def is_unpriced(self) -> bool:
        """Return whether the sum due is unknown. A buyer who has paid into it owes by the last quote."""
        return (
            self.invoice.status == "check"
            and self.unpriced_at is not None
            and self.invoice.detected_units * HOLDING_PART < (self.invoice.payer_units or 0)
        )
