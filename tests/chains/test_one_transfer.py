"""What nodes tell of one transfer, held against each other: whose word about its fee counts."""

from __future__ import annotations

import pytest

from chains.base import ProviderError
from chains.one_transfer import living, only_output
from chains.spending import Fate, FateKind, Intent, KeyRef, Output, OutputFate


def included(effect: str, *, fee: int) -> Fate:
    return Fate(
        kind=FateKind.INCLUDED,
        txid="a",
        outputs=(OutputFate(effect=effect),),  # type: ignore[arg-type]
        fee_units=fee,
    )


def test_whoever_is_outvoted_about_the_effect_says_nothing_of_the_fee() -> None:
    told = [included("exact", fee=5), included("none", fee=9), included("exact", fee=4)]

    found = living(told, needed=2, is_fee_one=False)

    assert found is not None
    assert (found.is_success, found.fee_units, found.is_witnessed) == (True, 5, True)


def test_where_a_fee_is_one_whoever_tells_another_tells_something_else() -> None:
    told = [included("exact", fee=5), included("exact", fee=4)]

    assert living(told, needed=2, is_fee_one=False) is not None
    with pytest.raises(ProviderError, match="disagree"):
        living(told, needed=2)


@pytest.mark.parametrize("count", [0, 2])
def test_a_transaction_makes_one_transfer(count: int) -> None:
    output = Output(recipient="b", units=1)

    with pytest.raises(ValueError, match="makes one transfer"):
        only_output(Intent(wallet=KeyRef(address="a", ordinal=None), pair=None, outputs=(output,) * count))
