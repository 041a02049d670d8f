"""When a request has arrived: the same however its bytes come, and never a matter for a thread before."""

from __future__ import annotations

import pytest

from api.http.arrival import BODY_MAX, HEAD_MAX, Arrival, Verdict

GET = b"GET /v1/currencies HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/payment HTTP/1.1\r\nHost: x\r\ncontent-LENGTH:\t 5 \r\n\r\nhello"


def post(length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length


@pytest.mark.parametrize("request_bytes", [GET, POST, HEALTH], ids=["get", "post", "health"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_request_has_arrived_with_its_last_byte_however_it_comes(request_bytes: bytes, size: int) -> None:
    arrival = Arrival(0.0)
    pieces = [request_bytes[at : at + size] for at in range(0, len(request_bytes), size)]

    verdicts = [arrival.add(piece) for piece in pieces]

    assert verdicts[:-1] == [Verdict.WAIT] * (len(pieces) - 1)
    assert verdicts[-1] is (Verdict.HEALTH if request_bytes == HEALTH else Verdict.WHOLE)
    assert bytes(arrival.data) == request_bytes


@pytest.mark.parametrize(
    ("request_bytes", "verdict"),
    [
        (GET + GET, Verdict.WHOLE),
        (POST + b"GET /", Verdict.WHOLE),
        (HEALTH.replace(b"GET", b"HEAD"), Verdict.HEALTH),
        (HEALTH.replace(b"GET", b"POST"), Verdict.WHOLE),
        (HEALTH.replace(b"healthz", b"healthz/x"), Verdict.WHOLE),
        (HEALTH.replace(b"Host: x", b"Content-Length: 1") + b"x", Verdict.WHOLE),
        (HEALTH.replace(b"Host: x", b"Transfer-Encoding: chunked"), Verdict.LONG),
        (post(BODY_MAX), Verdict.WAIT),
        (post(BODY_MAX + 1), Verdict.LONG),
        (post(10**19 - 1), Verdict.LONG),
        (b"POST / HTTP/1.1\r\ntransfer-encoding : gzip\r\n\r\n", Verdict.LONG),
        # The parser refuses these; the loop does not wait for the length that they seem to announce.
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", Verdict.WHOLE),
        (b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n", Verdict.WHOLE),
        (b"nonsense\r\n\r\n", Verdict.WHOLE),
        (b"x" * HEAD_MAX, Verdict.WAIT),
        (b"x" * (HEAD_MAX + 1), Verdict.ENDLESS),
    ],
)
def test_the_verdict_on_arrived_bytes(request_bytes: bytes, verdict: Verdict) -> None:
    assert Arrival(0.0).add(request_bytes) is verdict


def test_a_head_is_looked_at_once_however_many_pieces_follow() -> None:
    arrival = Arrival(0.0)
    assert [arrival.take_head() for _ in range(2)] == [False, False]

    arrival.add(POST[:-5])
    assert [arrival.take_head() for _ in range(2)] == [True, False]


def test_an_expectation_is_taken_out_of_the_head() -> None:
    arrival = Arrival(0.0)
    arrival.add(POST[:-5].replace(b"Host: x\r\n", b"Host: x\r\nExpect:  100-Continue\r\n"))

    assert [arrival.take_expectation() for _ in range(2)] == [True, False]
    assert arrival.add(b"hello") is Verdict.WHOLE
    assert bytes(arrival.data) == POST


def test_where_it_came_from_is_read_over_all_its_lines() -> None:
    arrival = Arrival(0.0)
    arrival.add(POST.replace(b"Host: x", b"X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nx-forwarded-for: 3.3.3.3"))

    assert arrival.forwarded_for().replace(" ", "") == "1.1.1.1,2.2.2.2,3.3.3.3"
