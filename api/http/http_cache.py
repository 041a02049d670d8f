"""ETags: a caller that has the present version is not sent it again. Called for cached endpoints and static files."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import falcon
from falcon import Request, Response

_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def etag_of(body: bytes) -> str:
    """Return the strong validator of a body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_known(req: Request, resp: Response, body: bytes) -> bool:
    """Set the body's ETag. If the caller has that version, make the response a 304 and return True."""
    etag = etag_of(body)
    resp.set_header("ETag", etag)
    if not matches(req.env.get("HTTP_IF_NONE_MATCH", ""), etag):
        return False
    resp.status = falcon.HTTP_304
    return True


def matches(if_none_match: str, etag: str) -> bool:
    """Return True if a header names the validator; weak and strong compare alike here (RFC 9110, section 13.1.2)."""
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
