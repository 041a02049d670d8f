"""The gateway connects to public addresses only, for any URL that a merchant enters."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import aiohttp
import pytest

from actors.webhooks.connector import PinnedConnector, PinnedResolver
from actors.webhooks.lookup import resolve
from core.http.egress import EgressRefused, check_public_url, is_forbidden_address, is_loopback

PUBLIC = ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "192.0.1.1", "100.128.0.1", "223.255.255.254",
          "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888"]  # fmt: skip
FORBIDDEN = [
    "0.0.0.1", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.255", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::7f00:1",
    "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1",
    "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1",
    "3fff::1", "4000::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "fe80::1%eth0",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_admitted(address: str) -> None:
    assert not is_forbidden_address(address)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_special_address_is_forbidden(address: str) -> None:
    assert is_forbidden_address(address)


@pytest.mark.parametrize("address", ["64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "192.0.0.192"])
def test_addresses_that_python_wrongly_calls_global_are_forbidden(address: str) -> None:
    # Newer versions of Python call them private; the verdict must not depend on the version.
    assert is_forbidden_address(ip_address(address))


def test_a_malformed_address_is_forbidden() -> None:
    assert is_forbidden_address("example.com")
    assert is_forbidden_address("2130706433")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1"])
def test_development_admits_loopback(address: str) -> None:
    assert not is_forbidden_address(address, allow_loopback=True)
    assert is_loopback(address)


@pytest.mark.parametrize("address", [a for a in FORBIDDEN if a not in {"127.0.0.1", "127.255.255.255", "::1"}])
def test_development_admits_no_other_special_address(address: str) -> None:
    assert is_forbidden_address(address, allow_loopback=True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://shop.example.com/hook?a=b&c=%2F", "https://shop.example.com/hook?a=b&c=%2F"),
        ("HTTPS://Shop.Example.COM", "https://shop.example.com/"),
        ("https://shop.example.com:443/h", "https://shop.example.com/h"),
        ("https://shop.example.com:8443/h", "https://shop.example.com:8443/h"),
        ("http://shop.example.com/h", "http://shop.example.com/h"),
        ("https://shop.example.com./h#part", "https://shop.example.com/h"),
        ("https://shop.example.com?x", "https://shop.example.com/?x"),
        ("https://xn--bcher-kva.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://b\u00fccher.example/h", "https://xn--bcher-kva.example/h"),
        ("https://BU\u0308CHER.Example:8443?x", "https://xn--bcher-kva.example:8443/?x"),
        ("https://\u0926\u0941\u0915\u093e\u0928.\u092d\u093e\u0930\u0924/", "https://xn--11b7ah1gn.xn--h2brj9c/"),
        ("https://8.8.8.8/h", "https://8.8.8.8/h"),
        ("https://[2606:4700:4700:0::1111]:8443/h", "https://[2606:4700:4700::1111]:8443/h"),
    ],
)
def test_a_public_url_is_returned_in_one_form(url: str, shown: str) -> None:
    assert check_public_url(url).url == shown


def test_a_safe_url_has_the_parts_to_connect_with() -> None:
    safe = check_public_url("https://[2606:4700:4700::1111]:8443/h")
    assert (safe.scheme, safe.host, safe.port) == ("https", "2606:4700:4700::1111", 8443)


@pytest.mark.parametrize(
    "url",
    [
        # not a URL for webhooks
        "", "shop.example.com", "//shop.example.com/", "https:shop.example.com", "https:///h", "ftp://shop.example.com/",
        "javascript:alert(1)", "file:///etc/passwd", "gopher://shop.example.com/", "https://", "https://?x",
        # userinfo, backslashes, blanks, control characters
        "https://user@shop.example.com/", "https://a:b@shop.example.com/", "https://shop.example.com@127.0.0.1/",
        "https://shop.example.com\\@127.0.0.1/", "https://shop.example.com\\.evil/", "https://shop.example.com/\\x",
        "https://shop.example.com/a b", " https://shop.example.com/", "https://shop.example.com/\r\nX: y",
        "https://shop.example.com/\n", "https://shop.\texample.com/", "https://shop.example.com/\x00", "https://shop%2eexample.com/",
        # Unicode that becomes ASCII
        "https://shop\u3002example.com/", "https://\uff11\uff12\uff17.0.0.1/", "https://\u2460\u2461\u2466.0.0.1/",
        "https://b\u00fccher.local/", "https://b\u00fccher/", "https://b\u00fc_r.example.com/", "https://\u00e4.b\u00fc\u2060.example/",
        "https://user@b\u00fccher.example/", "https://b\u00fccher.example:22/", "https://b\u00fccher.example/\u00fc",
        "https://[\u00fc]/", "https://" + "\u00fc" * 64 + ".example/", "https://shop.example.com/\u202e", "https://shop.example.com/\ud800",
        # addresses that are not public, in every notation
        "https://127.0.0.1/", "https://127.1/", "https://127.0.1/", "https://2130706433/", "https://0x7f000001/",
        "https://0x7f.1/", "https://0x7f.0x1/", "https://127.0.0.0x1/",
        "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://017700000001/", "https://127.0.0.01/",
        "https://8.8.8.010/", "https://8.8.2056/", "https://0x/", "https://0/", "https://1.1.1.1.1/", "https://256.1.1.1/",
        "https://10.0.0.1/", "https://169.254.169.254/latest/meta-data", "https://127.0.0.1./", "https://192.0.0.192/",
        "https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
        "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001::1]/", "https://[fe80::1%25eth0]/",
        "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[ff02::1]/", "https://[127.0.0.1]/", "https://[::1/",
        "https://::1/", "https://[]/",
        # local names
        "https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "https://postgres/", "https://printer.local/",
        "https://metadata.google.internal/", "https://router.lan/", "https://nas.home.arpa/",
        # malformed names
        "https://-a.example.com/", "https://a-.example.com/", "https://a..example.com/", "https://.example.com/",
        "https://shop.example.com../", "https://a_b.example.com/", f"https://{'a' * 64}.example.com/",
        f"https://{'a.' * 127}com/",
        # ports
        "https://shop.example.com:0/", "https://shop.example.com:22/", "https://shop.example.com:25/",
        "https://shop.example.com:6379/", "https://shop.example.com:65536/", "https://shop.example.com:99999/",
        "https://shop.example.com:/", "https://shop.example.com:0443/", "https://shop.example.com:+443/",
        "https://shop.example.com:443:443/", "https://shop.example.com:\u0664\u0664\u0663/",
        f"https://shop.example.com/{'a' * 2048}",
    ],
)  # fmt: skip
def test_an_unsafe_url_is_refused(url: str) -> None:
    with pytest.raises(EgressRefused):
        check_public_url(url)


def test_a_url_of_2048_characters_is_the_longest_admitted() -> None:
    assert check_public_url("https://shop.example.com/".ljust(2048, "a")).host == "shop.example.com"


def test_https_can_be_required() -> None:
    with pytest.raises(EgressRefused):
        check_public_url("http://shop.example.com/", require_https=True)


@pytest.mark.parametrize(
    "url", ["https://api.example.com/x", "https://API.example.com.:8443/", "http://api.example.com/"]
)
def test_the_gateways_own_hosts_are_refused(url: str) -> None:
    with pytest.raises(EgressRefused):
        check_public_url(url, own_hosts={"api.example.com"})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/h", "http://localhost:1234/h", "http://[::1]:6379/", "https://127.0.0.1/"]
)
def test_development_admits_loopback_and_plain_http_to_it(url: str) -> None:
    own = {"127.0.0.1", "localhost"}
    assert check_public_url(url, allow_private=True, require_https=True, own_hosts=own).url == url


@pytest.mark.parametrize(
    "url",
    ["http://shop.example.com/", "http://10.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/",
     "https://printer.local/", "http://2130706433/", "http://[::ffff:127.0.0.1]/", "http://localhost.:0/"],
)  # fmt: skip
def test_development_refuses_other_private_hosts(url: str) -> None:
    with pytest.raises(EgressRefused):
        check_public_url(url, allow_private=True, require_https=True)


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Fake the name servers, one answer a lookup; return the list of requested names."""
    asked: list[str] = []

    def lookup(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET6 if ":" in a else socket.AF_INET, 1, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return asked


def test_a_name_is_resolved_to_its_public_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, ["8.8.8.8", "2606:4700:4700::1111", "8.8.8.8"])
    assert resolve("shop.example.com", 443) == ["8.8.8.8", "2606:4700:4700::1111"]


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::ffff:127.0.0.1"]]
)
def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    answer_with(monkeypatch, addresses)
    with pytest.raises(EgressRefused):
        resolve("shop.example.com", 443)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_spellings_that_the_system_resolves_to_loopback_are_refused(host: str) -> None:
    with pytest.raises(EgressRefused):
        resolve(host, 443)


