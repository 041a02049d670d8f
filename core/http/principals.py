"""Who asks for something whose author matters: what carries a principal to an actor beside the request's body.

A principal is an API key's public id, or `user:…` for somebody in the cabinet. Written by api.endpoints.signed_body.
"""

from __future__ import annotations

import msgspec


class Signed(msgspec.Struct, kw_only=True, frozen=True):
    """A message of an actor that has to know who asked: the principal, and the body as the schema renders it."""

    principal: str
    body: msgspec.Raw
