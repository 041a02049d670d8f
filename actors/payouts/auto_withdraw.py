"""Sets merchants' rules for automatic withdrawal. The API calls it and waits."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from actors.context import Context, context
from actors.payouts.withdrawing import DESTINATION_ERRORS, METHOD_ERRORS
from actors.queue.call_specs import SET_AUTO_WITHDRAW
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.addresses.addresses import display
from core.catalogue import hints
from core.catalogue.catalogue import Pair
from core.errors import AutowithdrawBadAddress, AutowithdrawBadThreshold, AutowithdrawUnknownCurrency
from core.payouts.withdrawal_schemas import SetAutoWithdraw
from core.rates.pricing import only_network
from models.merchants import notices
from models.payouts import order_checks, withdrawals
from models.payouts.withdrawals import WithdrawalRule

_NOTICE: Final = "Automatic withdrawal of {currency} on {network}, {status}: to {address} from {threshold} on."


@call_actor(SET_AUTO_WITHDRAW, body=SetAutoWithdraw)
def set_auto_withdraw(info: CallInfo, wanted: SetAutoWithdraw) -> CallReply:
    """Set a coin's rule and return all rules; without a change, return the requested ones."""
    ctx, merchant_id, among = context(), info.merchant(), None
    with recorded(info) as record:
        if wanted.currency is not None and wanted.currency not in ctx.catalogue.assets:
            raise AutowithdrawUnknownCurrency(hints.unknown_coin(ctx.catalogue, wanted.currency))
        is_changed = False
        if wanted.is_change:
            is_changed = _change(ctx, merchant_id, wanted, principal=info.principal())
        else:
            among = wanted.currency
        items = _items(ctx, merchant_id, among)
        if is_changed:
            [changed] = [_NOTICE.format(**item) for item in items if item["currency"] == wanted.currency]
            notices.write(merchant_id, changed, topic=f"withdrawals {wanted.currency}", by=info.principal())
        return record.store({"items": items})


def _items(ctx: Context, merchant_id: UUID, currency: str | None) -> list[dict[str, Any]]:
    return [withdrawals.shown(ctx.catalogue, rule) for rule in withdrawals.listing(merchant_id, currency)]


def _change(ctx: Context, merchant_id: UUID, wanted: SetAutoWithdraw, *, principal: str) -> bool:
    """Change a coin's rule, or make one; return True if it differs. Raises autowithdraw.* and compliance.* errors."""
    before = withdrawals.lock(merchant_id, wanted.currency or "")
    if before is not None and wanted.network not in {None, before.network}:
        before = None
    if before is not None and wanted.enabled is False and wanted.address is None and wanted.threshold is None:
        # Allowed even if its network or its address is no longer valid.
        return withdrawals.switch_off(before)
    new = _rule(ctx, merchant_id, before, wanted, principal=principal)
    if order_checks.read_terms(merchant_id).is_cosign_required:
        new = _cosigned(before, new, wanted, principal=principal, is_named=_is_named(ctx, wanted))
    return withdrawals.put(new)


def _cosigned(
    before: WithdrawalRule | None, new: WithdrawalRule, wanted: SetAutoWithdraw, *, principal: str, is_named: bool
) -> WithdrawalRule:
    """Return the rule of a merchant that requires co-signing: it waits until another principal names all of it, too.

    is_named: the request names all of the rule.
    Raises autowithdraw.bad_address for a change that does not name the address: no principal may co-sign it unseen.
    """
    if before is None or not before.is_vouched or _terms(before) != _terms(new):
        if wanted.address is None:
            raise AutowithdrawBadAddress("Your shop requires co-signing: name the address with every change.")
        return new.but(is_pending=new.is_enabled, set_by=principal)
    if before.is_enabled and not before.cosigned_by and is_named and principal != before.set_by:
        return new.but(set_by=before.set_by, cosigned_by=principal)
    return new.but(set_by=before.set_by, is_pending=before.is_pending, cosigned_by=before.cosigned_by)


def _is_named(ctx: Context, wanted: SetAutoWithdraw) -> bool:
    """Return True if a request names all of a rule; a coin's only network need not be named."""
    network = wanted.network or only_network(ctx.catalogue, wanted.currency or "")
    return None not in (network, wanted.address, wanted.threshold)


def _terms(rule: WithdrawalRule) -> tuple[str, str, int, bool]:
    return rule.network, rule.address, rule.threshold_units, rule.is_enabled


def _rule(
    ctx: Context, merchant_id: UUID, before: WithdrawalRule | None, wanted: SetAutoWithdraw, *, principal: str
) -> WithdrawalRule:
    """Apply a request to the rule before, check all of the new rule, and return it."""
    pair = order_checks.choose_pair(
        ctx.catalogue,
        ctx.available,
        currency=wanted.currency or "",
        network=before.network if before else wanted.network,
        errors=METHOD_ERRORS,
    )
    address = order_checks.check_destination(
        ctx.catalogue,
        ctx.deny_list,
        network=pair.network,
        address=_address(ctx, before, wanted),
        errors=DESTINATION_ERRORS,
    )
    return WithdrawalRule(
        merchant_id=merchant_id,
        currency=pair.currency,
        network=pair.network,
        address=address,
        threshold_units=_threshold(ctx, pair, before, wanted, address=address),
        is_enabled=wanted.enabled if wanted.enabled is not None else before is None or before.is_enabled,
        # The co-signer must differ from the principal that named the address, even if others change the rest.
        set_by=principal if before is None or wanted.address is not None else before.set_by,
    )


def _address(ctx: Context, before: WithdrawalRule | None, wanted: SetAutoWithdraw) -> str:
    """Return the named address, or else the current one if its keys still vouch for it."""
    if wanted.address is not None:
        return wanted.address
    if before is None:
        raise AutowithdrawBadAddress("address: is missing")
    if not before.is_vouched:
        raise AutowithdrawBadAddress("A key that named or co-signed the address is revoked: name the address again.")
    return display(ctx.catalogue.networks[before.network], before.address)


def _threshold(
    ctx: Context, pair: Pair, before: WithdrawalRule | None, wanted: SetAutoWithdraw, *, address: str
) -> int:
    """Return the named threshold, or else the current one.

    address: in the stored form; a payout of the threshold, less today's fee if known, has to be able to arrive there.
    """
    if wanted.threshold is not None:
        units = order_checks.amount_units(
            ctx.catalogue, pair.currency, wanted.threshold, error=AutowithdrawBadThreshold
        )
    elif before is not None:
        units = before.threshold_units
    else:
        raise AutowithdrawBadThreshold("threshold: is missing")
    order_checks.check_minimum(ctx.catalogue, pair, units, error=AutowithdrawBadThreshold)
    fee_units = order_checks.known_fee_units(ctx.catalogue, ctx.market.read(), pair.method) or 0
    order_checks.check_carried(
        ctx.catalogue, pair.method, address=address, units=units - fee_units, error=AutowithdrawBadThreshold
    )
    return units
