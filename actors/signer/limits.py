"""Limits the payouts that the signer signs, by its own limits and counters, independent of the rest of the gateway.

Called by actors.signer.broadcast, and by code that creates payouts, to refuse those that the signer would never sign.
Transfers between our own wallets are not limited; the price of gas is capped where it is asked for
(chains.registry.fee_cap_units).
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import structlog

from actors.context import Context
from core.catalogue.catalogue import Catalogue
from core.errors import DomainError
from core.money import round_up
from core.rates import pricing
from core.rates.pricing import CENTS, PERCENT, Market
from core.settings.settings import Settings
from core.settings.signer_rates import far_above
from models.payouts import order_checks
from models.payouts.rows import PayoutRow
from models.rates import rates
from models.spends import limit_counters

log = structlog.get_logger()


class NoRateError(Exception):
    """The coin has no fresh rate, so that the payout's worth is unknown."""


class LimitReachedError(Exception):
    """The payout would exceed a limit of the signer."""


class FeeRisenError(Exception):
    """The network's fee has risen too far above the charged fee; the message names the limit."""


def market(ctx: Context) -> Market:
    """Return the market's rates, each raised to the signer's own rate if that is higher.

    Other processes write the market's rates. A rate forged too low would make a large payout look small.
    """
    board = ctx.market.read()
    own = ctx.settings.signer_rates
    return replace(board, rates={coin: max(rate, own.get(coin, 0)) for coin, rate in board.rates.items() if rate})


def usd_cents(catalogue: Catalogue, market: Market, currency: str, units: int) -> int:
    """Return the worth of a coin's ledger units in US cents, rounded up. Raises NoRateError."""
    rate = market.rates.get(currency)
    if not rate:
        raise NoRateError(f"no rate for {currency}")
    return pricing.usd_cents(units, rate=rate, scale=catalogue.scale(currency), up=True)


def blamed_rate(ctx: Context, currency: str) -> str | None:
    """Describe the signer's own rate of a coin if only that rate, far above the market's, makes a limit apply."""
    own, market_rate = ctx.settings.signer_rates.get(currency, 0), ctx.market.read().rates.get(currency, 0)
    return far_above(currency, own, market_rate)


def check_size(ctx: Context, currency: str, units: int, *, error: type[DomainError]) -> None:
    """Refuse to create a payout that the signer would never sign. Raises `error`.

    A coin without a rate is let through: the signer checks its worth again before it signs.
    """
    try:
        cents = usd_cents(ctx.catalogue, market(ctx), currency, units)
    except NoRateError:
        return
    if cents > ctx.settings.signer_payout_max_usd * CENTS:
        blamed = blamed_rate(ctx, currency)
        if blamed is not None:
            # The error names only the limit; the rate is the operator's concern.
            log.warning("payout.refused_by_signer_rate", currency=currency, reason=blamed)
        raise error(f"One payout may be worth {ctx.settings.signer_payout_max_usd} USD at most.")


def largest_units(ctx: Context, currency: str) -> int:
    """Return the largest payout of a coin that is allowed now, in ledger units. Raises NoRateError."""
    rate = market(ctx).rates.get(currency)
    if not rate:
        raise NoRateError(f"no rate for {currency}")
    limit_cents = ctx.settings.signer_payout_max_usd * CENTS
    return pricing.units_worth(limit_cents, rate=rate, scale=ctx.catalogue.scale(currency))


def carried_cents(ctx: Context, payout: PayoutRow) -> int:
    """Return the gateway's part of the network fee of a payout older than its quote, in US cents.

    0 for a younger payout, and if today's fee is no higher than the charge. Raises FeeRisenError if today's fee is
    above PAYOUT_FEE_MAX_PERCENT of the charge, NoRateError.
    """
    quote = rates.last_network_fee(payout.currency, payout.network, stale_since=payout.created_at)
    # A cheque was charged when its merchant made it, long before its payout.
    if quote is None or not (quote.is_outlived or payout.kind == "cheque"):
        return 0
    today_units = round_up(quote.units, order_checks.step(ctx.catalogue, payout.currency))
    if today_units * PERCENT > payout.fee_units * ctx.settings.payout_fee_max_percent:
        raise FeeRisenError(
            f"today's network fee is {today_units} units, above PAYOUT_FEE_MAX_PERCENT of {payout.fee_units} charged"
        )
    missing_units = max(0, today_units - payout.fee_units)
    return usd_cents(ctx.catalogue, market(ctx), payout.currency, missing_units)


def allow(
    settings: Settings,
    network: str,
    cents: int,
    *,
    merchant_id: UUID,
    spend_id: UUID,
    place: int = 0,
    carried_cents: int = 0,
) -> None:
    """Count a payout that the caller's transaction signs. Raises as check() does, and then counts nothing."""
    limit_counters.lock()
    check(settings, cents, merchant_id=merchant_id, carried_cents=carried_cents)
    limit_counters.add(
        spend_id,
        place=place,
        merchant_id=merchant_id,
        network=network,
        usd_cents=cents,
        carried_cents=carried_cents,
    )


def check(settings: Settings, cents: int, *, merchant_id: UUID, carried_cents: int = 0) -> None:
    """Check a payout against the signer's limits; count nothing. Raises LimitReachedError, FeeRisenError.

    The hour is the clock's hour, the day the last 24 hours; all networks count together. A merchant may use only a
    share of each limit, so that one merchant's payouts do not use up what others may send. Amounts of failed payouts
    were given back to the share.
    """
    if cents > settings.signer_payout_max_usd * CENTS:
        raise LimitReachedError("above SIGNER_PAYOUT_MAX_USD")
    everybody = limit_counters.spent()
    if everybody.hour + cents > settings.signer_hourly_usd * CENTS:
        raise LimitReachedError("above SIGNER_HOURLY_USD")
    if everybody.day + cents > settings.signer_daily_usd * CENTS:
        raise LimitReachedError("above SIGNER_DAILY_USD")
    merchant = limit_counters.spent_by(merchant_id)
    if merchant.hour + cents > share_usd(settings, settings.signer_hourly_usd) * CENTS:
        raise LimitReachedError("above the merchant's share of SIGNER_HOURLY_USD")
    if merchant.day + cents > share_usd(settings, settings.signer_daily_usd) * CENTS:
        raise LimitReachedError("above the merchant's share of SIGNER_DAILY_USD")
    if not carried_cents:
        return
    carried = limit_counters.carried_for(merchant_id)
    if carried + carried_cents > settings.payout_fee_carried_usd * CENTS:
        raise FeeRisenError(
            f"{carried} cents of the merchant's PAYOUT_FEE_CARRIED_USD are used, {carried_cents} needed"
        )


def share_usd(settings: Settings, limit_usd: int) -> int:
    """Return a merchant's share of a limit, in USD: never less than the limit of one payout."""
    return max(settings.signer_payout_max_usd, limit_usd * settings.signer_merchant_percent // PERCENT)
