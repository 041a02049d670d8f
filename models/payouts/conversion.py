"""Changes a merchant's USDT into the coin that a payout sends, against what the gateway itself owns of that coin.

Booked in the payout's own transaction, by actors.payouts.service: either both take effect or neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.errors import (
    PayoutConvertFrozen,
    PayoutConvertInsufficient,
    PayoutConvertNoRate,
    PayoutConvertSameAsset,
    PayoutFromCurrencyUnsupported,
)
from core.money import PPM, format_coin, mul_div_down, mul_div_up, round_up
from core.rates.pricing import Rates
from models.ledger import ledger
from models.ledger.ledger import (
    AVAILABLE,
    CONVERSION,
    EQUITY,
    FEES,
    GAS,
    GATEWAY,
    NETWORK_FEES,
    ROUNDING,
    Account,
    InsufficientFundsError,
    Transfer,
)
from models.payouts import freezes
from models.payouts.rows import PayoutRow

# The only coin that is changed into others.
SOURCE: Final = "USDT"
RATE_DIGITS: Final = 18

# What the gateway owns of a coin: all that it holds for nobody else.
OWN_KINDS: Final = (FEES, NETWORK_FEES, GAS, ROUNDING, CONVERSION, EQUITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A change that was priced: what is taken, in the ledger's units of from_currency, and the rate as it is told."""

    from_currency: str
    from_units: int
    # Payout units for one unit of from_currency.
    rate: str


def price(
    catalogue: Catalogue, rates: Rates, *, from_currency: str, currency: str, units: int, spread_ppm: int
) -> Conversion:
    """Price the change that yields `units` of a coin at the current rate less the spread; what is taken rounds up.

    Raises payout.convert_same_asset, payout.from_currency_unsupported and payout.convert_no_rate.
    """
    if from_currency == currency:
        raise PayoutConvertSameAsset
    if from_currency != SOURCE:
        raise PayoutFromCurrencyUnsupported
    # Cut to what is told, so that what was taken, times the rate, is seen to cover what was asked for.
    rate = _rate(rates, currency, spread_ppm)
    from_scale, scale = catalogue.scale(SOURCE), catalogue.scale(currency)
    exact = mul_div_up(units, 10 ** (RATE_DIGITS + from_scale), rate * 10**scale)
    step: int = 10 ** (from_scale - catalogue.digits(SOURCE))
    return Conversion(
        from_currency=from_currency, from_units=round_up(exact, step), rate=format_coin(rate, RATE_DIGITS)
    )


def _rate(rates: Rates, currency: str, spread_ppm: int) -> int:
    """Return what one USDT buys, scaled by 10**RATE_DIGITS; rounded down."""
    from_usd, to_usd = rates.get(SOURCE), rates.get(currency)
    if not from_usd or not to_usd:
        raise PayoutConvertNoRate
    rate = mul_div_down(from_usd, (PPM - spread_ppm) * 10**RATE_DIGITS, to_usd * PPM)
    if rate <= 0:
        raise PayoutConvertNoRate
    return rate


def book(new: PayoutRow, *, from_currency: str, from_units: int, reserve_units: int = 0) -> None:
    """Make what a payout takes available to its merchant out of another coin, in the caller's transaction.

    reserve_units: what the gateway keeps of that coin in any case. Raises payout.convert_frozen where conversions are
    frozen or the gateway would own less than that, and payout.convert_insufficient where the merchant has too little;
    nothing may be committed after either.
    """
    units = new.to_units + new.fee_units
    freezes.check_conversion()
    inventory = Account(GATEWAY, CONVERSION, new.currency)
    # Whoever else converts waits here, and then finds what is left.
    ledger.lock_account(inventory)
    if owned_units(new.currency) - reserve_units < units:
        raise PayoutConvertFrozen("The gateway owns too little of this coin at the moment; retry later.")
    paid = Transfer(
        Account(new.merchant_id, AVAILABLE, from_currency), Account(GATEWAY, CONVERSION, from_currency), from_units
    )
    bought = Transfer(inventory, Account(new.merchant_id, AVAILABLE, new.currency), units)
    try:
        ledger.post(f"payout:{new.id}:convert", [paid, bought])
    except InsufficientFundsError:
        raise PayoutConvertInsufficient from None


def owned_units(currency: str) -> int:
    """Return what the gateway owns of a coin, in the ledger's units; less than 0 if it owes."""
    return ledger.credited([Account(GATEWAY, kind, currency) for kind in OWN_KINDS])
