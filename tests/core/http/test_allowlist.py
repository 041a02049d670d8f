"""An allowlist admits exactly the addresses that it names."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from core.errors import AllowlistBadIp
from core.http.allowlist import ENTRIES_MAX, admits, parse, texts


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7/32", "203.0.113.7"),
        ("198.51.100.0/24", "198.51.100.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:198.51.100.0/120", "198.51.100.0/24"),
        ("::/0", "::/0"),
    ],
)
def test_addresses_and_networks_are_shown_in_one_spelling(entry: str, shown: str) -> None:
    assert texts(parse([entry])) == [shown]
    assert texts(parse([shown])) == [shown]


@pytest.mark.parametrize(
    "entry",
    [
        "", " ", "x", "203.0.113", "203.0.113.256", "203.0.113.7 ", "203.0.113.07", "203.0.113.7:80", "203.0.113.7/33",
        "203.0.113.7/24", "203.0.113.0/-1", "203.0.113.0/255.255.255.0", "203.0.113.0/0.0.0.255", "203.0.113.0/",
        "/24", "3405803783", "0xcb007107", "2001:db8::/129", "fe80::1%eth0", "[2001:db8::1]", "*", "203.0.113.*",
        "203.0.113.7\n", "203.0.113.7\x00", "\N{FULLWIDTH DIGIT TWO}03.0.113.7", "203.0.113.1-203.0.113.9", "localhost",
        "1" * 100_000, "\ud800", "203.0.113.0/0024", "2001:db8::1/64",
    ],
)  # fmt: skip
def test_an_entry_that_is_no_address_or_network_is_refused(entry: str) -> None:
    with pytest.raises(AllowlistBadIp, match="ips") as refusal:
        parse(["203.0.113.7", entry])
    assert len(refusal.value.message) < 200


def test_a_list_is_bounded_and_holds_each_network_once() -> None:
    assert texts(parse(["203.0.113.7", "2001:db8::1", "::ffff:203.0.113.7", "203.0.113.7/32"])) == [
        "203.0.113.7",
        "2001:db8::1",
    ]
    parse([f"203.0.113.{number}" for number in range(ENTRIES_MAX)])
    with pytest.raises(AllowlistBadIp):
        parse([f"203.0.113.{number}" for number in range(ENTRIES_MAX + 1)])


@pytest.mark.parametrize(
    ("entries", "source", "admitted"),
    [
        ([], "203.0.113.7", True),
        ([], None, True),
        (["203.0.113.7"], "203.0.113.7", True),
        (["203.0.113.7"], "203.0.113.8", False),
        (["203.0.113.7"], None, False),
        (["0.0.0.0/0"], "2001:db8::1", False),
        (["::/0"], "203.0.113.7", False),
        (["198.51.100.0/24"], "198.51.100.255", True),
        (["198.51.100.0/24"], "198.51.101.0", False),
        (["203.0.113.7", "2001:db8::/32"], "2001:db8:1::9", True),
    ],
)
def test_only_listed_addresses_are_admitted(entries: list[str], source: str | None, admitted: bool) -> None:  # noqa: FBT001
    assert admits(parse(entries), ip_address(source) if source else None) is admitted
