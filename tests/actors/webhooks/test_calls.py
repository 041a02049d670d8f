"""Registers an endpoint: checks its address, returns its secret once, and never blocks on name servers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from actors import context
from actors.queue.registry import QUEUES, REGISTRY
from actors.webhooks import calls
from actors.webhooks.calls import check_endpoint_url, register_webhook
from core.errors import GatewayBusy, WebhookBadUrl
from core.settings.settings import load_settings
from models.db.base import close, one, rows, transaction
from models.merchants.rows import create_merchant
from models.queue.calls import ReplayedError
from tests.actors.asking import ask
from tests.models.queue.builders import info

PUBLIC = "93.184.215.14"
URL = "https://shop.example/hooks?a=1"


@pytest.fixture
def shop(database: str) -> UUID:
    configure(database)
    return create_merchant("Shop").id


def configure(database: str, **more: str) -> None:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"}
    context.configure(load_settings({"ENVIRONMENT": "development", **stores, **more}))


@pytest.fixture(autouse=True)
def resolve_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], list[str]]], None]:
    """Set the addresses of every name, by default a public one."""

    def use(addresses: Callable[[], list[str]]) -> None:
        def lookup(_host: str, port: int, **_: object) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses()]

        monkeypatch.setattr("socket.getaddrinfo", lookup)

    use(lambda: [PUBLIC])
    return use


def register(merchant_id: UUID, url: str = URL) -> dict[str, str]:
    answer: dict[str, str] = ask(register_webhook, replace(info(merchant_id), is_secret=True), {"url": url})
    return answer


def refused(url: str, *, allow_private: bool = False) -> str:
    with pytest.raises(WebhookBadUrl) as caught:
        check_endpoint_url(url, allow_private=allow_private, own_hosts=["sluice.example"])
    return caught.value.message


def accept(url: str, *, allow_private: bool = False) -> None:
    check_endpoint_url(url, allow_private=allow_private, own_hosts=["sluice.example"])


def test_the_response_is_the_endpoint_with_its_secret(shop: UUID) -> None:
    answer = register(shop)
    assert answer == {"endpoint_id": answer["endpoint_id"], "url": URL, "secret": answer["secret"]}
    assert one("SELECT id, url FROM webhook_endpoints WHERE merchant_id = %s", (shop,)) == (
        UUID(answer["endpoint_id"]),
        URL,
    )
    assert len(answer["secret"]) > 40


def test_the_secret_is_not_stored_in_plain_text(shop: UUID) -> None:
    secret = register(shop)["secret"]
    assert one("SELECT state, response FROM calls") == ("done", None)
    assert secret not in str(rows("SELECT * FROM webhook_endpoints"))


def test_a_redelivered_call_makes_one_endpoint(shop: UUID) -> None:
    call = replace(info(shop), is_secret=True)
    ask(register_webhook, call, {"url": URL})
    with pytest.raises(ReplayedError) as caught:
        ask(register_webhook, call, {"url": URL})
    assert caught.value.response is None
    assert one("SELECT count(*) FROM webhook_endpoints") == (1,)


def test_a_second_registration_replaces_the_first(shop: UUID) -> None:
    first, second = register(shop), register(shop, "https://other.example/")
    assert first["secret"] != second["secret"]
    stored = rows("SELECT url, replaced_at IS NULL FROM webhook_endpoints ORDER BY id")
    assert stored == [(URL, False), ("https://other.example/", True)]


def test_a_unicode_host_is_stored_as_punycode(shop: UUID) -> None:
    endpoint = register(shop, "https://b\u00fccher.example/hooks")

    assert endpoint["url"] == "https://xn--bcher-kva.example/hooks"
    assert rows("SELECT url FROM webhook_endpoints") == [(endpoint["url"],)]


def test_a_refused_url_leaves_the_endpoint_unchanged(shop: UUID) -> None:
    register(shop)
    with pytest.raises(WebhookBadUrl):
        register(shop, "https://127.0.0.1/")
    assert rows("SELECT url FROM webhook_endpoints WHERE replaced_at IS NULL") == [(URL,)]


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/", "ftp://shop.example/", "shop.example", "https://", "https:///hooks", "",
        "https://localhost/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data", "https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/",
        "https://user:secret@shop.example/", "https://shop.example\\.evil/", "https://shop\u3002example/",
        "https://shop.example:25/", "https://sluice.example/v1/payment", "https://shop.example/\r\nX: y",
    ],
)  # fmt: skip
def test_bad_and_private_urls_are_refused(url: str) -> None:
    assert refused(url).startswith("url: ")


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["10.1.2.3"], [PUBLIC, "192.168.0.1"], ["169.254.169.254"], ["::ffff:127.0.0.1"]]
)
def test_a_name_that_resolves_to_a_private_address_is_refused(
    addresses: list[str], resolve_to: Callable[[Callable[[], list[str]]], None]
) -> None:
    resolve_to(lambda: addresses)
    assert refused(URL) == "url: the name leads to a private or reserved address"


def test_a_name_without_addresses_is_accepted(resolve_to: Callable[[Callable[[], list[str]]], None]) -> None:
    def unknown() -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    resolve_to(unknown)
    accept(URL)


def test_a_silent_name_server_delays_no_other_call(
    resolve_to: Callable[[Callable[[], list[str]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LOOKUP_S", 0.1)
    release = threading.Event()

    def wait() -> list[str]:
        release.wait(60)
        return [PUBLIC]

    resolve_to(wait)
    started = time.monotonic()
    # More of them than there are threads for lookups.
    for _ in range(calls.LOOKUP_THREADS + 2):
        accept(URL)
    release.set()
    assert time.monotonic() - started < 30, "half of the first one's wait"


def test_a_merchant_looks_up_one_name_at_a_time_and_delays_no_other(
    shop: UUID, resolve_to: Callable[[Callable[[], list[str]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LOOKUP_S", 60)
    begun, release = threading.Event(), threading.Event()

    def wait() -> list[str]:
        begun.set()
        release.wait(60)
        return [PUBLIC]

    def first() -> dict[str, str]:
        try:
            return register(shop)
        finally:
            close()

    resolve_to(wait)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first)
        assert begun.wait(30)
        resolve_to(lambda: [PUBLIC])
        with pytest.raises(GatewayBusy):
            register(shop, "https://other.example/")
        assert register(create_merchant("Another").id)["url"] == URL
        release.set()
        assert waiting.result(60)["url"] == URL
    # Once it has ended, the next may begin.
    register(shop, "https://other.example/")


def test_only_development_admits_loopback_and_plain_http_to_it() -> None:
    for url in ("http://127.0.0.1:9000/", "http://localhost:9000/", "https://[::1]:9000/"):
        refused(url)
    accept("https://shop.example/", allow_private=True)
    accept("http://127.0.0.1:9000/", allow_private=True)
    for url in ("http://shop.example/", "https://10.0.0.1/", "http://192.168.0.1/", "https://169.254.169.254/"):
        refused(url, allow_private=True)


@pytest.mark.usefixtures("database")
def test_no_name_is_looked_up_inside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"), transaction():
        accept(URL)


def test_no_name_is_looked_up_on_a_queue_of_sales_or_payouts() -> None:
    assert REGISTRY["register_webhook"].queue == "bulk"
    assert "actors.webhooks.calls" in QUEUES["bulk"]
