"""Reports of one transfer by several nodes are compared: which node decides its fee."""

from __future__ import annotations

import pytest

from chains.base import ProviderError
from chains.one_transfer import is_refused, living, only_output
from chains.spending import Fate, FateKind, Intent, KeyRef, Output, OutputFate


def included(effect: str, *, fee: int) -> Fate:
    return Fate(
        kind=FateKind.INCLUDED,
        txid="a",
        outputs=(OutputFate(effect=effect),),  # type: ignore[arg-type]
        fee_units=fee,
    )


def test_a_node_outvoted_about_the_effect_does_not_decide_the_fee() -> None:
    fates = [included("exact", fee=5), included("none", fee=9), included("exact", fee=4)]

    verdict = living(fates, needed=2, is_fee_one=False)

    assert verdict is not None
    assert (verdict.is_success, verdict.fee_units, verdict.is_witnessed) == (True, 5, True)


def test_where_a_fee_is_one_whoever_tells_another_tells_something_else() -> None:
    fates = [included("exact", fee=5), included("exact", fee=4)]

    assert living(fates, needed=2, is_fee_one=False) is not None
    with pytest.raises(ProviderError, match="disagree"):
        living(fates, needed=2)


@pytest.mark.parametrize("count", [0, 2])
def test_a_transaction_makes_one_transfer(count: int) -> None:
    output = Output(recipient="b", units=1)

    with pytest.raises(ValueError, match="makes one transfer"):
        only_output(Intent(wallet=KeyRef(address="a", ordinal=None), pair=None, outputs=(output,) * count))


@pytest.mark.parametrize(
    ("refused", "passed", "providers", "expected"),
    [(1, 0, 1, True), (0, 1, 1, False), (2, 0, 2, True), (0, 2, 2, False), (2, 1, 3, True), (1, 2, 3, False)],
)
def test_a_trial_is_what_most_say_and_two_at_least(
    refused: int, passed: int, providers: int, *, expected: bool
) -> None:
    assert is_refused(refused=refused, passed=passed, providers=providers) is expected


@pytest.mark.parametrize(("refused", "passed"), [(1, 1), (1, 0), (0, 1)])
def test_one_of_two_says_nothing_of_a_trial(refused: int, passed: int) -> None:
    with pytest.raises(ProviderError, match="refuse a transfer"):
        is_refused(refused=refused, passed=passed, providers=2)
