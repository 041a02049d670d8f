"""The source of a request is what trusted proxies vouch for, and nothing that a client wrote itself."""

from __future__ import annotations

import threading
from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs

from api.http.client_ip import client_ip

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "source"),
    [
        ("198.51.100.7", "", "198.51.100.7"),
        ("198.51.100.7", "203.0.113.1", "198.51.100.7"),
        ("10.0.0.1", "203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.9, 203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "192.0.2.9, 203.0.113.1, 10.0.0.2", "203.0.113.1"),
        ("10.0.0.1", "203.0.113.1,10.9.9.9 , 10.0.0.2", "203.0.113.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.1, garbage", "10.0.0.1"),
        # As some balancers write it: with a port, and an IPv6 address in brackets.
        ("10.0.0.1", "203.0.113.1:4711", "203.0.113.1"),
        ("10.0.0.1", "[2001:db8::1]:80", "2001:db8::1"),
        ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.1", "192.0.2.9:1, [::ffff:203.0.113.1]:80 , 10.0.0.2:443", "203.0.113.1"),
        ("fd00::1", "203.0.113.1, [fd00::2]:8080", "203.0.113.1"),
        ("10.0.0.1", "203.0.113.1:", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.1:port", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.1:123456", "10.0.0.1"),
        ("10.0.0.1", "[203.0.113.1", "10.0.0.1"),
        ("10.0.0.1", "[2001:db8::1]80", "10.0.0.1"),
        ("10.0.0.1", "2001:db8::1:80", "2001:db8::1:80"),
        ("fd00::1", "2001:db8::5", "2001:db8::5"),
        ("::ffff:10.0.0.1", "203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "::ffff:203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", ",".join(["203.0.113.1"] + ["10.0.0.2"] * 5000), "10.0.0.2"),
    ],
)
def test_the_nearest_untrusted_address_is_the_source(peer: str, forwarded_for: str, source: str) -> None:
    env = {"REMOTE_ADDR": peer} | ({"HTTP_X_FORWARDED_FOR": forwarded_for} if forwarded_for else {})

    assert str(client_ip(env, PROXIES)) == source


def test_a_hop_that_is_no_address_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.client_ip._warned", threading.Event())

    with capture_logs() as logs:
        for forwarded_for in ("203.0.113.1", "", " ", "unknown, 203.0.113.1", "_hidden", "x" * 1000, "unknown"):
            client_ip({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": forwarded_for}, PROXIES)

    assert logs == [{"event": "forwarded_hop.rejected", "log_level": "warning", "proxy": "10.0.0.1", "hop": "_hidden"}]


def test_without_trusted_proxies_the_header_means_nothing() -> None:
    env = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.1"}

    assert str(client_ip(env, ())) == "10.0.0.1"


def test_a_unix_socket_has_no_address() -> None:
    assert client_ip({"REMOTE_ADDR": "", "HTTP_X_FORWARDED_FOR": "203.0.113.1"}, PROXIES) is None
