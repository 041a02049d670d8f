"""Hosts that no webhook may reach, from every forbidden range in every notation, and some that one may.

The ranges are typed here from the registries of special-purpose addresses, independently of core.http.egress.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

V4_RANGES = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
)  # fmt: skip
V6_RANGES = (
    "::/128", "::1/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
    "100:0:0:1::/64", "2001::/32", "2001:1::1/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28",
    "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
    "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "4000::/3", "8000::/1", "200::/7",
)  # fmt: skip

# Metadata services of clouds and local addresses.
METADATA = (
    "169.254.169.254", "169.254.169.253", "169.254.169.123", "169.254.170.2", "169.254.170.23", "169.254.0.23",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "100.88.222.5", "[fd00:ec2::254]", "[fd00:ec2::23]",
    "[fd20:ce::254]", "[fe80::a9fe:a9fe]", "metadata.google.internal", "instance-data.ec2.internal",
    "metadata.internal", "kubernetes.default.svc.cluster.local", "host.docker.internal", "gateway.docker.internal",
)  # fmt: skip
LOCAL_NAMES = (
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "local", "printer.local",
    "router.lan", "nas.home", "nas.home.arpa", "wiki.corp", "db.intranet", "db.internal", "x.private", "postgres",
    "redis", "ip6-localhost", "ip6-loopback", "broadcasthost", "wpad", "a", "com",
)  # fmt: skip
# Spellings that parsers and resolvers have accepted as addresses, and malformed hosts.
TRICKS = (
    "127.0.0.1.", "127.1", "127.0.1", "0", "0.0", "0x0", "0x", "00", "1.1.1.1.1", "256.0.0.1", "127.0.0.256",
    "0x7f.0.0.1", "0x7F.1", "0177.1", "00000177.0.0.1", "127.0.0.01", "127.00.0.1", "127.0x0.0.1", "8.8.8.010",
    "0x7f000001", "0x00000007f000001", "017700000001", "2130706433", "4294967295", "4294967296", "6425673729",
    "127.0.0.1%00.example.com", "127.0.0.1%2eexample.com", "%31%32%37.0.0.1", "127%2e0%2e0%2e1",
    "127\u30020\u30020\u30021", "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1", "127\uff0e0\uff0e0\uff0e1",
    "loc\u00adalhost", "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3", "[::1%25lo]", "[::1%lo]",
    "[fe80::1%25eth0]", "[v1.127.0.0.1]", "[127.0.0.1]", "[::1", "::1", "[]", "[:]", "[::]", "[::]:8443",
    "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::127.0.0.1]", "[::ffff:127.0.0.1]:8443",
    "user@127.0.0.1", "shop.example@127.0.0.1", "127.0.0.1@shop.example", "shop.example\\@127.0.0.1",
    "127.0.0.1\\.shop.example", "shop.example#@127.0.0.1/\\", "127.0.0.1:443:80", "127.0.0.1:80", "127.0.0.1:6379",
    "shop.example:22", "shop.example:25", "shop.example:6379", "shop.example:5432", "shop.example:11211",
    "shop.example:0", "shop.example:65536", "shop.example:", "shop.example\t", "shop.example\r\nHost: 127.0.0.1",
    " 127.0.0.1", "127.0.0.1 ", "shop..example", ".shop.example", "-shop.example", "shop_.example",
)  # fmt: skip


def _edges(text: str) -> Iterator[str]:
    """Return the first, a middle and the last address of a range."""
    network = IPv6Network(text) if ":" in text else IPv4Network(text)
    for position in sorted({0, network.num_addresses // 2, network.num_addresses - 1}):
        yield str(network[position])


def _numbers(address: IPv4Address) -> Iterator[str]:
    """Return the C library's spellings of an address other than four decimal parts."""
    value, parts = int(address), address.packed
    yield str(value)
    yield hex(value)
    yield f"0{value:o}"
    yield ".".join(f"0{part:o}" for part in parts)
    yield ".".join(hex(part) for part in parts)
    yield f"{parts[0]}.{value & 0xFFFFFF}"


def _disguises(address: IPv4Address) -> Iterator[str]:
    """Return the IPv6 addresses that embed an IPv4 address."""
    value = int(address)
    yield f"[::ffff:{address}]"
    yield f"[{IPv6Address(0xFFFF << 32 | value)}]"
    yield f"[::{address}]"
    yield f"[::ffff:0:{address}]"
    yield f"[64:ff9b::{address}]"
    yield f"[64:ff9b:1::{address}]"
    yield f"[{IPv6Address(0x2002 << 112 | value << 80 | 1)}]"
    yield f"[{IPv6Address(0x20010000 << 96 | value << 64)}]"
    yield f"[{IPv6Address(0x20010000 << 96 | value ^ 0xFFFFFFFF)}]"
    yield f"[fe80::5efe:{address}]"


V4 = tuple(dict.fromkeys(edge for text in V4_RANGES for edge in _edges(text)))
V6 = tuple(dict.fromkeys(edge for text in V6_RANGES for edge in _edges(text)))
_LURES = tuple(map(IPv4Address, ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "0.0.0.0")))  # noqa: S104

FORBIDDEN_ADDRESSES = tuple(
    dict.fromkeys((*V4, *V6, *(host.strip("[]") for lure in _LURES for host in _disguises(lure)), *METADATA[:10]))
)
"""Addresses as a resolver returns them."""

FORBIDDEN_HOSTS = tuple(
    dict.fromkeys(
        (
            *V4,
            *(f"[{address}]" for address in V6),
            *(host for lure in _LURES for host in (*_numbers(lure), *_disguises(lure))),
            *METADATA,
            *LOCAL_NAMES,
            *TRICKS,
        )
    )
)
"""Hosts as a merchant may write them into a URL, some with a port."""

PUBLIC_ADDRESSES = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.1", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.31.195.255", "192.31.197.0",
    "192.52.192.255", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "192.175.49.0",
    "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
    "223.255.255.255",
    "2001:200::1", "2001:4860:4860::8888", "2001:db7::1", "2001:db9::1", "2003::1", "2400:cb00::1",
    "2606:4700:4700::1111", "2620:4f:8001::1", "2a00:1450:4001:81b::200e", "2a02:26f0::1", "3ffe::1",
)  # fmt: skip
PUBLIC_HOSTS = (
    *(f"[{address}]" if ":" in address else address for address in PUBLIC_ADDRESSES),
    "shop.example", "shop.example:443", "shop.example:8443", "SHOP.example.", "xn--bcher-kva.example",
    "a.b.c.d.example", "127.0.0.1.shop.example", "localhost.shop.example", "10.shop.example", "internal.shop.example",
    "1.1.1.1:8443", "[2606:4700:4700::1111]:8443",
)  # fmt: skip
