"""Both libraries against a gateway that answers badly: repeated only where safe, each failure with its own error."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

import sluice_client
from tests.peers.receiver import Answer, Hook, Receiver
from tests.peers.smtp_server import certify
from tests.sdk.shops import FailedError, PythonShop, Shop

Opener = Callable[..., Shop]
JSON = ("Content-Type", "application/json")
SECRET = "sk_very_secret"


def good(result: object = None, *headers: tuple[str, str]) -> Answer:
    return Answer(headers=(JSON, *headers), body=json.dumps({"state": 0, "result": result or {}}).encode())


def refused(status: int, code: str, *headers: tuple[str, str]) -> Answer:
    body = json.dumps({"error": {"code": code, "message": "Not this."}}).encode()
    return Answer(status=status, headers=(JSON, ("X-Request-Id", "r-1"), *headers), body=body)


BUSY = refused(503, "gateway.busy")
LIMITED = Answer(status=429, headers=(JSON, ("Retry-After", "1")), body=b'{"state":1,"message":"Too many."}')
CUT = Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", drop=True)
PAGE = Answer(status=502, headers=(("Content-Type", "text/html"),), body=b"<html>Bad gateway</html>")


@contextmanager
def gateway(*answers: Answer, **options: Any) -> Iterator[Receiver]:
    """Answer one after the other; the last one again and again."""
    left = list(answers)

    def behave(_hook: Hook) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    with Receiver(behave, **options) as server:
        yield server


def url(server: Receiver) -> str:
    return server.url.removesuffix("/hook")


def fails(shop: Shop, name: str, *places: str, **fields: Any) -> FailedError:
    with pytest.raises(FailedError) as failure:
        shop.call(name, *places, **fields)
    return failure.value


def header(hooks: Sequence[Hook], name: str) -> list[str | None]:
    return [hook.headers.get(name) for hook in hooks]


def test_a_call_is_signed_over_what_is_sent(open_shop: Opener) -> None:
    with gateway(good({"uuid": "1"})) as server:
        shop = open_shop(f"{url(server)}/behind/")
        assert shop.call("createPayment", amount="10", currency="USD", order_id="é-1") == {"uuid": "1"}

    (hook,) = server.hooks
    stamp = hook.headers["x-timestamp"]
    message = b"\n".join((stamp.encode(), b"POST", b"/behind/v1/payment", hook.body))
    assert hook.target == "/behind/v1/payment"
    assert hook.headers["x-signature"] == hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()
    assert abs(int(stamp) - time.time()) < 60
    assert json.loads(hook.body) == {"amount": "10", "currency": "USD", "order_id": "é-1"}


def test_a_buyers_call_is_not_signed_and_its_place_is_quoted(open_shop: Opener) -> None:
    with gateway(good()) as server:
        open_shop(url(server)).call("getPublicPayment", "a/b?c")

    assert server.hooks[0].target == "/v1/pay/a%2Fb%3Fc"
    assert "x-signature" not in server.hooks[0].headers


def test_a_creation_is_repeated_with_its_key(open_shop: Opener) -> None:
    with gateway(BUSY, CUT, good({"uuid": "1"})) as server:
        assert open_shop(url(server)).call("createPayment", amount="10", currency="USD") == {"uuid": "1"}

    keys = header(server.hooks, "idempotency-key")
    assert len(keys) == 3
    assert keys[0]
    assert len({*keys}) == 1


def test_a_key_of_the_caller_is_sent(open_shop: Opener) -> None:
    with gateway(good()) as server:
        open_shop(url(server)).call("createPayment", key="mine", amount="10", currency="USD")

    assert header(server.hooks, "idempotency-key") == ["mine"]


def test_a_payout_link_has_a_reference_and_is_repeated_by_the_same_bytes(open_shop: Opener) -> None:
    with gateway(BUSY, good()) as server:
        shop = open_shop(url(server))
        shop.call("createPayoutLink", currency="USDT", amount="5")
        shop.call("createPayoutLink", currency="USDT", amount="5")
        shop.call("createPayoutLinks", links=[{"currency": "USDT", "amount": "5"}] * 2)

    first, again, second, several = server.hooks
    assert (first.body, first.headers["x-signature"]) == (again.body, again.headers["x-signature"])
    links = json.loads(several.body)["links"]
    references = [json.loads(first.body)["reference"], json.loads(second.body)["reference"]]
    references += [link["reference"] for link in links]
    assert len({*references}) == 4, "equal links are different ones"


def test_a_call_that_could_be_carried_out_twice_is_not_repeated(open_shop: Opener) -> None:
    for answer, kind in ((BUSY, "GatewayError"), (CUT, "ConnectionFailedError"), (PAGE, "UnexpectedAnswerError")):
        with gateway(answer) as server:
            assert fails(open_shop(url(server)), "approvePayout", uuid="1").kind == kind
        assert len(server.hooks) == 1


def test_a_read_is_repeated_until_its_answer_is_whole(open_shop: Opener) -> None:
    with gateway(CUT, PAGE, good({"items": []})) as server:
        assert open_shop(url(server)).call("getBalance") == {"items": []}
    assert len(server.hooks) == 3


def test_a_limit_is_waited_for_and_its_end_is_awaited_no_longer_than_the_attempts_last(open_shop: Opener) -> None:
    with gateway(LIMITED, good()) as server:
        begun = time.monotonic()
        open_shop(url(server)).call("approvePayout", uuid="1")
    assert time.monotonic() - begun >= 1

    with gateway(LIMITED) as server:
        failure = fails(open_shop(url(server), options={"attempts": 2}), "getBalance")
    assert (failure.kind, failure.details["retry_after_s"]) == ("RateLimitedError", 1)
    assert len(server.hooks) == 2


def test_a_call_that_may_have_been_carried_out_ends_as_such(open_shop: Opener) -> None:
    """A caller who takes a limit for "not done" would order it again."""
    early = refused(401, "auth.bad_timestamp")
    for last in (LIMITED, early, BUSY):
        with gateway(CUT, last) as server:
            assert (
                fails(
                    open_shop(url(server), options={"attempts": 2}), "createPayoutLink", currency="USDT", amount="1"
                ).kind
                == "ConnectionFailedError"
            )
        assert len(server.hooks) == 2
    with gateway(CUT, refused(400, "payoutlink.bad_amount")) as server:
        assert fails(open_shop(url(server)), "createPayoutLink", currency="USDT", amount="1").kind == "PayoutlinkError"
    with gateway(LIMITED) as server:
        assert fails(open_shop(url(server), options={"attempts": 1}), "getBalance").kind == "RateLimitedError"


def test_a_refusal_is_the_error_of_its_family(open_shop: Opener) -> None:
    for code, kind in (
        ("payment.bad_amount", "PaymentError"),
        ("future.code", "ApiError"),
        ("payout.frozen", "PayoutError"),
    ):
        with gateway(refused(400, code)) as server:
            failure = fails(open_shop(url(server)), "createPayment", amount="x", currency="USD")
        assert failure.kind == kind
        assert failure.details["code"] == code
        assert (failure.details["status"], failure.details["request_id"]) == (400, "r-1")
        assert len(server.hooks) == 1


def test_a_wrong_clock_is_named_with_its_difference(open_shop: Opener) -> None:
    date = ("Date", formatdate(time.time() - 3600, usegmt=True))
    with gateway(refused(401, "auth.bad_timestamp", date)) as server:
        failure = fails(open_shop(url(server)), "getBalance")

    assert failure.kind == "ClockSkewError"
    assert 3590 < failure.details["skew_s"] < 3660
    assert "ahead of the gateway's" in failure.shown


@pytest.mark.parametrize("answer", [
    Answer(headers=(("Content-Type", "text/html"),), body=b"<html>Welcome</html>"),
    Answer(headers=(JSON,), body=b"[]"),
    Answer(headers=(JSON,), body=b"{"),
    Answer(status=400, headers=(JSON,), body=b'{"error": "no"}'),
], ids=["a page", "a list", "half of it", "another error"])  # fmt: skip
def test_an_answer_of_somebody_else_is_no_result(open_shop: Opener, answer: Answer) -> None:
    with gateway(answer) as server:
        assert fails(open_shop(url(server)), "approvePayout", uuid="1").kind == "UnexpectedAnswerError"


def test_a_redirect_is_not_followed(open_shop: Opener) -> None:
    with gateway(good()) as other, gateway(Answer(status=307, headers=(("Location", other.url),), body=b"")) as server:
        assert fails(open_shop(url(server)), "getBalance").kind == "UnexpectedAnswerError"
    assert other.hooks == []


def test_all_pages_of_a_list_are_read(open_shop: Opener) -> None:
    pages = ({"items": [1, 2], "next_cursor": "c"}, {"items": [3], "next_cursor": None})
    with gateway(*map(good, pages)) as server:
        assert open_shop(url(server)).call("iterPayments", limit=2) == [1, 2, 3]

    assert [json.loads(hook.body) for hook in server.hooks] == [{"limit": 2}, {"limit": 2, "cursor": "c"}]


def test_nothing_that_is_logged_holds_the_secret(open_shop: Opener) -> None:
    with gateway(refused(401, "merchant.bad_signature")) as server:
        shop = open_shop(url(server))
        assert SECRET not in fails(shop, "getBalance").shown
        assert SECRET not in shop.shown()
        assert "pk" in shop.shown()


def test_plain_http_is_refused_but_on_this_machine(open_shop: Opener) -> None:
    if open_shop is PythonShop:
        for bad in (
            "http://pay.shop.example",
            "ftp://127.0.0.1",
            "pay.shop.example",
            "https://x.example/?a=1",
            "https://a:b@x.example",
        ):
            with pytest.raises(ValueError, match="url must be"):
                sluice_client.Sluice(bad, "pk", "sk")
    else:
        assert fails(open_shop("http://pay.shop.example"), "getBalance").kind == "TypeError"


@pytest.mark.parametrize("missing", ["public_id", "secret"])
@pytest.mark.parametrize("blank", ["", None])
def test_a_missing_key_is_named_before_anything_is_sent(open_shop: Opener, missing: str, blank: Any) -> None:
    with gateway(good({"items": []})) as server:
        if open_shop is PythonShop:
            with pytest.raises(ValueError, match="public_id and secret must be"):
                sluice_client.Sluice(url(server), **{"public_id": "pk", "secret": "sk", missing: blank})
        else:
            option = "publicId" if missing == "public_id" else missing
            failure = fails(open_shop(url(server), options={option: blank}), "getBalance")
            assert (failure.kind, "publicId and secret must be" in failure.shown) == ("TypeError", True)
        assert server.hooks == []


def test_an_unknown_certificate_is_refused_before_anything_is_sent(open_shop: Opener, tmp_path: Path) -> None:
    server_side, client_side = certify(tmp_path)
    with gateway(good({"items": []}), tls=server_side) as server:
        failure = fails(open_shop(url(server), options={"attempts": 1}), "getBalance")
        assert failure.kind == "ConnectionFailedError"
        assert server.hooks == []
        if open_shop is PythonShop:
            trusting = sluice_client.Sluice(url(server), "pk", "sk", context=client_side)
            assert [trusting.get_balance(), trusting.get_balance()] == [{"items": []}] * 2
            assert server.connections == 1, "the second call uses the connection of the first"
            trusting.close()


def test_a_connection_that_the_gateway_has_closed_is_not_used_again() -> None:
    with gateway(Answer(headers=(JSON, ("Connection", "close")), body=b'{"state":0,"result":{}}')) as server:
        client = sluice_client.Sluice(url(server), "pk", "sk", attempts=1)
        for _ in range(3):
            client.approve_payout(uuid="1")
    assert len(server.hooks) == 3


def test_coroutines_answer_as_the_methods_do() -> None:
    import asyncio  # noqa: PLC0415

    pages = ({"items": [1, 2], "next_cursor": "c"}, {"items": [3], "next_cursor": None})
    with gateway(*map(good, pages), good({"uuid": "1"})) as server:

        async def story() -> tuple[list[Any], Any]:
            client = sluice_client.AsyncSluice(url(server), "pk", SECRET)
            items = [item async for item in client.iter_payments()]
            made = await client.create_payment(amount="1", currency="USD")
            assert SECRET not in repr(client)
            await client.close()
            return items, made

        assert asyncio.run(story()) == ([1, 2, 3], {"uuid": "1"})


def test_another_programs_json_is_no_result(open_shop: Opener) -> None:
    with gateway(Answer(headers=(JSON,), body=b'{"status":"ok"}')) as server:
        failure = fails(open_shop(url(server)), "createPayment", amount="10", currency="USD")

    assert failure.kind == "UnexpectedAnswerError"
    assert len(server.hooks) == 1, "it may have been carried out by the gateway behind"


def test_a_forked_process_opens_a_connection_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway(good()) as server, sluice_client.Sluice(url(server), "pk", SECRET) as client:
        client.list_currencies()
        (parents,) = client._idle
        client.list_currencies()
        assert client._idle == [parents], "a process keeps its own"

        forked = os.getpid() + 1
        monkeypatch.setattr(os, "getpid", lambda: forked)
        client.list_currencies()

        assert len(client._idle) == 1
        assert client._idle[0] is not parents, "two processes would read each other's answers"
        assert parents.sock is not None, "the parent goes on with it"
        parents.close()


def test_a_connection_that_the_gateway_has_closed_is_closed_here_too() -> None:
    with gateway(good()) as server, sluice_client.Sluice(url(server), "pk", SECRET) as client:
        client.list_currencies()
        (idle,) = client._idle
        assert idle.sock is not None
        idle.sock.shutdown(socket.SHUT_RDWR)
        client.list_currencies()

        assert idle.sock is None
        assert idle not in client._idle
