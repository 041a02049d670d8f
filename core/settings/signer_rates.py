"""Reads the signer's own lowest rates of coins, whatever the market's rates are. Called by core.settings.settings.

Other processes write the market's rates into rows: an attacker of one of those could make a large payout look small.
SIGNER_RATES is in the signer's own environment, as COIN:USD,COIN:USD. It grows old there: `sluice doctor`, and the
message of a limit that it causes, report a rate that is far from the market's.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date

from core.catalogue.catalogue import load_catalogue
from core.catalogue.fields import Environment
from core.money import format_coin
from core.rates.pricing import RATE_DIGITS
from core.settings.networks import rpc_variables
from core.settings.rules import Start, split

# Coins that their issuers redeem for dollars need no entry.
DOLLARS = ("USDT", "USDC", "DAI")
# A rate is far from the market's if either is more than this many times the other.
FAR = 2
# Rates older than this need a review.
OLD_DAYS = 90
_PRICE = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,12}))?")


def dollar_rates() -> dict[str, int]:
    """Return the default rates."""
    return dict.fromkeys(DOLLARS, 10**RATE_DIGITS)


def parse_signer_rates(text: object) -> object:
    """Return the price of one coin in US dollars, times 10 ** RATE_DIGITS, by coin. Raises ValueError."""
    if not isinstance(text, str):
        return text
    rates = dollar_rates()
    for part in split(text):
        coin, _, price = part.partition(":")
        match = _PRICE.fullmatch(price)
        if match is None or coin not in load_catalogue("production").assets:
            raise ValueError("must be COIN:USD,COIN:USD with coins that there are, like ETH:2500,BNB:600.50")
        whole, fraction = match[1], match[2] or ""
        rates[coin] = int(whole + fraction.ljust(RATE_DIGITS, "0"))
        if rates[coin] == 0:
            raise ValueError("must not hold a price of 0")
    return rates


def far_above(currency: str, own: int, market: int) -> str | None:
    """Return a warning if the signer's rate is far above the market's, so that limits stop payouts too early.

    Rates times 10 ** RATE_DIGITS, 0 for none.
    """
    if not market or own <= FAR * market:
        return None
    return f"SIGNER_RATES reckons 1 {currency} as {_usd(own)} USD, the market as {_usd(market)}"


def far_off(own: Mapping[str, int], market: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each coin whose signer's rate is far from the market's, with the effect on its limits."""
    for currency, rate in sorted(own.items()):
        current = market.get(currency, 0)
        above = far_above(currency, rate, current)
        if above is not None:
            yield f"{above}: payouts of it are refused far below the limits"
        elif current > FAR * rate:
            yield (
                f"SIGNER_RATES is far below the market: 1 {currency} is {_usd(current)} USD by now, not {_usd(rate)};"
                " the limits lean on the market's rate"
            )


def _usd(rate: int) -> str:
    return format_coin(rate, RATE_DIGITS)


def aging(own: Mapping[str, int], written: date | None, today: date) -> str | None:
    """Return a warning if the given rates are older than OLD_DAYS, or have no date."""
    if own == dollar_rates():
        return None
    if written is None:
        return "SIGNER_RATES_AT does not say of which day SIGNER_RATES is"
    age_days = (today - written).days
    return f"SIGNER_RATES is {age_days} days old: look at the rates again" if age_days > OLD_DAYS else None


def signer_rate_problems(values: Mapping[str, str], environment: Environment, role: Start) -> Iterator[str]:
    """Yield a problem if a production signer lacks its own rate for coins of the served networks."""
    if environment != "production" or role != "signer":
        return
    catalogue = load_catalogue(environment)
    coins = {pair.currency for network in rpc_variables(values) for pair in catalogue.pairs_on(network)}
    given = {part.partition(":")[0] for part in split(values.get("SIGNER_RATES", ""))}
    missing = sorted(coins - given - set(DOLLARS))
    if missing:
        yield f"SIGNER_RATES: the signer needs a rate of its own for {', '.join(missing)}"
