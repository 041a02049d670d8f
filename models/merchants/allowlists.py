"""Keeps from where a merchant's keys may sign. Set by actors.merchants.allowlist; read with each key."""

from __future__ import annotations

from uuid import UUID

from models.db.base import execute, is_true, value
from models.merchants.rows import Merchant, UnknownMerchantError, note_changed


def read(merchant_id: UUID) -> list[str]:
    """Return a merchant's allowlist; empty if he has none."""
    return Merchant.select(Merchant.ip_allowlist).where(Merchant.id == merchant_id).first() or []


def replace(merchant_id: UUID, ips: list[str]) -> bool:
    """Set a merchant's list, in an open transaction; return True if it admits others than before."""
    before: list[str] | None = value(
        "SELECT ip_allowlist FROM merchants WHERE id = %s FOR NO KEY UPDATE", (merchant_id,)
    )
    execute("UPDATE merchants SET ip_allowlist = %s::text[] WHERE id = %s", (ips, merchant_id))
    is_changed = set(before or ()) != set(ips)
    if is_changed:
        note_changed(merchant_id, "ip_allowlist")
    return is_changed


def end(merchant_id: UUID) -> list[str]:
    """Let a merchant's keys sign from anywhere and return the list that held; in an open transaction.

    Raises UnknownMerchantError.
    """
    if not is_true("SELECT 1 FROM merchants WHERE id = %s FOR UPDATE", (merchant_id,)):
        raise UnknownMerchantError(f"there is no merchant {merchant_id}")
    ended = read(merchant_id)
    replace(merchant_id, [])
    return ended
