"""From which source addresses a merchant's keys may sign. Set by actors.allowlist; api reads them with the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from models.base import execute, one

if TYPE_CHECKING:
    from uuid import UUID


def read(merchant_id: UUID) -> list[str]:
    """Return a merchant's list; empty where there is none."""
    row = one("SELECT ip_allowlist FROM merchants WHERE id = %s", (merchant_id,))
    return [] if row is None else cast("list[str]", row[0])


def replace(merchant_id: UUID, ips: list[str]) -> None:
    """Set a merchant's list, in an open transaction."""
    execute("UPDATE merchants SET ip_allowlist = %s::text[] WHERE id = %s", (ips, merchant_id))
