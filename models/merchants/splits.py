"""Keeps by which rules a merchant shares what it is credited. Called by actors.merchants.splits; read by the API.

The statement that credits a deposit reads the rules itself (models.ledger.shares), and counts them as they stand then.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from core import errors
from core.ids import uuid7
from core.merchants import split_schemas as schemas
from core.merchants.terms_rules import percent_number
from core.money import PPM
from core.net.render import iso_time
from models.db.base import execute, is_true, one_as, rows, touched
from models.db.table import BY_DATABASE, Table
from models.ledger import releases


class SplitRuleRow(Table, table="split_rules r"):
    """A rule: which part of a merchant's credits goes to another one."""

    id: UUID
    merchant_id: UUID
    recipient_id: UUID
    percent_ppm: int
    title: str
    created_at: datetime = BY_DATABASE


class Config(NamedTuple):
    """Whether a merchant's rules apply, and for how many hours their shares wait."""

    enabled: bool
    hold_hours: int


def add(merchant_id: UUID, recipient_id: UUID, *, percent_ppm: int, title: str) -> SplitRuleRow:
    """Put a rule into force, in an open transaction.

    Raises split.unknown_recipient, split.too_many_rules and split.over_100.
    """
    if recipient_id == merchant_id or not is_true("SELECT 1 FROM merchants WHERE id = %s", (recipient_id,)):
        raise errors.SplitUnknownRecipient
    _lock(merchant_id)
    ((count, sum_ppm),) = rows(
        "SELECT count(*), COALESCE(sum(percent_ppm), 0) FROM split_rules WHERE merchant_id = %s", (merchant_id,)
    )
    if sum_ppm + percent_ppm > PPM:
        raise errors.SplitOver100
    if count >= schemas.RULES_MAX:
        raise errors.SplitTooManyRules
    new = SplitRuleRow(
        id=uuid7(), merchant_id=merchant_id, recipient_id=recipient_id, percent_ppm=percent_ppm, title=title
    )
    return SplitRuleRow.store_all([new])[0]


def _lock(merchant_id: UUID) -> None:
    """Have rules that are made at once take turns, since they are counted and added up."""
    execute("SELECT 1 FROM merchants WHERE id = %s FOR NO KEY UPDATE", (merchant_id,))


def listing(merchant_id: UUID) -> list[SplitRuleRow]:
    """Return a merchant's rules, newest first; add() bounds them."""
    return SplitRuleRow.read("r.merchant_id = %s ORDER BY r.id DESC", (merchant_id,))


def delete(merchant_id: UUID, rule_id: UUID) -> bool:
    """Take a merchant's rule out of force; False if it has none of that id. Shares that wait stay as they are."""
    return touched("DELETE FROM split_rules WHERE id = %s AND merchant_id = %s", (rule_id, merchant_id))


def set_config(merchant_id: UUID, *, enabled: bool | None, hold_hours: int | None) -> None:
    """Change what is given, for credits from now on."""
    execute(
        "UPDATE merchants SET is_split_enabled = COALESCE(%s, is_split_enabled),"
        " split_hold_hours = COALESCE(%s, split_hold_hours) WHERE id = %s",
        (enabled, hold_hours, merchant_id),
    )


def read_config(merchant_id: UUID) -> Config:
    """Return how a merchant's rules apply. The merchant exists: its key was verified."""
    config = "SELECT is_split_enabled AS enabled, split_hold_hours AS hold_hours FROM merchants WHERE id = %s"
    found = one_as(Config, config, (merchant_id,))
    if found is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return found


def show_rule(rule: SplitRuleRow) -> schemas.SplitRule:
    """Return a rule as the API tells it."""
    return schemas.SplitRule(
        rule_id=str(rule.id),
        recipient_merchant_id=str(rule.recipient_id),
        percent=percent_number(rule.percent_ppm),
        title=rule.title,
        created_at=iso_time(rule.created_at),
    )


def show_config(merchant_id: UUID) -> schemas.SplitConfig:
    """Return what the API tells of a merchant's splits, and of what it received by others'."""
    config = read_config(merchant_id)
    received = releases.earnings(merchant_id)
    return schemas.SplitConfig(
        enabled=config.enabled,
        refund_hold_hours=config.hold_hours,
        earnings_by_asset={currency: str(units) for currency, units in received.items()},
    )