def test_a_name_that_no_resolver_accepts_is_refused() -> None:
    with pytest.raises(EgressRefused):
        resolve("a" * 70 + ".example.com", 443)


def test_a_name_without_an_address_raises_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, [])
    with pytest.raises(OSError, match="no address"):
        resolve("shop.example.com", 443)


@asynccontextmanager
async def receiver() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Run a web server on loopback; yield its port and the requests it got."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        server.close()
        await server.wait_closed()


async def fetch(url: str, *, allow_private: bool) -> int:
    async with (
        aiohttp.ClientSession(connector=PinnedConnector(allow_private=allow_private)) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        return response.status


def test_a_request_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with receiver() as (port, seen):
            # Given a name that is checked once and would lead elsewhere when asked again
            asked = answer_with(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
            assert await fetch(f"http://shop.example.com:{port}/h", allow_private=True) == 204
            assert asked == ["shop.example.com"]
            assert b"Host: shop.example.com" in seen[0]

    asyncio.run(story())


def test_a_name_that_resolves_to_a_private_address_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with receiver() as (port, seen):
            answer_with(monkeypatch, ["127.0.0.1"])
            with pytest.raises(EgressRefused):
                await fetch(f"http://shop.example.com:{port}/h", allow_private=False)
            assert seen == []

    asyncio.run(story())


def test_a_literal_address_is_checked_at_the_socket_without_resolving() -> None:
    async def story() -> None:
        async with receiver() as (port, seen):
            with pytest.raises(EgressRefused):
                await fetch(f"http://127.0.0.1:{port}/h", allow_private=False)
            assert seen == []
            assert await fetch(f"http://127.0.0.1:{port}/h", allow_private=True) == 204

    asyncio.run(story())


def test_closing_a_connector_closes_its_resolver() -> None:
    async def story() -> None:
        connector = PinnedConnector()
        await connector.close()
        with pytest.raises(RuntimeError, match="shutdown"):
            await connector._pinned.resolve("shop.example.com", 443)

    asyncio.run(story())


def test_a_silent_name_server_does_not_delay_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        released.wait(60)
        return []

    async def story() -> None:
        resolver = PinnedResolver()
        monkeypatch.setattr("actors.webhooks.connector.LOOKUP_S", 0.05)
        monkeypatch.setattr("actors.webhooks.connector.resolve", hang)
        with pytest.raises(TimeoutError):
            await resolver.resolve("shop.example.com", 443)
        released.set()
        await resolver.close()

    asyncio.run(story())
