"""Reads merchants' terms: fees, tolerance, accepted methods. Cached by a process and checked by version when used."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple, Self
from uuid import UUID

from core.rates.pricing import StandardTerms, Terms
from models.db.base import one

# In one statement, which reads one snapshot: a version never comes with the terms of another.
_TERMS: Final = (
    "SELECT terms_version, own_fee_ppm, own_fee_fixed_usd_cents, accuracy_enabled, accuracy_ppm,"
    " (SELECT json_agg(json_build_array(a.currency, a.network)) FROM accepted_methods a WHERE a.merchant_id = m.id),"
    " (SELECT json_agg(json_build_array(d.currency, d.network, d.discount_ppm)) FROM discounts d"
    "  WHERE d.merchant_id = m.id)"
    " FROM merchants m WHERE m.id = %s"
)


class Accuracy(NamedTuple):
    """The tolerance that a merchant has set; it outlives being switched off. None: never set."""

    enabled: bool
    ppm: int | None

    def or_standard(self, standard: StandardTerms) -> Self:
        """Return the gateway's tolerance, if it has one, for a merchant that never set its own."""
        is_own = self.ppm is not None or not standard.accuracy_ppm
        return self if is_own else self._replace(enabled=True, ppm=standard.accuracy_ppm)


def load_terms(merchant_id: UUID, standard: StandardTerms) -> Terms:
    """Read a merchant's terms, the gateway's where it has none of its own. It exists: its key was verified."""
    row = one(_TERMS, (merchant_id,))
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    version, fee_ppm, fee_fixed_usd_cents, is_accuracy_enabled, accuracy_ppm, accepted, discounts = row
    accuracy = Accuracy(is_accuracy_enabled, accuracy_ppm).or_standard(standard)
    return Terms(
        version=version,
        fee_ppm=standard.fee_ppm if fee_ppm is None else fee_ppm,
        fee_fixed_usd_cents=standard.fee_fixed_usd_cents if fee_fixed_usd_cents is None else fee_fixed_usd_cents,
        price_max_usd=standard.price_max_usd,
        lifetime_s=standard.lifetime_s,
        quote_s=standard.quote_s,
        accuracy_ppm=accuracy.ppm if accuracy.enabled else None,
        accepted=None if accepted is None else frozenset((currency, network) for currency, network in accepted),
        discounts_ppm={(currency, network): ppm for currency, network, ppm in discounts or ()},
    )


class TermsCache:
    """Terms of the merchants that this process served lately; a stale entry is found out by its version."""

    def __init__(self, standard: StandardTerms, *, size: int = 10_000) -> None:
        self._standard = standard
        self._size = size
        self._lock = threading.Lock()
        self._terms: dict[UUID, Terms] = {}

    def read(self, merchant_id: UUID) -> Terms:
        """Return a merchant's terms, perhaps of an earlier version."""
        terms = self._terms.get(merchant_id)
        return terms if terms is not None else self.refresh(merchant_id)

    def refresh(self, merchant_id: UUID) -> Terms:
        """Read the terms again and cache them."""
        terms = load_terms(merchant_id, self._standard)
        with self._lock:
            if len(self._terms) >= self._size:
                self._terms.clear()
            self._terms[merchant_id] = terms
        return terms
