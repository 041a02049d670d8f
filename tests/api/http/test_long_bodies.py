"""Requests with long bodies wait for few threads: each source in turn, counted while they wait."""

from __future__ import annotations

from ipaddress import ip_address
from unittest.mock import Mock

import pytest

from api.http.connection import Connection
from api.http.crowd import Crowd
from api.http.long_bodies import LongBodies
from api.limits.sources import source_of

FLOOD = source_of(ip_address("203.0.113.1"))
OTHER = source_of(ip_address("203.0.113.2"))


class Held:
    """Long bodies with one thread, and what became of each."""

    def __init__(self) -> None:
        self.crowd = Crowd(open_max=8)
        self.served: list[str] = []
        self.ended: list[str] = []
        self.refused: list[str] = []
        self.bodies = LongBodies(
            self.crowd,
            threads=4,
            serve=lambda conn: self.served.append(_name(conn)),
            ended=lambda conn: self.ended.append(_name(conn)),
            refuse=lambda conn: self.refused.append(_name(conn)),
        )

    def flood(self, count: int) -> None:
        for number in range(count):
            self.bodies.add(Mock(number=f"flood {number}", source=(), began_at=float(number)), FLOOD)


def _name(conn: Connection) -> str:
    name: str = conn.number  # type: ignore[attr-defined] # a mock
    return name


@pytest.fixture
def held() -> Held:
    return Held()


def test_a_flood_of_long_bodies_is_bounded_by_source_and_its_oldest_end(held: Held) -> None:
    held.flood(12)

    assert held.served == ["flood 0"]
    assert held.ended == ["flood 1", "flood 2", "flood 3"]


def test_a_full_process_ends_a_long_body_that_waits(held: Held) -> None:
    held.flood(3)

    assert held.crowd.end_oldest()
    assert held.ended == ["flood 1"]
    held.bodies.answered()
    assert held.served == ["flood 0", "flood 2"]
    assert not held.crowd.end_oldest(), "who is served is not ended"


def test_sources_take_turns_with_long_bodies(held: Held) -> None:
    held.flood(4)
    held.bodies.add(Mock(number="other", source=(), began_at=9.0), OTHER)
    for _ in range(2):
        held.bodies.answered()

    assert held.served == ["flood 0", "flood 1", "other"]


def test_long_bodies_that_waited_too_long_are_refused(held: Held) -> None:
    held.flood(4)

    held.bodies.refuse_begun_before(3.0)

    assert held.refused == ["flood 1", "flood 2"]
    held.bodies.answered()
    held.bodies.answered()
    assert held.served == ["flood 0", "flood 3"]
    held.bodies.refuse_begun_before(9.0)
    assert not held.crowd.end_oldest()
