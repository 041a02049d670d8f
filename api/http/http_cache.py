"""ETags: a caller that has the present version is not sent it again. Called for cached endpoints and static files."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import falcon
from falcon import Request, Response

from core.http.encoding import GZIP, Packed, takes_gzip

_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def choose(req: Request, resp: Response, packed: Packed) -> bytes:
    """Return the form that the caller accepts. Each form has its own ETag; Vary names the choice to caches."""
    resp.set_header("Vary", "Accept-Encoding")
    if not takes_gzip(req.env.get("HTTP_ACCEPT_ENCODING", "")):
        return packed.plain
    resp.set_header("Content-Encoding", GZIP)
    return packed.gzipped


def etag_of(body: bytes) -> str:
    """Return the strong validator of a body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_known(req: Request, resp: Response, body: bytes, *, is_weak: bool = False) -> bool:
    """Set the body's ETag. If the caller has that version, make the response a 304 and return True.

    is_weak: the body is sent in several forms, compressed or not, which the ETag does not distinguish.
    """
    etag = etag_of(body)
    resp.set_header("ETag", f"W/{etag}" if is_weak else etag)
    if not matches(req.env.get("HTTP_IF_NONE_MATCH", ""), etag):
        return False
    resp.status = falcon.HTTP_304
    return True


def matches(if_none_match: str, etag: str) -> bool:
    """Return True if a header names the validator; weak and strong compare alike here (RFC 9110, section 13.1.2)."""
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
