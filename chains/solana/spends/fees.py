"""Computes the cost of a Solana transaction, in lamports: signatures, compute units and the rent of new accounts.

Called by the reader for merchants' charges, and by the drafts for offers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from typing import Final

from chains.base import Cost
from chains.net.json_rpc import JsonRpc, Rpc
from chains.net.lone import FACTOR_MAX
from chains.net.providers import Providers
from chains.solana import programs
from chains.solana.spends import questions
from chains.solana.transactions import Body
from chains.spending import FeeTooHighError, Offer
from core.catalogue.catalogue import Pair

# The share of recent blocks that took less than the offered price, in percent, and the least price ever offered, in
# microlamports. Recent blocks that were not full took any.
SHARE: Final = 75
PRICE_MIN: Final = 10_000
# The margin on the compute units of a trial.
MARGIN_PERCENT: Final = 20
# The units that making the recipient's token account takes. They are added though it exists: its owner may close it
# between the trial and the block.
CREATION_UNITS: Final = 40_000
# The units assumed for a transfer before it is tried.
COIN_UNITS: Final = 2_000
TOKEN_UNITS: Final = 70_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rents:
    """The lamports that accounts have to hold: one without data, and a token account."""

    plain: int
    holding: int


def rents(node: Rpc) -> Rents:
    """Return the rents by one node."""
    return Rents(plain=questions.rent(node, 0), holding=questions.rent(node, programs.HOLDING_BYTES))


def price(node: Rpc, writable: Sequence[str]) -> int:
    """Return the price that most recent blocks would have taken for writing these accounts."""
    prices = sorted(questions.prices(node, writable))
    return max(PRICE_MIN, prices[len(prices) * SHARE // 100]) if prices else PRICE_MIN


def agreed_price(providers: Providers[JsonRpc], prices: Sequence[int]) -> int:
    """Return the median of the nodes' prices, the higher of two: a transaction with too low a price waits in vain.

    A node that decides alone may at most double the highest price that two name at least, now or last.
    """
    agreed, others = median_high(prices), sorted(prices)[:-1]
    if not others:
        return providers.bounded("price", agreed, voices=1)
    return min(agreed, FACTOR_MAX * providers.bounded("price", min(agreed, others[-1]), voices=len(prices)))


def agreed_rents(answers: Sequence[Rents]) -> Rents:
    """Return each rent as the median of the nodes' answers, the lower of two: the chain has one."""
    return Rents(plain=median_low(each.plain for each in answers), holding=median_low(each.holding for each in answers))


def costs(providers: Providers[JsonRpc], pairs: Iterable[Pair], *, cap_units: int) -> Mapping[str, Cost]:
    """Return the present cost of moving each coin, to a recipient that has no account of the token yet."""
    answers = providers.answers(lambda node: (rents(node), price(node, ())))
    agreed = agreed_rents([each for each, _ in answers])
    micro = agreed_price(providers, [each for _, each in answers])
    return {pair.currency: _cost(pair, agreed, micro, cap_units) for pair in pairs}


def _cost(pair: Pair, agreed: Rents, micro: int, cap_units: int) -> Cost:
    """Return the cost of a payout and of a sweep. A sweep has two signatures; the rent that it returns is left out."""
    limit, rent = (COIN_UNITS, 0) if pair.contract is None else (TOKEN_UNITS, agreed.holding)
    payout, sweep = (programs.fee_units(signers, limit=limit, price=micro) for signers in (1, 2))
    return Cost(payout_units=min(payout + rent, cap_units), sweep_units=min(sweep, cap_units))


def limit_of(used: int, *, is_token: bool) -> int:
    """Return the compute units to offer for a transfer that took this many in a trial.

    They are no fewer than any transfer takes: a node that answers alone could let each fail for its fee.
    """
    margin, least = (CREATION_UNITS, TOKEN_UNITS) if is_token else (0, COIN_UNITS)
    return min(max(used * (100 + MARGIN_PERCENT) // 100 + margin, least), questions.LIMIT_MAX)


def offer(body: Body, agreed: Rents, *, gain_units: int, cap_units: int) -> Offer:
    """Return the offer of a message. Raises FeeTooHighError above the cap.

    It includes the rent of the recipient's token account, which its owner may close at any moment. gain_units: the
    lamports of the account that it closes.
    """
    ceiling = body.fee_units + (agreed.holding if body.mint else 0)
    if ceiling > cap_units:
        raise FeeTooHighError(f"a transfer takes up to {ceiling} lamports, and the cap is {cap_units}")
    terms = {"limit": body.limit, "price": body.price, "mark": body.mark}
    return Offer(ceiling_units=ceiling, gain_units=gain_units, terms=terms)
