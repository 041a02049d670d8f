"""Counts add up in whole numbers, in any order, and know their labels."""

from __future__ import annotations

from itertools import permutations

import pytest

from core.logs import counters
from core.logs.counters import FAMILIES, Counters, added, less

LABELS = ("invoices", "create_invoice")


def test_a_counter_grows_by_labels() -> None:
    mine = Counters()
    mine.count("sluice_payouts_ended", "confirmed")
    mine.count("sluice_payouts_ended", "confirmed", by=2)
    mine.count("sluice_payouts_ended", "failed")

    assert mine.snapshot() == {
        ("sluice_payouts_ended", ("confirmed",)): [3],
        ("sluice_payouts_ended", ("failed",)): [1],
    }


@pytest.mark.parametrize("labels", [(), ("a", "b")])
def test_labels_that_a_family_lacks_are_refused(labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="labels"):
        Counters().count("sluice_payouts_ended", *labels)


@pytest.mark.parametrize(("parts", "bucket"), [(0, 0), (5, 0), (6, 1), (900_000, 17), (900_001, 18)])
def test_a_value_counts_in_the_first_bucket_that_holds_it(parts: int, bucket: int) -> None:
    mine = Counters()
    mine.observe("dramatiq_message_duration_milliseconds", *LABELS, parts=parts, times=3)

    (numbers,) = mine.snapshot().values()
    assert numbers[0] == 3 * parts
    assert [place for place, number in enumerate(numbers[1:]) if number == 3] == [bucket]
    assert sum(numbers[1:]) == 3
    assert len(numbers) == len(FAMILIES["dramatiq_message_duration_milliseconds"].bounds) + 2


def test_a_snapshot_does_not_change() -> None:
    mine = Counters()
    mine.count("sluice_payouts_ended", "failed")
    before = mine.snapshot()
    mine.count("sluice_payouts_ended", "failed")

    assert before == {("sluice_payouts_ended", ("failed",)): [1]}


def test_a_sum_is_the_same_in_every_order_and_leaves_out_other_shapes() -> None:
    first, second, third = {("a", ()): [1]}, {("a", ()): [2], ("b", ("x",)): [1, 2]}, {("b", ("x",)): [3, 4]}

    sums = [added(order) for order in permutations([first, second, third])]
    assert sums == [{("a", ()): [3], ("b", ("x",)): [4, 6]}] * 6
    assert added([second, {("b", ("x",)): [9]}])["b", ("x",)] == [1, 2]


def test_a_difference_has_the_numbers_that_changed() -> None:
    assert less({("a", ()): [3], ("b", ()): [4]}, {("a", ()): [1], ("b", ()): [4]}) == {("a", ()): [2]}


def test_a_process_counts_in_one_place() -> None:
    counters.count("sluice_payouts_ended", "failed")
    counters.observe("sluice_http_request_seconds", "/healthz", parts=2_000)

    assert counters.snapshot()["sluice_payouts_ended", ("failed",)] == [1]
    assert counters.snapshot()["sluice_http_request_seconds", ("/healthz",)][:2] == [2_000, 1]
