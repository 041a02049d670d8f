"""Converts a merchant's USDT into the coin of a payout, out of the gateway's own holdings of that coin.

actors.payouts.orders books it in the payout's own transaction: either both take effect or neither.
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

# The only coin that is converted into others.
SOURCE: Final = "USDT"
RATE_DIGITS: Final = 18

# The gateway's own accounts of a coin.
OWN_KINDS: Final = (FEES, NETWORK_FEES, GAS, ROUNDING, CONVERSION, EQUITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A priced conversion: the units taken, in the ledger's units of from_currency, and the rate as shown."""

    from_currency: str
    from_units: int
    # Payout units for one unit of from_currency.
    rate: str


def price(
    catalogue: Catalogue, rates: Rates, *, from_currency: str, currency: str, units: int, spread_ppm: int
) -> Conversion:
    """Price the conversion that yields `units` of a coin, at the current rate less the spread; rounds from_units up.

    Raises payout.convert_same_asset, payout.from_currency_unsupported and payout.convert_no_rate.
    """
    if from_currency == currency:
        raise PayoutConvertSameAsset
    if from_currency != SOURCE:
        raise PayoutFromCurrencyUnsupported
    # Cut to the shown digits, so that the amount taken, times the shown rate, covers the amount asked for.
    rate = _rate(rates, currency, spread_ppm)
    from_scale, scale = catalogue.scale(SOURCE), catalogue.scale(currency)
    exact = mul_div_up(units, 10 ** (RATE_DIGITS + from_scale), rate * 10**scale)
    step: int = 10 ** (from_scale - catalogue.digits(SOURCE))
    return Conversion(
        from_currency=from_currency, from_units=round_up(exact, step), rate=format_coin(rate, RATE_DIGITS)
    )


def _rate(rates: Rates, currency: str, spread_ppm: int) -> int:
    """Return the amount of the coin that one USDT buys, scaled by 10**RATE_DIGITS; rounded down."""
    from_usd, to_usd = rates.get(SOURCE), rates.get(currency)
    if not from_usd or not to_usd:
        raise PayoutConvertNoRate
    rate = mul_div_down(from_usd, (PPM - spread_ppm) * 10**RATE_DIGITS, to_usd * PPM)
    if rate <= 0:
        raise PayoutConvertNoRate
    return rate


def book(new: PayoutRow, *, from_currency: str, from_units: int, reserve_units: int = 0) -> None:
    """Book a conversion that makes a payout's amount and fee available to its merchant, in the caller's transaction.

    reserve_units: the least that the gateway keeps of the payout's coin. Raises payout.convert_frozen if conversions
    are frozen or the gateway would own less than that, and payout.convert_insufficient if the merchant has too little;
    nothing may be committed after either.
    """
    units = new.to_units + new.fee_units
    freezes.check_conversion()
    inventory = Account(GATEWAY, CONVERSION, new.currency)
    # Other conversions wait here, and then see the rest.
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
    """Return the gateway's own holdings of a coin, in the ledger's units; less than 0 if it owes."""
    return ledger.credited([Account(GATEWAY, kind, currency) for kind in OWN_KINDS])
