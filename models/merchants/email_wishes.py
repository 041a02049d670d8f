"""Answers if anyone asks this gateway for e-mails. Used by the concern about a missing SMTP_URL."""

from __future__ import annotations

from typing import Final

from models.db.base import is_true

# The newest rows of a table that are looked at.
ROWS_MAX: Final = 100


def is_any() -> bool:
    """Return True if an owner has an address for notices, or one of the newest cheques or payments names a recipient.

    Reads a bounded number of rows.
    """
    return is_true(
        "SELECT EXISTS (SELECT FROM owner_emails) OR EXISTS (SELECT FROM"
        f" (SELECT email FROM payout_links ORDER BY id DESC LIMIT {ROWS_MAX}) newest WHERE email <> '') OR EXISTS"
        f" (SELECT FROM (SELECT payer_email FROM invoices ORDER BY id DESC LIMIT {ROWS_MAX}) newest"
        "  WHERE payer_email <> '')"
    )
