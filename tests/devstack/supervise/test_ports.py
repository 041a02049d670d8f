"""That two who look for a port at the same moment do not find the same one."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest

from devstack.supervise import ports


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> Iterator[deque[socket.socket]]:
    """Return this test's claims; at most the newest two are kept."""
    open_sockets = deque[socket.socket](maxlen=2)
    monkeypatch.setattr(ports, "_claims", open_sockets)
    yield open_sockets
    for claim in open_sockets:
        claim.close()


def choose(monkeypatch: pytest.MonkeyPatch, *chosen: int) -> None:
    left = list(chosen)
    monkeypatch.setattr(ports.secrets, "choice", lambda _range: left.pop(0))


def three_ports() -> tuple[int, int, int]:
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        for each in (one, two, three):
            each.bind((ports.LOOPBACK, 0))
        return one.getsockname()[1], two.getsockname()[1], three.getsockname()[1]


def test_a_port_just_found_is_found_by_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = three_ports()
    choose(monkeypatch, first, first, second)
    assert (ports.free_port(), ports.free_port()) == (first, second)

    # Nor by another process.
    asked = f"from devstack.supervise import ports; print(ports._claim({first}), ports._claim({second + 40_000}))"
    outcome = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["False", "True"]


def test_an_old_claim_is_released(monkeypatch: pytest.MonkeyPatch, claims: deque[socket.socket]) -> None:
    first, second, third = three_ports()
    choose(monkeypatch, first, second, third, first)
    assert [ports.free_port() for _ in range(4)] == [first, second, third, first]
    assert len(claims) == 2


def test_where_nothing_can_be_claimed_a_free_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nameless(socket.socket):
        def bind(self, address: object) -> None:
            if self.family == socket.AF_UNIX:
                raise OSError(errno.ENOENT, "there are no abstract names")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", Nameless)
    first, _, _ = three_ports()
    choose(monkeypatch, first, first)
    assert (ports.free_port(), ports.free_port()) == (first, first)
