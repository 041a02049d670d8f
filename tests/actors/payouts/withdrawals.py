"""Sets a merchant's rule for USDT and reads its withdrawals, for tests."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from actors.payouts.auto_withdraw import set_auto_withdraw
from core.ids import uuid7
from models.db.base import execute
from models.payouts.rows import PayoutRow
from tests.actors.asking import ask
from tests.models.payouts.builders import RECIPIENT
from tests.models.queue.builders import info

KEY: Final = "pk_creator"
RULE: Final = {"currency": "USDT", "network": "ethereum", "address": RECIPIENT, "threshold": "50"}


def set_rule(merchant_id: UUID, body: dict[str, Any] | None = None, *, by: str = KEY) -> list[dict[str, Any]]:
    """Set a merchant's rule as a key does; return all rules as in the response."""
    answer = ask(set_auto_withdraw, info(merchant_id, principal=by), RULE if body is None else body)
    rules: list[dict[str, Any]] = answer["items"]
    return rules


def made(merchant_id: UUID) -> list[PayoutRow]:
    """Return the payouts of a merchant's rules, oldest first."""
    return PayoutRow.read("p.merchant_id = %s AND p.kind = 'autowithdraw' ORDER BY p.id", (merchant_id,))


def add_key(merchant_id: UUID, public_id: str = KEY, *, is_revoked: bool = False) -> None:
    """Write a key of that name, whose secret no key opens."""
    execute(
        "INSERT INTO api_keys (id, public_id, merchant_id, kind, label, secret_box, revoked_at)"
        " VALUES (%s, %s, %s, 'unified', '', 'kid:none', CASE WHEN %s THEN app_now() END)",
        (uuid7(), public_id, merchant_id, is_revoked),
    )
