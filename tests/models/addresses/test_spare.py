"""The reserve of last addresses reads the pool's level as often as configured."""

from __future__ import annotations

import pytest

from models.addresses import spare
from models.addresses.spare import AddressReserve


@pytest.mark.parametrize(("fresh_s", "asked"), [({}, 1), ({"fresh_s": 10.0}, 2), ({"fresh_s": 0.0}, 5)])
def test_the_level_is_read_again_when_the_last_reading_is_too_old(
    monkeypatch: pytest.MonkeyPatch, fresh_s: dict[str, float], asked: int
) -> None:
    looks: list[str] = []
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(spare, "monotonic", lambda: float(next(clock)))

    def level(family: str) -> int:
        looks.append(family)
        return 7

    monkeypatch.setattr(spare, "level", level)
    reserve = AddressReserve(6, **fresh_s)

    assert all(reserve.allows("evm") for _ in range(5))
    assert looks == ["evm"] * asked
    assert not AddressReserve(7).allows("evm")
