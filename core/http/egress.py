"""Decides where the gateway may send a request: never into its own network. Called for every URL from a stranger.

`check_public_url` checks the text of a URL and needs no network. actors.webhooks.connector looks up names and connects
to a checked address. An address is admitted if it is in a public range, not because a list of bad ones lacks it:
Python's `is_global` alone admits NAT64, 6to4 and multicast.
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import idna

URL_CHARS_MAX = 2048
HOST_CHARS_MAX = 253

_PORTS = {"http": 80, "https": 443}
# Ports of services that do not speak HTTP but may misread a request as their own protocol (the Fetch standard's list,
# shortened, and the usual databases). Below 1024 only the two web ports are admitted anyway.
_REFUSED_PORTS = frozenset({
    1719, 1720, 1723, 2049, 2375, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566,
    6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 10080, 11211, 27017,
})  # fmt: skip
_PRIVILEGED_PORTS = 1024
_PORT_MAX = 65535

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_PUBLIC_V6 = IPv6Network("2000::/3")
_FORBIDDEN_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # a public address at which one cloud serves metadata
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",  # sinks of the reverse zones of private addresses, as 192.175.48.0/24
            "192.52.193.0/24",  # relays of multicast
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
# Inside 2000::/3; everything outside it is refused anyway: mapped, NAT64, local, link-local and multicast.
_FORBIDDEN_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo, ORCHID, benchmarks
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # as 192.175.48.0/24
            "3fff::/20",
        ),
    )
)

# Visible ASCII without a backslash, which some parsers read as a slash: control characters, blanks and Unicode dots
# end here. Names in Unicode are judged by their punycode.
_URL = re.compile(r"(https?)://([^/?#]+)((?:[/?#].*)?)", re.ASCII | re.IGNORECASE | re.DOTALL)
_VISIBLE = re.compile(r"[!-\[\]-~]+")
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z.-]+)(?::([1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# Last labels that some resolvers take for a number: decimal, octal and hexadecimal.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_NAMES = frozenset(
    {"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private"}
)


class EgressRefused(ValueError):  # noqa: N818 - a verdict; callers turn it into their own error
    """The gateway does not send to a URL. The message may be shown to the person who gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SafeUrl:
    """A checked URL, in the parts that a client needs to connect. The host has no brackets."""

    url: str
    scheme: str
    host: str
    port: int


def check_public_url(
    url: str, *, allow_private: bool = False, require_https: bool = False, own_hosts: Collection[str] = ()
) -> SafeUrl:
    """Return a checked URL in its parts, or raise EgressRefused. Names are not resolved here.

    allow_private: admit loopback, and plain http to it. Only for development.
    """
    url = with_ascii_host(url)
    if len(url) > URL_CHARS_MAX or _VISIBLE.fullmatch(url) is None:
        raise EgressRefused("the URL is too long, or holds characters other than visible ASCII")
    match = _URL.fullmatch(url)
    authority = _AUTHORITY.fullmatch(match[2]) if match else None
    if match is None or authority is None:
        raise EgressRefused("this is no http or https URL of a plain host and port")
    scheme, rest = match[1].lower(), match[3].partition("#")[0]
    host = _check_host(authority[1].lower(), allow_private=allow_private)
    local = is_loopback(host)
    port = _check_port(int(authority[2] or _PORTS[scheme]), local=local)
    if require_https and scheme != "https" and not local:
        raise EgressRefused("the URL must be https")
    if host in own_hosts and not local:
        raise EgressRefused("the URL is the gateway's own")
    shown = f"[{host}]" if ":" in host else host
    suffix = "" if port == _PORTS[scheme] else f":{port}"
    return SafeUrl(url=f"{scheme}://{shown}{suffix}{_rooted(rest)}", scheme=scheme, host=host, port=port)


def with_ascii_host(url: str) -> str:
    """Return a URL with its host in punycode if that is in Unicode; every other text as it is.

    Only letters and digits that IDNA 2008 has are taken: a character that other software would turn into a dot or
    an ASCII digit is no part of a name. Raises EgressRefused.
    """
    match = _URL.fullmatch(url)
    if match is None or match[2].isascii() or len(url) > URL_CHARS_MAX:
        return url
    host, colon, port = match[2].partition(":")
    try:
        name = idna.encode(unicodedata.normalize("NFC", host.lower()), strict=True).decode()
    except UnicodeError:
        raise EgressRefused("the host is not a valid name") from None
    return f"{match[1]}://{name}{colon}{port}{match[3]}"


def is_loopback(host: str) -> bool:
    """Return True if a host, an address or a name, is this machine by its text."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _LOOPBACK)


def is_forbidden_address(address: str | IPv4Address | IPv6Address, *, allow_loopback: bool = False) -> bool:
    """Return True if the gateway must not connect to an address; invalid addresses are forbidden too."""
    try:
        address = ip_address(address)
    except ValueError:
        return True
    if allow_loopback and any(address in network for network in _LOOPBACK):
        return False
    if isinstance(address, IPv4Address):
        return any(address in network for network in _FORBIDDEN_V4)
    return address not in _PUBLIC_V6 or any(address in network for network in _FORBIDDEN_V6)


def _check_host(host: str, *, allow_private: bool) -> str:
    """Return the host in the form to compare and connect by: an address, or a name without its final dot."""
    if host.startswith("["):
        return _check_address(host[1:-1], allow_private=allow_private)
    name = host.removesuffix(".")
    labels = name.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        return _check_address(name, allow_private=allow_private)
    if len(name) > HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise EgressRefused("the host is not a valid name")
    if allow_private and name == "localhost":
        return name
    # A resolver would complete a name of one label from the search list of our own network.
    if len(labels) == 1 or labels[-1] in _LOCAL_NAMES or name.endswith(".home.arpa"):
        raise EgressRefused("the host is a local name")
    return name


def _check_address(text: str, *, allow_private: bool) -> str:
    """Return an address in canonical notation. Refuses octal, hexadecimal, short and decimal forms."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        raise EgressRefused("the host is not a valid address") from None
    if is_forbidden_address(address, allow_loopback=allow_private):
        raise EgressRefused("the address is private or reserved")
    return str(address)


def _check_port(port: int, *, local: bool) -> int:
    if port > _PORT_MAX:
        raise EgressRefused("the port does not exist")
    privileged = port < _PRIVILEGED_PORTS and port not in _PORTS.values()
    if not local and (privileged or port in _REFUSED_PORTS):
        raise EgressRefused("the port is not one for the web")
    return port


def _rooted(rest: str) -> str:
    return rest if rest.startswith("/") else f"/{rest}"
