"""An invoice's status follows from its deposits and the time, only along the specification's table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.invoices.states import (
    DECIDED_STATUSES,
    FINAL_STATUSES,
    INVOICE_EVENTS,
    INVOICE_TRANSITIONS,
    ForbiddenTransitionError,
    InvoiceFacts,
    InvoiceStatus,
    check_transition,
    is_over,
    is_short,
    judge,
)

STATUSES: Final[tuple[InvoiceStatus, ...]] = get_args(InvoiceStatus)
TARGET: Final = 100_000_000
PERCENT_5: Final = 50_000
# The transitions that the specification's table allows. From wrong_amount to paid leads resolve; from expired to select
# and check leads is_refresh; from both to paid and paid_over leads a deposit that was sent in time and found late.
ALLOWED: Final = {
    ("select", "check"), ("select", "expired"),
    ("check", "paid"), ("check", "paid_over"), ("check", "wrong_amount"), ("check", "expired"),
    ("paid", "paid_over"), ("paid", "check"),
    ("paid_over", "check"),
    ("wrong_amount", "paid"), ("wrong_amount", "paid_over"), ("wrong_amount", "expired"),
    ("expired", "paid"), ("expired", "paid_over"), ("expired", "wrong_amount"),
    ("expired", "check"), ("expired", "select"),
}  # fmt: skip


def facts(
    status: InvoiceStatus = "check", *, confirmed: int = 0, in_time: int | None = None, **more: Any
) -> InvoiceFacts:
    """Return facts of an unpaid invoice before its expiry; confirmed sums came in time."""
    return InvoiceFacts(
        **{
            "status": status,
            "target_units": None if status == "select" else TARGET,
            "accuracy_ppm": 0,
            "confirmed_units": confirmed,
            "confirmed_in_time_units": confirmed if in_time is None else in_time,
            "pending_in_time": 0,
            "resolvable_strays": 0,
            "expiry_passed": False,
        }
        | more
    )


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(facts("select"), "select", id="select waits for a choice"),
        pytest.param(facts("select", expiry_passed=True), "expired", id="select expires"),
        pytest.param(facts(), "check", id="check waits for money"),
        pytest.param(facts(pending_in_time=1), "check", id="check waits for confirmations"),
        pytest.param(facts(confirmed=TARGET - 1), "check", id="a part leaves check open until the expiry"),
        pytest.param(facts(expiry_passed=True), "expired", id="check expires without a deposit"),
        pytest.param(facts(expiry_passed=True, pending_in_time=1), "check", id="a deposit made in time keeps check"),
        pytest.param(
            facts(confirmed=1, expiry_passed=True, pending_in_time=1), "check", id="so does one beside a part"
        ),
        pytest.param(
            facts(expiry_passed=True, resolvable_strays=1), "wrong_amount", id="strays alone expire as wrong_amount"
        ),
        pytest.param(facts(confirmed=TARGET), "paid", id="exact"),
        pytest.param(facts(confirmed=TARGET, expiry_passed=True), "paid", id="exact in time, judged late"),
        pytest.param(
            facts(confirmed=TARGET, pending_in_time=1), "paid", id="decided although another deposit is pending"
        ),
        pytest.param(facts(confirmed=TARGET + 1), "paid_over", id="one unit more"),
        pytest.param(facts(confirmed=TARGET - 1, expiry_passed=True), "wrong_amount", id="one unit less at the expiry"),
        pytest.param(facts(confirmed=1, expiry_passed=True), "wrong_amount", id="one unit at all"),
        pytest.param(
            facts(confirmed=TARGET, in_time=0, expiry_passed=True), "wrong_amount", id="the whole sum, but late"
        ),
        pytest.param(
            facts(confirmed=TARGET, in_time=TARGET - 1, expiry_passed=True), "wrong_amount", id="the last unit late"
        ),
        pytest.param(
            facts(confirmed=TARGET + 1, in_time=TARGET, expiry_passed=True), "paid_over", id="paid in time, more late"
        ),
        pytest.param(facts("expired"), "expired", id="expired stays"),
        pytest.param(facts("expired", expiry_passed=True, resolvable_strays=1), "expired", id="nor by a late stray"),
        pytest.param(facts("expired", confirmed=1, in_time=0), "wrong_amount", id="a late deposit reopens expired"),
        pytest.param(
            facts("expired", confirmed=TARGET, in_time=0), "wrong_amount", id="a late deposit of the whole sum too"
        ),
        pytest.param(facts("expired", confirmed=TARGET), "paid", id="the whole sum in time, found late"),
        pytest.param(facts("expired", confirmed=TARGET + 1), "paid_over", id="more in time, found late"),
        pytest.param(
            facts("expired", confirmed=1, pending_in_time=1), "expired", id="a part found late waits for the rest of it"
        ),
        pytest.param(
            facts("expired", confirmed=TARGET, pending_in_time=1), "paid", id="enough found late waits for nothing"
        ),
        pytest.param(facts("expired", target_units=None), "expired", id="without a coin there is nothing to find"),
        pytest.param(facts("wrong_amount", confirmed=TARGET), "paid", id="the rest of a part, found late"),
        pytest.param(
            facts("wrong_amount", confirmed=TARGET + 1, in_time=TARGET), "paid_over", id="found late beside a late one"
        ),
        pytest.param(
            facts("wrong_amount", confirmed=TARGET, has_refund=True), "wrong_amount", id="not where money went back"
        ),
        pytest.param(facts("paid", confirmed=TARGET), "paid", id="paid stays"),
        pytest.param(facts("paid", confirmed=TARGET, expiry_passed=True), "paid", id="paid does not expire"),
        pytest.param(facts("paid", confirmed=TARGET + 1), "paid_over", id="further deposits lift paid to paid_over"),
        pytest.param(facts("paid", confirmed=TARGET - 1), "check", id="a reorg takes paid back to check"),
        pytest.param(facts("paid", confirmed=0, expiry_passed=True), "check", id="even after the expiry"),
        pytest.param(facts("paid_over", confirmed=TARGET + 1), "paid_over", id="paid_over stays"),
        pytest.param(facts("paid_over", confirmed=TARGET - 1), "check", id="a reorg takes paid_over back to check"),
        pytest.param(facts("paid_over", confirmed=TARGET), "check", id="also where what is left is the exact sum"),
        pytest.param(
            facts("check", confirmed=1, accepted_units=1), "paid", id="a reorg took what came after an acceptance"
        ),
        pytest.param(
            facts("check", confirmed=1, accepted_units=2), "check", id="it took part of what was accepted"
        ),
        pytest.param(facts("wrong_amount", confirmed=1), "wrong_amount", id="wrong_amount stays"),
        pytest.param(
            facts("wrong_amount", confirmed=2 * TARGET, in_time=1), "wrong_amount", id="nor does more money decide it"
        ),
        pytest.param(facts("wrong_amount", confirmed=0), "expired", id="a reorg took its last deposit"),
        pytest.param(facts("wrong_amount", resolvable_strays=1), "wrong_amount", id="strays alone keep wrong_amount"),
    ],
)  # fmt: skip
def test_each_case_of_the_table_gets_its_status(known: InvoiceFacts, expected: InvoiceStatus) -> None:
    assert judge(known) == expected


@pytest.mark.parametrize(
    ("accuracy_ppm", "paid_units", "expected"),
    [
        (0, TARGET - 1, "wrong_amount"),
        (0, TARGET, "paid"),
        (0, TARGET + 1, "paid_over"),
        (PERCENT_5, 95_000_000 - 1, "wrong_amount"),
        (PERCENT_5, 95_000_000, "paid"),
        (PERCENT_5, 95_000_000 + 1, "paid"),
        (PERCENT_5, 105_000_000 - 1, "paid"),
        (PERCENT_5, 105_000_000, "paid"),
        (PERCENT_5, 105_000_000 + 1, "paid_over"),
    ],
)
def test_the_tolerance_includes_both_bounds(accuracy_ppm: int, paid_units: int, expected: InvoiceStatus) -> None:
    assert judge(facts(confirmed=paid_units, accuracy_ppm=accuracy_ppm, expiry_passed=True)) == expected


@pytest.mark.parametrize("status", ["check", "paid", "paid_over", "expired", "wrong_amount"])
@pytest.mark.parametrize(("small_units", "expected"), [(2, "paid"), (1, "paid_over")])
def test_dust_deposits_pay_an_invoice_but_never_overpay_it(
    status: InvoiceStatus, small_units: int, expected: InvoiceStatus
) -> None:
    known = facts(status, confirmed=TARGET + 2, small_units=small_units)
    if (status, expected) == ("paid_over", "paid"):
        assert judge(known) == "check"
        known = facts(confirmed=TARGET + 2, small_units=small_units)
    assert judge(known) == expected


def test_a_tolerance_bound_between_two_units_is_not_rounded() -> None:
    # 3 ± 5 % is 2.85 to 3.15 units: neither 2 nor 4 is inside.
    assert [is_short(units, 3, PERCENT_5) for units in (2, 3)] == [True, False]
    assert [is_over(units, 3, PERCENT_5) for units in (3, 4)] == [False, True]


UNITS = st.integers(min_value=0, max_value=10**30)


@st.composite
def any_facts(draw: st.DrawFn) -> InvoiceFacts:
    status = draw(st.sampled_from(STATUSES))
    target = draw(st.integers(min_value=1, max_value=10**30))
    near = st.integers(min_value=-2, max_value=2).map(lambda by: max(0, target + by))
    in_time, late = draw(near | UNITS), draw(st.just(0) | UNITS)
    return InvoiceFacts(
        status=status,
        target_units=target if status != "select" else None,
        accuracy_ppm=draw(st.sampled_from([0, 1, PERCENT_5]) | st.integers(min_value=0, max_value=PERCENT_5)),
        confirmed_in_time_units=in_time if status != "select" else 0,
        confirmed_units=in_time + late if status != "select" else 0,
        pending_in_time=draw(st.integers(min_value=0, max_value=2)),
        resolvable_strays=draw(st.integers(min_value=0, max_value=2)),
        expiry_passed=draw(st.booleans()),
    )


@given(known=any_facts())
def test_judgement_keeps_to_the_table_and_settles(known: InvoiceFacts) -> None:
    path = [known.status]
    for _ in STATUSES:
        moved = InvoiceFacts(**{name: getattr(known, name) for name in InvoiceFacts.__slots__} | {"status": path[-1]})
        path.append(judge(moved))
    for before, after in pairwise(path):
        if before != after:
            check_transition(INVOICE_TRANSITIONS, before, after)
    assert path[-1] == path[-2]


@given(known=any_facts())
def test_an_invoice_without_confirmed_money_is_not_paid(known: InvoiceFacts) -> None:
    if known.confirmed_units == 0:
        assert judge(known) not in DECIDED_STATUSES


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_only_the_transitions_of_the_table_are_allowed(before: InvoiceStatus, after: InvoiceStatus) -> None:
    if (before, after) in ALLOWED:
        check_transition(INVOICE_TRANSITIONS, before, after)
    else:
        with pytest.raises(ForbiddenTransitionError, match=f"{before} -> {after}"):
            check_transition(INVOICE_TRANSITIONS, before, after)


@pytest.mark.parametrize("status", ["check", "paid", "paid_over"])
def test_a_payable_invoice_without_a_target_is_refused(status: InvoiceStatus) -> None:
    with pytest.raises(ForbiddenTransitionError):
        judge(facts(status, target_units=None))


def test_all_tables_have_the_same_statuses() -> None:
    assert set(INVOICE_TRANSITIONS) == set(STATUSES)
    assert {after for allowed in INVOICE_TRANSITIONS.values() for after in allowed} == set(STATUSES)
    assert {"paid", "paid_over", "expired"} == FINAL_STATUSES
    assert {"paid", "paid_over"} == DECIDED_STATUSES
    assert {status: f"invoice.{status}" for status in STATUSES if status not in {"select", "check"}} == INVOICE_EVENTS
