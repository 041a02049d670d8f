"""Numbers of providers: those that no row can hold are refused where they are read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chains import base
from chains.base import COUNT_MAX, TIME_MAX, TIME_MIN, UNITS_MAX, Block, ContradictionError, Transfer
from chains.spending import Departure, Fate, FateKind, Offer

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def block(height: int = 8, time: datetime = NOW) -> Block:
    return Block(height=height, hash="0x8", parent_height=height - 1, parent_hash="0x7", time=time)


def transfer(units: int) -> Transfer:
    return Transfer(txid="0xaa", ordinal="0", currency="USDT", units=units, sender="0xa", recipient="0xb")


def fate(**answer: Any) -> Fate:
    return Fate(kind=FateKind.INCLUDED, **answer)


def departure(fee_units: int) -> Departure:
    return Departure(
        txid="0xaa", sender="0xa", pair=None, outputs=(), is_transfer=True, raw=b"",
        offer=Offer(ceiling_units=0, terms={}), fee_units=fee_units, height=8, block_hash="0x8",
    )  # fmt: skip


TELL: dict[str, tuple[Callable[[Any], object], Any, Any]] = {
    "height": (block, 0, COUNT_MAX),
    "time": (lambda time: block(time=time), TIME_MIN, TIME_MAX),
    "transfer": (transfer, 0, UNITS_MAX),
    "fate's height": (lambda height: fate(height=height), 0, COUNT_MAX),
    # A closed account may give back more than the fee.
    "fate's fee": (lambda units: fate(fee_units=units), -UNITS_MAX, UNITS_MAX),
    "departure's fee": (departure, 0, UNITS_MAX),
    "read height": (base.check_count, 0, COUNT_MAX),
    "read units": (base.check_units, 0, UNITS_MAX),
}


@pytest.mark.parametrize(("tell", "least", "most"), TELL.values(), ids=TELL)
def test_numbers_are_bounded_on_both_sides(tell: Callable[[Any], object], least: Any, most: Any) -> None:
    step: Any = timedelta(microseconds=1) if isinstance(least, datetime) else 1
    for number in (least, most):
        tell(number)
    for number in (least - step, most + step):
        with pytest.raises(ContradictionError):
            tell(number)
