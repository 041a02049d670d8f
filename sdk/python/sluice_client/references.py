"""Gives payout links a reference where the caller gave none.

Two equal links without one, signed in the same second, are one and the same link for the gateway.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any


def with_reference(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a payout link with a reference."""
    return {**fields, "reference": fields.get("reference") or f"lib-{uuid.uuid4()}"}


def with_references(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of several payout links, each with a reference."""
    links: Sequence[Any] = fields["links"]
    return {**fields, "links": [with_reference(link) if isinstance(link, Mapping) else link for link in links]}
