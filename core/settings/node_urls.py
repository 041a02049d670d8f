"""Reads the address of a node with its credentials. Used by core.settings, core.logs.redact and chains.net.

    https://user:password@node.example/path          basic auth, percent-encoded where it must be
    https://node.example/path#X-Api-Key=abc           one header, as name and value, percent-encoded likewise

Credentials are not part of the address: two URLs that differ only in them are one provider. No error of this module
shows any part of a URL.
"""

import base64
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

SCHEMES: Final = {"http": 80, "https": 443}
HEADER_CHARS_MAX: Final = 4096
_NAME: Final = re.compile(r"[!#$&'*+.^_`|~0-9A-Za-z-]{1,64}")
# Visible ASCII, with blanks inside: a line's end would begin another header.
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
# Headers that the connection itself sets.
_OURS: Final = frozenset({
    "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
    "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
AUTHORIZATION: Final = "Authorization"


@dataclass(frozen=True, slots=True)
class NodeUrl:
    """The address of a node and its headers of credentials. Its repr shows neither."""

    # Scheme, host, an unusual port, path and query. It identifies the provider.
    address: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    # The texts that must not be shown, as written and as sent.
    secrets: tuple[str, ...] = field(default=(), repr=False, compare=False)


def read_node_url(text: str) -> NodeUrl:
    """Read a URL as an operator writes it. Raises ValueError, which shows no part of it."""
    try:
        parts = urlsplit(text)
        address = _address(parts)
    except ValueError:
        # The original error's text may hold the URL.
        raise ValueError("must be a URL that starts with http:// or https://") from None
    credentials = [row for row in (_user(parts.netloc), _header(parts.fragment)) if row]
    if len({row.name.lower() for row in credentials}) != len(credentials):
        raise ValueError("must not have both a user and a header Authorization")
    headers = tuple((row.name, row.value) for row in credentials)
    return NodeUrl(address, headers, tuple(text for row in credentials for text in row.secrets if text))


def _address(parts: SplitResult) -> str:
    """Return the provider's address in one form: host in lower case, no usual port, no final slash."""
    if parts.scheme not in SCHEMES or not parts.hostname or parts.port == 0:
        raise ValueError
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if parts.port in {None, SCHEMES[parts.scheme]} else f"{host}:{parts.port}"
    rest = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path.rstrip("/")
    return f"{parts.scheme}://{place}{rest}"


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    value: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def _user(netloc: str) -> _Header | None:
    written, at, _ = netloc.rpartition("@")
    if not at:
        return None
    name, has_password, password = written.partition(":")
    user, secret = _decoded(name), _decoded(password)
    if not written or user is None or secret is None or ":" in user or not (user + secret).isprintable():
        raise ValueError("must have a user as user:password, without colons or control characters in the user's name")
    token = base64.b64encode(f"{user}:{secret}".encode()).decode()
    # If there is a password, the user's name is an ordinary word, which logs may need.
    kept = (password, secret) if has_password else (name, user)
    return _Header(AUTHORIZATION, f"Basic {token}", (written, *kept, token))


def _header(fragment: str) -> _Header | None:
    if not fragment:
        return None
    name, is_named, written = fragment.partition("=")
    value = _decoded(written)
    if not is_named or not _NAME.fullmatch(name) or name.lower() in _OURS:
        raise ValueError("must have nothing behind # but one header, as Name=value")
    if value is None or len(value) > HEADER_CHARS_MAX or not _VALUE.fullmatch(value):
        raise ValueError("must have a header's value of visible ASCII")
    return _Header(name, value, (written, value))


def _decoded(text: str) -> str | None:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return None
