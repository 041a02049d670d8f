"""A merchant's terms are read together, change with their version, and belong to one merchant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import psycopg2
import pytest

from core.errors import AccuracyBadPercent
from core.ids import uuid7
from core.rates.pricing import Terms
from models.db.base import execute, one, transaction
from models.merchants import term_changes
from models.merchants.rows import UnknownMerchantError, create_merchant
from models.merchants.terms import Accuracy, TermsCache, load_terms
from tests.core.rates.builders import TERMS
from tests.models.builders import STANDARD, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import create, new_invoice

BSC, TRON, BITCOIN = ("USDT", "bsc"), ("USDT", "tron"), ("BTC", "bitcoin")


def accept(shop: UUID, *methods: tuple[str, str]) -> Terms:
    with transaction():
        term_changes.replace_accepted(shop, methods)
    return load_terms(shop, STANDARD)


def discount(shop: UUID, ppm: int, *methods: tuple[str, str]) -> Terms:
    with transaction():
        term_changes.set_discount(shop, methods, ppm)
    return load_terms(shop, STANDARD)


def tolerate(shop: UUID, *, enabled: bool | None = None, ppm: int | None = None) -> Terms:
    with transaction():
        term_changes.set_accuracy(shop, STANDARD, enabled=enabled, ppm=ppm)
    return load_terms(shop, STANDARD)


def test_a_new_merchant_accepts_every_method_without_tolerance(shop: UUID) -> None:
    assert load_terms(shop, STANDARD) == TERMS
    assert term_changes.read_accuracy(shop, STANDARD) == Accuracy(enabled=False, ppm=None)


def test_a_merchants_own_fee_overrides_the_gateways(database: str) -> None:
    del database
    shop, other = create_merchant("Shop").id, create_merchant("Other").id
    dearer = replace(STANDARD, fee_ppm=20_000, fee_fixed_usd_cents=50, price_max_usd=7)
    assert load_terms(shop, dearer) == replace(TERMS, fee_ppm=20_000, fee_fixed_usd_cents=50, price_max_usd=7)

    term_changes.set_fee_percent(shop, 0)
    assert load_terms(shop, dearer) == replace(TERMS, version=2, fee_ppm=0, fee_fixed_usd_cents=50, price_max_usd=7)
    term_changes.set_fee_fixed(shop, 0)
    term_changes.set_fee_percent(shop, None)

    assert load_terms(shop, dearer) == replace(TERMS, version=4, fee_ppm=20_000, fee_fixed_usd_cents=0, price_max_usd=7)
    assert load_terms(other, dearer).version == 1
    with pytest.raises(UnknownMerchantError):
        term_changes.set_fee_fixed(uuid7(), 1)


def test_accepted_methods_are_replaced_and_an_empty_list_means_all(shop: UUID) -> None:
    assert accept(shop, BSC, TRON) == replace(TERMS, version=2, accepted=frozenset({BSC, TRON}))
    assert accept(shop, BSC, BITCOIN) == replace(TERMS, version=3, accepted=frozenset({BSC, BITCOIN}))
    assert accept(shop) == replace(TERMS, version=4)


def test_discounts_are_set_changed_and_removed_by_method(shop: UUID) -> None:
    assert discount(shop, 25_000, BSC, TRON).discounts_ppm == {BSC: 25_000, TRON: 25_000}
    assert discount(shop, -990_000, TRON).discounts_ppm == {BSC: 25_000, TRON: -990_000}
    assert discount(shop, 0, BSC, BITCOIN) == replace(TERMS, version=4, discounts_ppm={TRON: -990_000})


def test_a_tolerance_applies_while_enabled_and_is_kept_while_disabled(shop: UUID) -> None:
    assert tolerate(shop, ppm=20_000) == replace(TERMS, version=2)
    assert tolerate(shop, enabled=True) == replace(TERMS, version=3, accuracy_ppm=20_000)
    assert tolerate(shop, ppm=10_000).accuracy_ppm == 10_000
    assert tolerate(shop, enabled=False).accuracy_ppm is None
    assert term_changes.read_accuracy(shop, STANDARD) == Accuracy(enabled=False, ppm=10_000)
    assert tolerate(shop, enabled=True).accuracy_ppm == 10_000


def test_the_gateways_tolerance_is_for_merchants_that_never_set_their_own(shop: UUID) -> None:
    tolerant = replace(STANDARD, accuracy_ppm=10_000)
    assert load_terms(shop, tolerant) == replace(TERMS, accuracy_ppm=10_000)
    assert term_changes.read_accuracy(shop, tolerant) == Accuracy(enabled=True, ppm=10_000)

    with transaction():
        assert term_changes.set_accuracy(shop, tolerant, enabled=False, ppm=None) == Accuracy(enabled=False, ppm=10_000)
    assert load_terms(shop, tolerant).accuracy_ppm is None
    assert tolerate(shop, enabled=True, ppm=30_000).accuracy_ppm == load_terms(shop, tolerant).accuracy_ppm == 30_000


def test_times_of_payments_are_the_gateways(shop: UUID) -> None:
    own = replace(STANDARD, lifetime_s=600, quote_s=300)
    assert load_terms(shop, own) == replace(TERMS, lifetime_s=600, quote_s=300)


@pytest.mark.parametrize(("enabled", "ppm"), [(True, None), (True, 0), (True, 9_999)])
def test_a_refused_tolerance_changes_nothing(shop: UUID, *, enabled: bool, ppm: int | None) -> None:
    with pytest.raises(AccuracyBadPercent):
        tolerate(shop, enabled=enabled, ppm=ppm)

    assert load_terms(shop, STANDARD) == TERMS


def test_an_enabled_tolerance_cannot_be_below_1_percent(shop: UUID) -> None:
    tolerate(shop, enabled=True, ppm=30_000)

    with pytest.raises(AccuracyBadPercent):
        tolerate(shop, ppm=0)
    assert load_terms(shop, STANDARD).accuracy_ppm == 30_000
    assert tolerate(shop, enabled=False, ppm=0).accuracy_ppm is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE merchants SET accuracy_enabled = true",
        "UPDATE merchants SET accuracy_enabled = true, accuracy_ppm = 9999",
        "UPDATE merchants SET accuracy_ppm = 50001",
        "INSERT INTO discounts SELECT id, 'USDT', 'bsc', 990001 FROM merchants",
        "INSERT INTO discounts SELECT id, 'USDT', 'bsc', -990001 FROM merchants",
        "INSERT INTO discounts SELECT id, 'USDT', 'bsc', 0 FROM merchants",
    ],
)
@pytest.mark.usefixtures("shop")
def test_the_database_refuses_impossible_terms(statement: str) -> None:
    with pytest.raises(Exception, match="violates check constraint") as refusal:
        execute(statement)
    assert isinstance(refusal.value.__cause__ or refusal.value, psycopg2.Error)


def test_terms_of_merchants_are_independent(shop: UUID) -> None:
    other = merchant()
    accept(other, BSC)
    discount(other, 10_000, BSC)
    tolerate(other, enabled=True, ppm=10_000)

    assert load_terms(shop, STANDARD) == TERMS
    assert load_terms(other, STANDARD).version == 4
    discount(shop, 0, BSC)
    accept(shop)
    assert (load_terms(other, STANDARD).accepted, load_terms(other, STANDARD).discounts_ppm) == (
        frozenset({BSC}),
        {BSC: 10_000},
    )


def test_an_unknown_merchant_has_no_terms(shop: UUID) -> None:
    del shop
    with pytest.raises(LookupError):
        load_terms(uuid7(), STANDARD)
    with pytest.raises(LookupError):
        term_changes.read_accuracy(uuid7(), STANDARD)


def test_a_rolled_back_change_does_not_raise_the_version(shop: UUID) -> None:
    def change() -> None:
        with transaction():
            term_changes.replace_accepted(shop, [BSC])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert load_terms(shop, STANDARD) == TERMS


def test_concurrent_changes_run_in_turn_and_each_raises_the_version(shop: UUID) -> None:
    def change(number: int) -> Terms:
        match number % 3:
            case 0:
                return accept(shop, BSC, TRON)
            case 1:
                return discount(shop, 1_000 * number, BSC, TRON, BITCOIN)
            case _:
                return tolerate(shop, enabled=True, ppm=10_000 + number)

    outcomes = at_once(24, change)

    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    after = load_terms(shop, STANDARD)
    assert after.version == 25
    assert after.accepted == {BSC, TRON}
    assert len(set(after.discounts_ppm.values())) == 1
    assert len(after.discounts_ppm) == 3


def test_a_version_is_read_with_its_own_terms(shop: UUID) -> None:
    """Each change sets the discount that its version names; a read between two sees one of them whole."""

    def work(number: int) -> list[Terms]:
        if number == 0:
            for version in range(2, 102):
                discount(shop, 1_000 * version, BSC)
            return []
        seen = [load_terms(shop, STANDARD)]
        while seen[-1].version < 101:
            seen.append(load_terms(shop, STANDARD))
        return seen

    outcomes = at_once(3, work)

    seen = [terms for outcome in outcomes if isinstance(outcome, list) for terms in outcome]
    assert {terms.version for terms in seen} >= {101}
    assert all(terms.discounts_ppm == {BSC: 1_000 * terms.version} for terms in seen if terms.version > 1)


def test_cached_terms_are_refreshed_after_they_proved_stale(shop: UUID) -> None:
    here, elsewhere = TermsCache(STANDARD), TermsCache(STANDARD)
    for cache in (here, elsewhere):
        assert cache.read(shop) == TERMS

    changes: list[Callable[[], Terms]] = [
        lambda: accept(shop, BSC),
        lambda: discount(shop, 5, BSC),
        lambda: tolerate(shop, enabled=True, ppm=10_000),
    ]
    for change in changes:
        changed = change()
        for cache in (here, elsewhere):
            stale = cache.read(shop)
            assert create(new_invoice(shop), terms_version=stale.version) == ("stale_terms", None)
            assert cache.refresh(shop) == cache.read(shop) == changed
            assert create(new_invoice(shop), terms_version=changed.version)[0] == "created"
    assert one("SELECT count(*) FROM invoices") == (6,)
