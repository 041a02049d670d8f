"""Keeps the rules by which a merchant shares its credits. Called by actors.merchants.splits; read by the API.

The statement that credits a deposit reads the rules itself (models.ledger.shares), and applies those of that moment.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from core import errors
from core.ids import uuid7
from core.merchants import split_schemas
from core.merchants.terms_rules import percent_number
from core.money import PPM
from core.texts.render import iso_time
from models.db.base import execute, is_true, rows, touched, value
from models.db.revocation import VOUCHED
from models.db.table import BY_DATABASE, Table
from models.ledger import releases
from models.merchants.rows import Merchant, note_changed


class SplitRuleRow(Table, table="split_rules r"):
    """A rule: which part of a merchant's credits goes to another one."""

    id: UUID
    merchant_id: UUID
    recipient_id: UUID
    percent_ppm: int
    title: str
    set_by: str = ""
    cosigned_by: str = ""
    is_pending: bool = False
    created_at: datetime = BY_DATABASE


class Added(NamedTuple):
    """A rule that was added. is_change: False where the same rule of its principal waited already."""

    rule: SplitRuleRow
    is_change: bool


class Config(NamedTuple):
    """Whether a merchant's rules apply, and for how many hours their shares wait."""

    enabled: bool
    hold_hours: int


def add(merchant_id: UUID, recipient_id: UUID, *, percent_ppm: int, title: str, principal: str = "") -> Added:
    """Put a rule into force, in an open transaction.

    Where the merchant requires co-signing, the rule waits until another principal adds the same rule. The principal
    that set it gets its pending rule again. Raises split.unknown_recipient, split.too_many_rules and split.over_100.
    """
    if recipient_id == merchant_id or not is_true("SELECT 1 FROM merchants WHERE id = %s", (recipient_id,)):
        raise errors.SplitUnknownRecipient
    is_cosign_required = _lock(merchant_id)
    waiting = _pending(merchant_id, recipient_id, percent_ppm, title) if is_cosign_required else []
    mine = [rule for rule in waiting if rule.set_by == principal]
    others = [rule for rule in waiting if rule.set_by != principal]
    if mine and not others:
        return Added(mine[0], is_change=False)
    # A pending rule shares nothing yet, so it takes no percentage from others.
    ((count, sum_ppm),) = rows(
        "SELECT count(*), COALESCE(sum(percent_ppm) FILTER (WHERE NOT is_pending), 0) FROM split_rules r"
        f" WHERE merchant_id = %s AND {VOUCHED}",
        (merchant_id,),
    )
    if sum_ppm + percent_ppm > PPM:
        raise errors.SplitOver100
    if others:
        return Added(_cosign(others[0], principal), is_change=True)
    if count >= split_schemas.RULES_MAX:
        raise errors.SplitTooManyRules
    new = SplitRuleRow(
        id=uuid7(),
        merchant_id=merchant_id,
        recipient_id=recipient_id,
        percent_ppm=percent_ppm,
        title=title,
        set_by=principal,
        is_pending=is_cosign_required,
    )
    return Added(SplitRuleRow.store_all([new])[0], is_change=True)


def _lock(merchant_id: UUID) -> bool:
    """Lock a merchant, since its rules are counted and added up; return whether it requires co-signing."""
    return is_true("SELECT is_cosign_required FROM merchants WHERE id = %s FOR NO KEY UPDATE", (merchant_id,))


def _pending(merchant_id: UUID, recipient_id: UUID, percent_ppm: int, title: str) -> list[SplitRuleRow]:
    """Return the same rules that wait for a second principal, oldest first."""
    return SplitRuleRow.read(
        "r.merchant_id = %s AND r.recipient_id = %s AND r.percent_ppm = %s AND r.title = %s AND r.is_pending"
        f" AND {VOUCHED} ORDER BY r.id",
        (merchant_id, recipient_id, percent_ppm, title),
    )


def _cosign(rule: SplitRuleRow, principal: str) -> SplitRuleRow:
    """Put a pending rule into force; its merchant is locked."""
    execute("UPDATE split_rules SET is_pending = false, cosigned_by = %s WHERE id = %s", (principal, rule.id))
    return rule.but(is_pending=False, cosigned_by=principal)


def listing(merchant_id: UUID) -> list[SplitRuleRow]:
    """Return a merchant's rules, newest first, pending ones too, without those of revoked keys; add() bounds them."""
    return SplitRuleRow.read(f"r.merchant_id = %s AND {VOUCHED} ORDER BY r.id DESC", (merchant_id,))


def delete(merchant_id: UUID, rule_id: UUID) -> UUID | None:
    """Take a merchant's rule out of force and return its recipient; None if the merchant has no rule of that id.

    Shares that wait stay as they are.
    """
    recipient_id: UUID | None = value(
        "DELETE FROM split_rules WHERE id = %s AND merchant_id = %s RETURNING recipient_id", (rule_id, merchant_id)
    )
    return recipient_id


def set_config(merchant_id: UUID, *, enabled: bool | None, hold_hours: int | None) -> bool:
    """Change what is given, for credits from now on; return True if that differs from before."""
    is_changed = touched(
        "UPDATE merchants SET is_split_enabled = COALESCE(%(enabled)s, is_split_enabled),"
        " split_hold_hours = COALESCE(%(hours)s, split_hold_hours) WHERE id = %(merchant)s"
        " AND (is_split_enabled <> %(enabled)s OR split_hold_hours <> %(hours)s)",
        {"enabled": enabled, "hours": hold_hours, "merchant": merchant_id},
    )
    if is_changed:
        note_changed(merchant_id, "splits")
    return is_changed


def read_config(merchant_id: UUID) -> Config:
    """Return how a merchant's rules apply. The merchant exists: its key was verified."""
    config = Merchant.select(Merchant.is_split_enabled, Merchant.split_hold_hours)
    row = config.where(Merchant.id == merchant_id).first()
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return Config(*row)


def show_rule(rule: SplitRuleRow) -> split_schemas.SplitRule:
    """Return a rule as the API shows it."""
    return split_schemas.SplitRule(
        rule_id=str(rule.id),
        recipient_merchant_id=str(rule.recipient_id),
        percent=percent_number(rule.percent_ppm),
        title=rule.title,
        status="awaiting_cosign" if rule.is_pending else "active",
        created_at=iso_time(rule.created_at),
    )


def show_config(merchant_id: UUID) -> split_schemas.SplitConfig:
    """Return a merchant's split rules, and its earnings from others', as the API shows them."""
    config = read_config(merchant_id)
    received = releases.earnings(merchant_id)
    return split_schemas.SplitConfig(
        enabled=config.enabled,
        refund_hold_hours=config.hold_hours,
        earnings_by_asset={currency: str(units) for currency, units in received.items()},
    )
