"""Every host of the corpus is refused at each check of a merchant's URL; public hosts pass."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from actors.webhooks import connector
from actors.webhooks import lookup as webhook_lookup
from actors.webhooks.sender import Outcome, Post, Sender
from core.http.egress import EgressRefused, check_public_url, is_forbidden_address
from tests.core.http.ssrf_corpus import FORBIDDEN_ADDRESSES, FORBIDDEN_HOSTS, PUBLIC_ADDRESSES, PUBLIC_HOSTS

LOOPBACK = {"127.0.0.0", "127.128.0.0", "127.255.255.255", "::1"}


def refuses(check: Callable[..., object], *arguments: Any, **options: Any) -> bool:
    try:
        check(*arguments, **options)
    except EgressRefused:
        return True
    return False


def deliver(urls: list[str], *, is_endpoint: bool) -> list[Outcome]:
    """Deliver to all of them at once, as production would."""
    posts = [
        Post(
            key=key,
            id=str(key),
            merchant_id=str(key),
            event="invoice.paid",
            url=url,
            body=b"{}",
            secret="s",
            is_endpoint=is_endpoint,
        )
        for key, url in enumerate(urls)
    ]
    outcomes: list[Outcome] = []
    with Sender(allow_private=False, own_hosts=(), total_s=60) as sender:
        sender.send(posts)
        until = time.monotonic() + 90
        while len(outcomes) < len(posts) and time.monotonic() < until:
            outcomes += sender.collect(0.1)
    return sorted(outcomes, key=lambda outcome: outcome.key)


def answer_with(monkeypatch: pytest.MonkeyPatch, address: Callable[[str], str]) -> None:
    def lookup(host: str, port: int, **_: object) -> list[Any]:
        resolved = address(host)
        return [(socket.AF_INET6 if ":" in resolved else socket.AF_INET, socket.SOCK_STREAM, 6, "", (resolved, port))]

    monkeypatch.setattr("socket.getaddrinfo", lookup)


def test_the_corpus_is_large_and_has_no_repeats() -> None:
    assert len(set(FORBIDDEN_HOSTS)) == len(FORBIDDEN_HOSTS) >= 300
    assert len(set(FORBIDDEN_ADDRESSES)) == len(FORBIDDEN_ADDRESSES) >= 180
    assert not set(FORBIDDEN_HOSTS) & set(PUBLIC_HOSTS)


@pytest.mark.parametrize("require_https", [True, False])
def test_hosts_of_the_corpus_are_refused_as_text(*, require_https: bool) -> None:
    schemes = ("https",) if require_https else ("https", "http")
    urls = [f"{scheme}://{host}/hook" for host in FORBIDDEN_HOSTS for scheme in schemes]

    assert [url for url in urls if not refuses(check_public_url, url, require_https=require_https)] == []


def test_development_admits_only_loopback_of_the_corpus() -> None:
    admitted = [a for a in FORBIDDEN_ADDRESSES if not is_forbidden_address(a, allow_loopback=True)]

    assert set(admitted) == LOOPBACK


def test_addresses_of_the_corpus_are_not_connected_to() -> None:
    assert [address for address in FORBIDDEN_ADDRESSES if not is_forbidden_address(address)] == []

    def opened(address: str) -> bool:
        info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        return not refuses(connector._open_socket, info, allow_private=False)

    assert [address for address in FORBIDDEN_ADDRESSES if opened(address)] == []


def test_names_that_resolve_to_the_corpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []
    for address in FORBIDDEN_ADDRESSES:
        answer_with(monkeypatch, lambda _, resolved=address: resolved)  # type: ignore[misc]
        if not refuses(webhook_lookup.resolve, "shop.example", 443):
            passed.append(address)

    assert passed == []


@pytest.mark.parametrize("is_endpoint", [True, False])
def test_webhooks_are_not_delivered_to_hosts_of_the_corpus(
    monkeypatch: pytest.MonkeyPatch, *, is_endpoint: bool
) -> None:
    monkeypatch.setattr(connector, "_open_socket", lambda *_, **__: pytest.fail("a socket was opened"))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("a name was looked up"))

    outcomes = deliver([f"https://{host}/hook" for host in FORBIDDEN_HOSTS], is_endpoint=is_endpoint)

    assert len(outcomes) == len(FORBIDDEN_HOSTS)
    assert [FORBIDDEN_HOSTS[o.key] for o in outcomes if not str(o.error).startswith("refused: ")] == []


def test_webhooks_are_not_delivered_to_names_that_resolve_to_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "_open_socket", lambda *_, **__: pytest.fail("a socket was opened"))
    answer_with(monkeypatch, lambda host: FORBIDDEN_ADDRESSES[int(host.split(".")[0].removeprefix("n"))])

    outcomes = deliver([f"https://n{n}.shop.example/" for n in range(len(FORBIDDEN_ADDRESSES))], is_endpoint=True)

    expected = "refused: the name leads to a private or reserved address"
    assert [FORBIDDEN_ADDRESSES[o.key] for o in outcomes if o.error != expected] == []


def test_public_hosts_pass() -> None:
    for host in PUBLIC_HOSTS:
        for scheme in ("https", "http"):
            assert check_public_url(f"{scheme}://{host}/hook")
    assert [address for address in PUBLIC_ADDRESSES if is_forbidden_address(address)] == []


def test_public_hosts_are_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: set[str] = set()

    def refuse_socket(info: tuple[Any, ...], **_: object) -> socket.socket:
        connected.add(info[4][0])
        raise OSError("no network in tests")

    monkeypatch.setattr(connector, "_open_socket", refuse_socket)
    answer_with(monkeypatch, lambda _: PUBLIC_ADDRESSES[0])

    outcomes = deliver([f"https://{host}/hook" for host in PUBLIC_HOSTS], is_endpoint=True)

    assert {outcome.error for outcome in outcomes} == {"no connection"}
    assert connected == set(PUBLIC_ADDRESSES)
