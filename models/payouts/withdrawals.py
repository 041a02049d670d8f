"""Keeps and shows withdrawal rules, by which merchants have balances sent to themselves; one per coin.

Written by actors.payouts.auto_withdraw; models.payouts.withdrawal_walk finds the rules to act on. A rule is locked
before its merchant's balances. Source: API reference, "Other endpoints".
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from core.addresses.addresses import display
from core.catalogue.catalogue import Catalogue
from core.texts.render import coin_text
from models.db.base import column, execute, touched
from models.db.revocation import VOUCHED
from models.db.table import BY_DATABASE, Table, Units, derived
from models.payouts.rows import PayoutRow

# A key orders a payout, or approves it: by co-signing the rule that made it, too.
Voice = Literal["order", "approval"]

_SET: Final = "r.network, r.address, r.threshold_units, r.is_enabled, r.set_by, r.is_pending, r.cosigned_by"


class WithdrawalRule(Table, table="withdrawal_rules r"):
    """One coin of a merchant, to be sent as soon as enough is available. The address is in the stored form."""

    merchant_id: UUID
    currency: str
    network: str
    address: str
    threshold_units: Units
    is_enabled: bool
    set_by: str
    payout_id: UUID | None = None
    failures: int = 0
    due_at: datetime = BY_DATABASE
    wait_reason: str = ""
    # It makes nothing before another principal sends the same rule, where the merchant requires co-signing.
    is_pending: bool = False
    cosigned_by: str = ""
    # A rule that a lost key set, or agreed to, must not outlive the key.
    is_vouched: bool = derived(VOUCHED)

    @property
    def key(self) -> Key:
        """Return what names the rule."""
        return Key(self.merchant_id, self.currency)


class WithdrawalWalk(Table, table="withdrawal_walk"):
    """Behind which rule the next step begins."""

    only_row: bool
    merchant_id: UUID
    currency: str


class Key(NamedTuple):
    """Names a rule: there is one for each coin of a merchant."""

    merchant_id: UUID
    currency: str


def listing(merchant_id: UUID, currency: str | None = None) -> list[WithdrawalRule]:
    """Return a merchant's rules, or that of one coin."""
    rules = WithdrawalRule.select().where(WithdrawalRule.merchant_id == merchant_id)
    return rules.where(currency is None or WithdrawalRule.currency == currency).order_by(WithdrawalRule.currency).all()


def named_by(public_id: str) -> list[str]:
    """Return the coins whose rules a key has set or co-signed: they make nothing once it is revoked."""
    return column(
        "SELECT currency FROM withdrawal_rules WHERE is_enabled AND %s IN (set_by, cosigned_by) AND merchant_id ="
        " (SELECT merchant_id FROM api_keys WHERE public_id = %s) ORDER BY currency",
        (public_id, public_id),
    )


def unsigned_of(public_id: str) -> list[UUID]:
    """Return the payouts that a key ordered, by a rule too, or approved, and that the signer has not taken."""
    return column(
        "SELECT id FROM payouts p WHERE merchant_id = (SELECT merchant_id FROM api_keys WHERE public_id = %(key)s)"
        " AND status IN ('pending', 'awaiting_cosign', 'approved') AND (created_by = %(key)s OR EXISTS"
        " (SELECT 1 FROM payout_approvals a WHERE a.payout_id = p.id AND a.principal = %(key)s)) ORDER BY id",
        {"key": public_id},
    )


def revoked_voice(payout: PayoutRow) -> Voice | None:
    """Return what a revoked key did for a payout, which must not leave then; None while its keys are in force."""
    voices = column(
        "SELECT CASE WHEN public_id = %s THEN 'order' ELSE 'approval' END FROM api_keys"
        " WHERE revoked_at IS NOT NULL AND (public_id = %s"
        "  OR public_id IN (SELECT principal FROM payout_approvals WHERE payout_id = %s)) ORDER BY 1 DESC LIMIT 1",
        (payout.created_by, payout.created_by, payout.id),
    )
    return voices[0] if voices else None


def lock(merchant_id: UUID, currency: str) -> WithdrawalRule | None:
    """Lock a merchant's rule of a coin until the transaction ends."""
    return WithdrawalRule.first("r.merchant_id = %s AND r.currency = %s FOR UPDATE OF r", (merchant_id, currency))


def put(rule: WithdrawalRule) -> bool:
    """Write or replace the rule of a coin; return True if anything in it or its keys is new.

    The wait reason of the previous rule is cleared.
    """
    is_new = rule.write(
        "ON CONFLICT (merchant_id, currency) DO UPDATE SET network = EXCLUDED.network, address = EXCLUDED.address,"
        " threshold_units = EXCLUDED.threshold_units, is_enabled = EXCLUDED.is_enabled, set_by = EXCLUDED.set_by,"
        " is_pending = EXCLUDED.is_pending, cosigned_by = EXCLUDED.cosigned_by,"
        " payout_id = NULL, failures = 0, due_at = EXCLUDED.due_at, wait_reason = ''"
        f" WHERE ({_SET}) IS DISTINCT FROM ({_SET.replace('r.', 'EXCLUDED.')})"
    )
    if not is_new:
        execute(
            "UPDATE withdrawal_rules SET payout_id = NULL, failures = 0, due_at = app_now(), wait_reason = ''"
            " WHERE merchant_id = %s AND currency = %s",
            tuple(rule.key),
        )
    return bool(is_new)


def switch_off(rule: WithdrawalRule) -> bool:
    """Have a rule make no further payout; one that it has made goes on. Return True if the rule was on."""
    return touched(
        "UPDATE withdrawal_rules SET is_enabled = false, wait_reason = ''"
        " WHERE merchant_id = %s AND currency = %s AND is_enabled",
        tuple(rule.key),
    )


def shown(catalogue: Catalogue, rule: WithdrawalRule) -> dict[str, Any]:
    """Return a rule as POST /v1/auto-withdraw shows it."""
    return {
        "currency": rule.currency,
        "network": rule.network,
        "address": display(catalogue.networks[rule.network], rule.address),
        "threshold": coin_text(catalogue, rule.currency, rule.threshold_units),
        "enabled": rule.is_enabled and rule.is_vouched,
        "status": _status(rule),
    }


def _status(rule: WithdrawalRule) -> str:
    if not (rule.is_enabled and rule.is_vouched):
        return "off"
    return "awaiting_cosign" if rule.is_pending else "active"
