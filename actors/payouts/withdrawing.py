"""Creates the payout for an automatic withdrawal rule, or notes why the rule waits. No actor.

Called by actors.payouts.ticks; actors.payouts.auto_withdraw refuses by the same errors. Each rule has a transaction of
its own, which holds its lock.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.signer import limits
from actors.signer.limits import NoRateError
from core.addresses.addresses import display
from core.catalogue.catalogue import Pair
from core.errors import AutowithdrawBadAddress, AutowithdrawUnknownCurrency, DomainError, PayoutFrozen
from core.ids import uuid7
from core.rates.pricing import PERCENT
from models.db.base import transaction
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD, Account
from models.payouts import freezes, order_checks, withdrawal_walk
from models.payouts import rows as payouts
from models.payouts.order_checks import DestinationErrors, MethodErrors
from models.payouts.rows import PayoutApproval, PayoutRow
from models.payouts.withdrawals import Key, WithdrawalRule
from models.spends import signing_stops
from models.treasury import liquidity

log = structlog.get_logger()

METHOD_ERRORS: Final = MethodErrors(unknown_currency=AutowithdrawUnknownCurrency, network=AutowithdrawUnknownCurrency)
DESTINATION_ERRORS: Final = DestinationErrors(
    bad=AutowithdrawBadAddress, mismatch=AutowithdrawBadAddress, internal=AutowithdrawBadAddress
)

# A rule whose payout could not be created is tried again after this long.
WAIT_S: Final = 300
NO_RATE: Final = "no rate"
# The same if the hot wallet of its network holds too little.
WAIT_LIQUIDITY_S: Final = 30
LIQUIDITY: Final = "liquidity"
# The part of the signer's limit that is used: the rate may rise until it signs.
LIMIT_PERCENT: Final = 90


class _LiquidityError(Exception):
    """The network's hot wallet cannot pay the smallest payout, beyond the payouts that are queued there."""


def withdraw(ctx: Context, key: Key) -> bool:
    """Create a rule's payout, for as much as can leave now; False if none is due or possible."""
    with transaction():
        rule = withdrawal_walk.take(key)
        if rule is None or (rule.payout_id is not None and not withdrawal_walk.note_end(rule)):
            return False
        try:
            return _order(ctx, rule)
        except DomainError as refusal:
            return _wait(rule, refusal.code)
        except NoRateError:
            return _wait(rule, NO_RATE)
        except _LiquidityError:
            return _wait(rule, LIQUIDITY, seconds=WAIT_LIQUIDITY_S)


def _wait(rule: WithdrawalRule, reason: str, *, seconds: int = WAIT_S) -> bool:
    if withdrawal_walk.wait(rule.key, seconds=seconds, reason=reason):
        log.warning("autowithdraw.waits", merchant=str(rule.merchant_id), currency=rule.currency, reason=reason)
    return False


def _order(ctx: Context, rule: WithdrawalRule) -> bool:
    """Hold the money and write the payout.

    Raises DomainError, NoRateError or _LiquidityError if it has to wait, before anything is written.
    """
    if freezes.is_frozen(rule.merchant_id, rule.network, rule.currency):
        raise PayoutFrozen
    # After a restore, the balance may still include money that had left before.
    if rule.currency in signing_stops.doubted_coins(ctx.catalogue, ctx.available):
        raise PayoutFrozen
    catalogue = ctx.catalogue
    pair = order_checks.choose_pair(
        catalogue, ctx.available, currency=rule.currency, network=rule.network, errors=METHOD_ERRORS
    )
    address = order_checks.check_destination(
        catalogue,
        ctx.deny_list,
        network=pair.network,
        address=display(catalogue.networks[pair.network], rule.address),
        errors=DESTINATION_ERRORS,
    )
    fee_units = order_checks.fee_units(catalogue, ctx.market.read(), pair.currency, pair.network)
    least_units = fee_units + order_checks.carried_units(catalogue, pair.method, address)
    units = _units(ctx, rule, pair, fee_units, least_units=least_units)
    if units is None:
        return False
    order_checks.check_minimum(catalogue, pair, units)
    amounts = order_checks.amounts(units, fee_units, is_fee_on_top=False)
    order_checks.check_carried(catalogue, pair.method, address=address, units=amounts.to_units)
    new = _planned(rule, address, amounts)
    payouts.insert(catalogue, new)
    if rule.cosigned_by:
        PayoutApproval(payout_id=new.id, principal=rule.cosigned_by).write()
    withdrawal_walk.note_made(rule, new.id)
    return True


def _units(ctx: Context, rule: WithdrawalRule, pair: Pair, fee_units: int, *, least_units: int) -> int | None:
    """Lock the balance and return the units to withdraw, up to the signer's limit and the hot wallet's liquidity.

    least_units: below it nothing would arrive. None if the balance is below the threshold by now. Raises NoRateError,
    and _LiquidityError if the wallet holds too little for a payout.
    """
    room = liquidity.room(
        ctx.catalogue, ctx.market.read(), {pair.network}, fee_max_percent=ctx.settings.sweep_fee_max_percent
    ).get((pair.currency, pair.network), 0)
    available, _ = ledger.lock_balances(
        *(Account(rule.merchant_id, kind, pair.currency) for kind in (AVAILABLE, PAYOUT_HELD))
    )
    if available < rule.threshold_units:
        return None
    most = limits.largest_units(ctx, pair.currency) * LIMIT_PERCENT // PERCENT + fee_units
    if room < max(least_units, order_checks.minimum_units(ctx.catalogue, pair)):
        raise _LiquidityError
    units = min(available, most, room)
    return units - units % order_checks.step(ctx.catalogue, pair.currency)


def _planned(rule: WithdrawalRule, address: str, amounts: order_checks.Amounts) -> PayoutRow:
    payout_id = uuid7()
    return PayoutRow(
        id=payout_id,
        merchant_id=rule.merchant_id,
        order_id=f"autowithdraw:{payout_id}",
        kind="autowithdraw",
        currency=rule.currency,
        network=rule.network,
        address=address,
        amount_units=amounts.amount_units,
        fee_units=amounts.fee_units,
        to_units=amounts.to_units,
        is_fee_on_top=amounts.is_fee_on_top,
        # A rule of two principals needs no third voice.
        status="approved" if rule.cosigned_by else order_checks.read_terms(rule.merchant_id).first_status,
        source="manual",
        created_by=rule.set_by,
    )
