"""Shares a process's slots among merchants, by how their receivers behave. Called by actors.webhooks.deliver.

Each merchant has a lane. It widens while answers come quickly and narrows while they are slow or fail, so that dead
receivers hold few slots, however many deliveries wait for them, and a quick one is served at its own speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

START_WIDTH: Final = 4
WIDTH_MAX: Final = 128
SLOW_S: Final = 1.0
# The number of idle lanes kept; beyond it the one idle longest is dropped: its merchant starts again at START_WIDTH.
IDLE_LANES_MAX: Final = 1024
# The deliveries that narrow lanes may have under way together: the other slots stay free for receivers that answer.
NARROW_BUSY_MAX: Final = 256


class _Lane:
    """A merchant's limit of deliveries under way, and their number."""

    __slots__ = ("busy", "width")

    def __init__(self) -> None:
        self.width = START_WIDTH
        self.busy = 0

    @property
    def is_narrow(self) -> bool:
        """Return whether its receiver has been slow or failing of late."""
        return self.width < START_WIDTH


class Lanes:
    """The lanes of one process; used by one thread at a time."""

    def __init__(self) -> None:
        self._busy: dict[str, _Lane] = {}
        self._idle: dict[str, _Lane] = {}

    def allowances(self) -> Mapping[str, int]:
        """Return the number of further deliveries that each known merchant may start; an unknown one: START_WIDTH."""
        narrow = sum(lane.busy for lane in self._busy.values() if lane.is_narrow)
        is_full = narrow >= NARROW_BUSY_MAX
        return {
            merchant_id: 0 if is_full and lane.is_narrow else max(0, lane.width - lane.busy)
            for merchant_id, lane in (*self._busy.items(), *self._idle.items())
        }

    def enter(self, merchant_id: str) -> None:
        """Take a place in the merchant's lane."""
        lane = self._busy.get(merchant_id)
        if lane is None:
            lane = self._idle.pop(merchant_id) if merchant_id in self._idle else _Lane()
            self._busy[merchant_id] = lane
        lane.busy += 1

    def leave(self, merchant_id: str, *, is_success: bool, took_s: float) -> None:
        """Free the place, and widen or narrow the lane by the result."""
        lane = self._busy[merchant_id]
        is_quick = is_success and took_s < SLOW_S
        lane.width = min(lane.width * 2, WIDTH_MAX) if is_quick else max(lane.width // 2, 1)
        self.give_up(merchant_id)

    def give_up(self, merchant_id: str) -> None:
        """Free the place without changing the lane's width."""
        lane = self._busy[merchant_id]
        lane.busy -= 1
        if lane.busy == 0:
            self._idle[merchant_id] = self._busy.pop(merchant_id)
            if len(self._idle) > IDLE_LANES_MAX:
                del self._idle[next(iter(self._idle))]
