"""Merchants' terms: fees, tolerance, accepted methods. Cached by a process and checked by version when used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core.pricing import Terms
from models.base import one

if TYPE_CHECKING:
    from uuid import UUID


def load_terms(merchant_id: UUID) -> Terms:
    """Read a merchant's terms. The merchant exists: its key was verified."""
    found = one(
        "SELECT terms_version, fee_ppm, fee_fixed_usd_cents, accuracy_ppm FROM merchants WHERE id = %s", (merchant_id,)
    )
    if found is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    version, fee_ppm, fee_fixed_usd_cents, accuracy_ppm = found
    return Terms(
        version=version,
        fee_ppm=fee_ppm,
        fee_fixed_usd_cents=fee_fixed_usd_cents,
        accuracy_ppm=accuracy_ppm,
        accepted=None,
        discounts_ppm={},
    )


class TermsCache:
    """Terms of the merchants that this process served lately; a stale entry is found out by its version."""

    def __init__(self, *, size: int = 10_000) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._terms: dict[UUID, Terms] = {}

    def read(self, merchant_id: UUID) -> Terms:
        """Return a merchant's terms, perhaps of an earlier version."""
        found = self._terms.get(merchant_id)
        return found if found is not None else self.refresh(merchant_id)

    def refresh(self, merchant_id: UUID) -> Terms:
        """Read the terms anew and keep them."""
        terms = load_terms(merchant_id)
        with self._lock:
            if len(self._terms) >= self._size:
                self._terms.clear()
            self._terms[merchant_id] = terms
        return terms
