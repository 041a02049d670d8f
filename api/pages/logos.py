"""Serves the logos of merchants to browsers. Used by api.app.

A picture comes under a policy of its own that forbids everything, so that it stays a picture wherever it is opened.
"""

from __future__ import annotations

from typing import Final

from falcon import Request, Response

from api.http.slots import Slots
from core.errors import RequestNotFound
from models.merchants import logos

_HEADERS: Final = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Content-Disposition", "inline"),
    # The address changes with the picture.
    ("Cache-Control", "public, max-age=31536000, immutable"),
)


class Logos:
    """GET /logo/<digest>."""

    methods = frozenset({"GET", "HEAD"})
    allow = "GET, HEAD"
    is_anonymous = True

    def __init__(self, reads: Slots) -> None:
        self._reads = reads

    def on_get(self, _req: Request, resp: Response, digest: str) -> None:
        """Send a picture."""
        with self._reads.taken():
            png = logos.read_logo(digest)
        if png is None:
            raise RequestNotFound
        resp.set_headers(_HEADERS)
        resp.content_type = "image/png"
        resp.data = png

    on_head = on_get
