"""What the signer reckons coins to be worth at least, whatever the market's rates say. Read by core.settings.

The market's rates are rows that other processes write: whoever took one of those over could make a large payout look
small. SIGNER_RATES is in the signer's own environment, as COIN:USD,COIN:USD.
"""

import re
from collections.abc import Iterator, Mapping

from core.catalogue import load_catalogue
from core.pricing import RATE_DIGITS
from core.settings_rules import Environment, Role, rpc_variables, split

# Coins that are dollars by their issuers' promise need no line.
DOLLARS = ("USDT", "USDC", "DAI")
_PRICE = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,12}))?")


def dollar_rates() -> dict[str, int]:
    """Return the rates that need not be given."""
    return dict.fromkeys(DOLLARS, 10**RATE_DIGITS)


def parse_signer_rates(text: object) -> object:
    """Return the price of one coin in US dollars, times 10 ** RATE_DIGITS, by coin. Raises ValueError."""
    if not isinstance(text, str):
        return text
    rates = dollar_rates()
    for part in split(text):
        coin, _, price = part.partition(":")
        found = _PRICE.fullmatch(price)
        if found is None or coin not in load_catalogue("production").assets:
            raise ValueError("must be COIN:USD,COIN:USD with coins that there are, like ETH:2500,BNB:600.50")
        whole, fraction = found[1], found[2] or ""
        rates[coin] = int(whole + fraction.ljust(RATE_DIGITS, "0"))
        if rates[coin] == 0:
            raise ValueError("must not hold a price of 0")
    return rates


def signer_rate_problems(values: Mapping[str, str], environment: Environment, role: Role) -> Iterator[str]:
    """Tell for which coins of the served networks a production signer was given no rate of its own."""
    if environment != "production" or role != "signer":
        return
    catalogue = load_catalogue(environment)
    coins = {pair.currency for network in rpc_variables(values) for pair in catalogue.pairs_on(network)}
    given = {part.partition(":")[0] for part in split(values.get("SIGNER_RATES", ""))}
    missing = sorted(coins - given - set(DOLLARS))
    if missing:
        yield f"SIGNER_RATES: the signer needs a rate of its own for {', '.join(missing)}"
