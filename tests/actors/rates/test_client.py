"""Gives each source a bounded time and size, so that none affects the others."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from actors.rates.client import Problem, fetch_all
from tests.peers.rate_server import Failure, RateServer

# For sources that use it up; the others have to answer within it as well.
BUDGET_S = 1.5
PATIENT_S = 30.0


@pytest.fixture
def server() -> Iterator[RateServer]:
    with RateServer() as running:
        yield running


def problem(server: RateServer, failure: Failure, *, budget_s: float = PATIENT_S) -> str:
    """Make one source fail; check that the others answer and that all ends within the budget."""
    server.failures["kraken"] = failure
    begun = time.monotonic()
    answers = fetch_all(server.urls, budget_s=budget_s)
    assert time.monotonic() - begun < budget_s + 30
    popped = answers.pop("kraken")
    assert all(isinstance(answer, bytes) for answer in answers.values())
    assert isinstance(popped, Problem)
    assert "127.0.0.1" not in popped.text
    assert "abc" not in popped.text
    return popped.text


def test_all_sources_are_asked_and_their_bodies_are_returned_unchanged(server: RateServer) -> None:
    answers = fetch_all(server.urls, budget_s=PATIENT_S)
    assert answers["coinbase"] == server.body("coinbase")
    assert answers.keys() == server.urls.keys() == server.asked.keys()


def test_no_compression_is_requested(server: RateServer) -> None:
    fetch_all(server.urls, budget_s=PATIENT_S)
    assert server.headers["ecb"]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [201, 400, 403, 429, 451, 500, 503])
def test_only_status_200_counts(server: RateServer, status: int) -> None:
    assert problem(server, Failure(status=status, body=b"{}")) == f"status {status}"


def test_a_redirect_is_not_followed(server: RateServer) -> None:
    location = {"Location": server.urls["coinbase"]}
    assert problem(server, Failure(status=302, headers=location)) == "status 302"
    assert server.asked["coinbase"] == 1


def test_a_long_body_is_cut_off(server: RateServer) -> None:
    assert "longer than" in problem(server, Failure(body=b" " * (1024 * 1024 + 1)))


def test_a_body_of_the_limit_is_accepted(server: RateServer) -> None:
    server.failures["ecb"] = Failure(body=b" " * (1024 * 1024))
    assert fetch_all(server.urls, budget_s=PATIENT_S)["ecb"] == b" " * (1024 * 1024)


def test_an_endless_body_is_cut_off(server: RateServer) -> None:
    assert "longer than" in problem(server, Failure(body=b" " * 65536, is_endless=True))


def test_a_silent_source_times_out(server: RateServer) -> None:
    assert problem(server, Failure(body=b"{}", pause_s=90), budget_s=BUDGET_S) == "no answer within 1.5 s"


def test_a_dripping_body_times_out(server: RateServer) -> None:
    dripping = Failure(body=b" " * 2000, piece_bytes=1, pause_s=0.05)
    assert "no answer" in problem(server, dripping, budget_s=BUDGET_S)


def test_a_compressed_answer_is_not_unpacked(server: RateServer) -> None:
    assert "compressed" in problem(server, Failure(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}))


def test_a_cut_connection_fails_its_source_only(server: RateServer) -> None:
    assert "the connection failed" in problem(server, Failure(is_cut=True))


def test_endless_headers_fail_their_source_only(server: RateServer) -> None:
    assert "the connection failed" in problem(server, Failure(headers={"X-Long": "a" * 100_000}))


def test_a_closed_port_fails_its_source_only(server: RateServer) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    answers = fetch_all({**server.urls, "dead": url}, budget_s=PATIENT_S)
    assert answers["dead"] == Problem(text="the connection failed (ClientConnectorError)")
    assert isinstance(answers["ecb"], bytes)


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://a b/", "http://\ud800/", "ftp://127.0.0.1/"])
def test_an_invalid_address_fails_its_source_only(server: RateServer, url: str) -> None:
    answers = fetch_all({**server.urls, "odd": url}, budget_s=PATIENT_S)
    assert isinstance(answers["odd"], Problem)
    assert isinstance(answers["ecb"], bytes)


def test_a_hanging_name_server_delays_no_other_source(server: RateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    real, release = socket.getaddrinfo, threading.Event()

    def hang(host: object, *args: object, **kwargs: object) -> object:
        if host == "slow.example":
            release.wait(90)
        return real(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    begun = time.monotonic()
    answers = fetch_all({**server.urls, "slow": "https://slow.example/"}, budget_s=BUDGET_S)
    assert time.monotonic() - begun < BUDGET_S + 30
    release.set()
    assert answers["slow"] == Problem(text="no answer within 1.5 s")
    assert isinstance(answers["ecb"], bytes)
