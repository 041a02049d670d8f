"""Changes a merchant's terms, each counted in the transaction that makes it. Called by actors.merchants.terms and cli.

The count reveals outdated terms in a process's cache: a transaction that writes with terms compares it
(models.merchants.terms).
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from core.merchants import terms_rules
from core.rates.pricing import Method, StandardTerms
from models.db.base import execute
from models.merchants.rows import AcceptedMethod, Discount, Merchant, UnknownMerchantError, note_changed
from models.merchants.terms import Accuracy


def _count(merchant_id: UUID, term: str) -> None:
    """Count a change of a term. First of all, since it locks the merchant: changes at once take turns."""
    note_changed(merchant_id, term)
    execute("UPDATE merchants SET terms_version = terms_version + 1 WHERE id = %s", (merchant_id,))


def set_fee_percent(merchant_id: UUID, ppm: int | None) -> None:
    """Set a merchant's own percent fee, in parts per million; None restores the settings' fee.

    Applies only to objects created from now on. Raises UnknownMerchantError.
    """
    _set_own(merchant_id, "own_fee_ppm", ppm)


def set_fee_fixed(merchant_id: UUID, usd_cents: int | None) -> None:
    """Give a merchant a fixed fee of its own, as set_fee_percent() does."""
    _set_own(merchant_id, "own_fee_fixed_usd_cents", usd_cents)


def _set_own(merchant_id: UUID, column: str, value: int | None) -> None:
    sql = f"UPDATE merchants SET {column} = %s, terms_version = terms_version + 1 WHERE id = %s"
    if not execute(sql, (value, merchant_id)):
        raise UnknownMerchantError(f"there is no merchant {merchant_id}")
    note_changed(merchant_id, column)


def replace_accepted(merchant_id: UUID, methods: Collection[Method]) -> None:
    """Set the methods that a merchant accepts, in an open transaction; an empty list accepts all."""
    _count(merchant_id, "accepted_methods")
    execute("DELETE FROM accepted_methods WHERE merchant_id = %s", (merchant_id,))
    AcceptedMethod.write_all([AcceptedMethod(merchant_id=merchant_id, currency=c, network=n) for c, n in methods])


def set_discount(merchant_id: UUID, methods: Collection[Method], discount_ppm: int) -> None:
    """Give some methods a discount, in an open transaction; 0 takes it away."""
    _count(merchant_id, "discounts")
    execute(
        "DELETE FROM discounts d USING unnest(%s::text[], %s::text[]) AS m (currency, network)"
        " WHERE d.merchant_id = %s AND d.currency = m.currency AND d.network = m.network",
        ([currency for currency, _ in methods], [network for _, network in methods], merchant_id),
    )
    if discount_ppm:
        Discount.write_all(
            [Discount(merchant_id=merchant_id, currency=c, network=n, discount_ppm=discount_ppm) for c, n in methods]
        )


def read_accuracy(merchant_id: UUID, standard: StandardTerms) -> Accuracy:
    """Return the tolerance that a merchant has set, or the gateway's."""
    accuracy = Merchant.select(Merchant.accuracy_enabled, Merchant.accuracy_ppm)
    row = accuracy.where(Merchant.id == merchant_id).first()
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return Accuracy(*row).or_standard(standard)


def set_accuracy(merchant_id: UUID, standard: StandardTerms, *, enabled: bool | None, ppm: int | None) -> Accuracy:
    """Change what is given, in an open transaction, and return the whole; or raise accuracy.bad_percent."""
    _count(merchant_id, "accuracy")
    before = read_accuracy(merchant_id, standard)
    after = Accuracy(before.enabled if enabled is None else enabled, before.ppm if ppm is None else ppm)
    terms_rules.check_accuracy(enabled=after.enabled, ppm=after.ppm)
    execute("UPDATE merchants SET accuracy_enabled = %s, accuracy_ppm = %s WHERE id = %s", (*after, merchant_id))
    return after
