"""Sets by which rules a merchant shares what it is credited. The API calls it through the queue and waits."""

from __future__ import annotations

from uuid import UUID

from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import SplitRuleNotFound
from core.merchants.split_schemas import AddRule, DeletedRule, RuleLookup, SetSplits
from core.merchants.terms_rules import split_ppm
from models.merchants import notices, splits


@call_actor(queue="payouts", body=AddRule)
def add_split_rule(info: CallInfo, wanted: AddRule) -> CallReply:
    """Put a rule into force for later credits, or have it wait for a second principal; return it."""
    percent_ppm = split_ppm(wanted.percent)
    with recorded(info) as record:
        recipient_id = UUID(wanted.recipient_merchant_id)
        before = splits.listing(info.merchant())
        made = splits.add(
            info.merchant(),
            recipient_id,
            percent_ppm=percent_ppm,
            title=wanted.title or "",
            principal=info.principal(),
        )
        shown = splits.show_rule(made)
        if shown not in [splits.show_rule(rule) for rule in before]:
            to = f"{shown.percent} percent to merchant {recipient_id}"
            notices.write(info.merchant(), f"Split rule, {shown.status}: {to}.", topic="splits", by=info.principal())
        return record.store(shown)


@call_actor(queue="payouts", body=RuleLookup)
def delete_split_rule(info: CallInfo, wanted: RuleLookup) -> CallReply:
    """Take a rule out of force; what it shared already goes its way."""
    with recorded(info) as record:
        if not splits.delete(info.merchant(), UUID(wanted.rule_id)):
            raise SplitRuleNotFound
        notices.write(info.merchant(), f"The split rule {wanted.rule_id} ended.", topic="splits", by=info.principal())
        return record.store(DeletedRule(rule_id=str(UUID(wanted.rule_id)), deleted=True))


@call_actor(queue="payouts", body=SetSplits)
def set_splits(info: CallInfo, wanted: SetSplits) -> CallReply:
    """Change how rules apply to whatever is credited from now on, and return that."""
    with recorded(info) as record:
        before = splits.show_config(info.merchant())
        splits.set_config(info.merchant(), enabled=wanted.enabled, hold_hours=wanted.refund_hold_hours)
        shown = splits.show_config(info.merchant())
        if shown != before:
            change = f"Splits are {'on' if shown.enabled else 'off'}; shares wait {shown.refund_hold_hours} hours."
            notices.write(info.merchant(), change, topic="splits", by=info.principal())
        return record.store(shown)
