"""Sets the rules by which a merchant shares its credits. The API calls it through the queue and waits."""

from __future__ import annotations

from uuid import UUID

from actors.queue.call_specs import ADD_SPLIT_RULE, DELETE_SPLIT_RULE, SET_SPLITS
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import SplitRuleNotFound
from core.merchants.split_schemas import AddRule, DeletedRule, RuleLookup, SetSplits
from core.merchants.terms_rules import split_ppm
from models.merchants import notices, splits


@call_actor(ADD_SPLIT_RULE, body=AddRule)
def add_split_rule(info: CallInfo, wanted: AddRule) -> CallReply:
    """Put a rule into force for later credits, or let it wait for a second principal; return it."""
    percent_ppm = split_ppm(wanted.percent)
    with recorded(info) as record:
        recipient_id = UUID(wanted.recipient_merchant_id)
        made = splits.add(
            info.merchant(),
            recipient_id,
            percent_ppm=percent_ppm,
            title=wanted.title or "",
            principal=info.principal(),
        )
        shown = splits.show_rule(made.rule)
        if made.is_change:
            to = f"{shown.percent} percent to merchant {recipient_id}"
            _notice(info, f"Split rule, {shown.status}: {to}.", recipient_id)
        return record.store(shown)


@call_actor(DELETE_SPLIT_RULE, body=RuleLookup)
def delete_split_rule(info: CallInfo, wanted: RuleLookup) -> CallReply:
    """End a split rule; shares that it made already are still released."""
    with recorded(info) as record:
        recipient_id = splits.delete(info.merchant(), UUID(wanted.rule_id))
        if recipient_id is None:
            raise SplitRuleNotFound
        _notice(info, f"The split rule {wanted.rule_id} ended.", recipient_id)
        return record.store(DeletedRule(rule_id=str(UUID(wanted.rule_id)), deleted=True))


def _notice(info: CallInfo, change: str, recipient_id: UUID) -> None:
    notices.write(info.merchant(), change, topic=f"splits {recipient_id}", by=info.principal())


@call_actor(SET_SPLITS, body=SetSplits)
def set_splits(info: CallInfo, wanted: SetSplits) -> CallReply:
    """Change how rules apply to later credits, and return the settings."""
    with recorded(info) as record:
        is_changed = splits.set_config(info.merchant(), enabled=wanted.enabled, hold_hours=wanted.refund_hold_hours)
        shown = splits.show_config(info.merchant())
        if is_changed:
            change = f"Splits are {'on' if shown.enabled else 'off'}; shares wait {shown.refund_hold_hours} hours."
            notices.write(info.merchant(), change, topic="splits", by=info.principal())
        return record.store(shown)
