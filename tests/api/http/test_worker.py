"""The parts of gunicorn that the worker uses exist in the pinned version."""

from __future__ import annotations

import socket
from pathlib import Path
from unittest.mock import Mock

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http import wsgi  # type: ignore[import-untyped]
from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.http.unreader import IterUnreader  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from api.http.connection import refusal
from api.http.worker import BoundedThreadWorker
from core.errors import GatewayBusy, RequestMalformed
from tests.api.test_server import split

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Forwarded-Proto: https\r\n\r\n"


def a_worker() -> BoundedThreadWorker:
    config = Config()
    config.set("header_map", "drop")
    config.set("threads", 3)
    worker = BoundedThreadWorker(0, 0, [], None, 30, config, None)
    worker.tmp.close()
    return worker


def test_a_client_of_a_unix_socket_counts_as_loopback(tmp_path: Path) -> None:
    worker = a_worker()
    worker._receiving = Mock()
    place = str(tmp_path / "web.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(place)
        listener.listen()
        client.connect(place)
        worker.accept(listener)

    (conn,) = worker._receiving.begin.call_args.args
    conn.close()
    assert conn.client == ("127.0.0.1", 0)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of a worker that has begun."""
    worker = a_worker()
    monkeypatch.setattr(ThreadWorker, "init_process", lambda _: None)
    worker.init_process()
    worker._health.shutdown()
    config: Config = worker.cfg
    return config


def test_gunicorn_settings_are_unchanged(settled: Config) -> None:
    given = Config()
    given.set("header_map", "drop")
    given.set("threads", 3)

    assert {name: getattr(settled, name) for name in given.settings} == {
        name: getattr(given, name) for name in given.settings
    }


def test_a_request_looks_no_setting_up(settled: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    real = Config.__getattr__
    monkeypatch.setattr(Config, "__getattr__", lambda self, name: (looked_up.append(name), real(self, name))[1])

    request = Request(settled, IterUnreader([REQUEST]), ("127.0.0.1", 1))
    wsgi.create(request, None, ("127.0.0.1", 1), ("127.0.0.1", 2), settled)

    assert looked_up == []


def test_a_request_releases_its_bytes_however_it_ends() -> None:
    worker = a_worker()
    worker._receiving, worker._health = Mock(), Mock()
    worker._lingering = Mock()
    worker._sending, worker._crowd = Mock(), Mock()
    answered, ended = Mock(), Mock()
    answered.sock.unsent = []

    worker.finish_request(answered, False)
    worker._end_turn(Mock(), ended)

    assert [each.args for each in worker._receiving.answered.mock_calls] == [(answered,), (ended,)]
    worker._lingering.begin.assert_called_once_with(answered)
    ended.close.assert_called_once_with()


def test_refusals_outside_the_application_send_retry_after_too() -> None:
    status, headers, body = split(refusal(GatewayBusy()))

    assert (status, headers["retry-after"], body["error"]["code"]) == (503, "1", "gateway.busy")
    assert "retry-after" not in split(refusal(RequestMalformed()))[1]
