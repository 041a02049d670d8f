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
# Idle lanes that are remembered; the one that was idle longest is forgotten and would start anew.
IDLE_LANES_MAX: Final = 1024
# What narrow lanes may have under way together. However many receivers are dead, the other slots are for the living.
NARROW_BUSY_MAX: Final = 256


class _Lane:
    """How many deliveries of a merchant may be under way, and how many are."""

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
        """Return how many more each known merchant may have under way; an unknown one may have START_WIDTH."""
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
        """Free the place, and let the lane's width follow how it went."""
        lane = self._busy[merchant_id]
        is_quick = is_success and took_s < SLOW_S
        lane.width = min(lane.width * 2, WIDTH_MAX) if is_quick else max(lane.width // 2, 1)
        self.give_up(merchant_id)

    def give_up(self, merchant_id: str) -> None:
        """Free the place without having learned anything."""
        lane = self._busy[merchant_id]
        lane.busy -= 1
        if lane.busy == 0:
            self._idle[merchant_id] = self._busy.pop(merchant_id)
            if len(self._idle) > IDLE_LANES_MAX:
                del self._idle[next(iter(self._idle))]
