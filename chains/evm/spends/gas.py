"""Computes the present price of gas on an EVM network, and the offer of a spend.

Called by chains.evm.spends.spender, and by chains.evm.reader for quotes.
Without a base fee the whole price is tip, so an offer whose tip equals its price is signed as a legacy transaction, and
no other is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from chains.base import ProviderError
from chains.evm.spends.library import ask_contract, calldata, eth
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc, Rpc, RpcError
from chains.net.providers import RpcProviders
from chains.spending import FeeTooHighError
from core.catalogue.catalogue import Network
from core.catalogue.families import evm_parameters

HISTORY_BLOCKS: Final = 5
HISTORY_PERCENTILE: Final = 50
# The nodes of some networks do not relay lower tips.
TIP_MIN_WEI: Final = 10**8
# Added to a node's gas price where there is no base fee, since other senders may have raised theirs meanwhile.
LEGACY_MARGIN_PERCENT: Final = 10
# A node that asks for more is wrong or hostile, whatever the network.
GAS_PRICE_MAX_WEI: Final = 2_000 * 10**9
METHOD_NOT_FOUND: Final = -32601
# A replacement pays this many eighths of the replaced offer: nodes ask for 10 % more of both figures.
BUMP_EIGHTHS: Final = 9
# The most bytes of an unsigned transaction without its calldata.
ENVELOPE_BYTES: Final = 128
# The price of data may double before the spend is included.
DATA_FEE_FACTOR: Final = 2


class AbsurdFeeError(FeeTooHighError):
    """A node asks for more than any transfer may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GasPrice:
    """The next block's base fee and the median tip, in wei for a unit of gas. Without base fee the price is all tip."""

    base_wei: int
    tip_wei: int

    @property
    def max_wei(self) -> int:
        """Return the highest price to offer: still enough after six full blocks in a row."""
        return 2 * self.base_wei + self.tip_wei

    @property
    def least_wei(self) -> int:
        """Return the least price for the next block at its highest base fee, with half the tip.

        Without base fee, return the price that nodes asked for, without the margin.
        """
        if self.base_wei:
            return self.base_wei * 9 // 8 + self.tip_wei // 2
        return self.tip_wei * 100 // (100 + LEGACY_MARGIN_PERCENT)

    @property
    def expected_wei(self) -> int:
        """Return the expected price: that of a spend that waits for two full blocks."""
        return self.base_wei * 5 // 4 + self.tip_wei


def gas_price(node: Rpc) -> GasPrice:
    """Return a node's present price. Raises AbsurdFeeError, ChainError."""
    history = eth(node).fee_history(HISTORY_BLOCKS, "latest", [HISTORY_PERCENTILE])
    if not history["baseFeePerGas"]:
        raise ProviderError("eth_feeHistory: no base fee")
    tips = sorted(row[0] for row in history.get("reward") or () if row)
    tip_wei = max(TIP_MIN_WEI, tips[len(tips) // 2] if tips else 0)
    return _checked(GasPrice(base_wei=history["baseFeePerGas"][-1], tip_wei=tip_wei))


def agreed_price(voices: Sequence[GasPrice]) -> GasPrice:
    """Return the median of each figure of the nodes' prices.

    Prices with and without a base fee cannot be compared. The larger group counts, and of two equal ones the cheaper,
    so that a lie about the base fee does not raise the price either.
    """
    sides = [[price for price in voices if price.base_wei], [price for price in voices if not price.base_wei]]
    agreed = [(len(side), _middle_of(side)) for side in sides if side]
    return max(agreed, key=lambda each: (each[0], -each[1].max_wei))[1]


def _middle_of(side: Sequence[GasPrice]) -> GasPrice:
    return GasPrice(base_wei=median_low(price.base_wei for price in side), tip_wei=median_low(p.tip_wei for p in side))


def _checked(price: GasPrice) -> GasPrice:
    if price.max_wei > GAS_PRICE_MAX_WEI:
        raise AbsurdFeeError(f"{price.max_wei} wei for a unit of gas")
    return price


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """The highest price of a unit of gas and the tip in it, in wei."""

    price_wei: int
    tip_wei: int


def todays_bid(providers: RpcProviders, network: Network, *, cap_wei: int) -> Bid:
    """Return the bid for inclusion now. No provider alone decides it.

    If the cap is below the usual bid but enough for the next blocks, the bid is the cap. Raises FeeTooHighError if the
    cap is not enough, ChainError.
    """
    price = _todays_price(providers, network, cap_wei=cap_wei)
    return Bid(price_wei=min(price.max_wei, cap_wei), tip_wei=price.tip_wei)


def frugal_bid(providers: RpcProviders, network: Network, *, cap_wei: int, affordable_wei: int) -> Bid:
    """Return the bid of a spend that can wait: a quarter above the base fee, enough for two full blocks.

    If the sender can afford only a lower one that the next block takes, the bid is the price that he can afford. Raises
    FeeTooHighError if the price after two full blocks is above the cap, ChainError.
    """
    price = _todays_price(providers, network, cap_wei=cap_wei)
    usual = price.expected_wei
    offered = affordable_wei if price.least_wei <= affordable_wei < usual else usual
    # Without a base fee the tip remains the whole bid.
    return Bid(price_wei=offered, tip_wei=min(price.tip_wei, offered - price.base_wei * 9 // 8))


def _todays_price(providers: RpcProviders, network: Network, *, cap_wei: int) -> GasPrice:
    price = todays_price(providers, network)
    if price.expected_wei > cap_wei:
        raise FeeTooHighError(f"{network.code}: a unit of gas costs {price.expected_wei} wei, the cap is {cap_wei}")
    return price


def todays_price(providers: RpcProviders, network: Network) -> GasPrice:
    """Return the present price of gas: the median of all providers' prices. Raises ChainError.

    The price of a single provider is bounded by the last agreed one.
    """
    voices = providers.answers(lambda node: _price(node, network), decides=majority())
    price = agreed_price(voices)
    # Bound both figures together: one alone means nothing if a node denies that there is a base fee.
    most_wei = providers.bounded("gas price", price.max_wei, voices=len(voices))
    if most_wei == price.max_wei:
        return price
    return GasPrice(
        base_wei=price.base_wei * most_wei // price.max_wei, tip_wei=price.tip_wei * most_wei // price.max_wei
    )


def dearer_bid(today: Bid, *, before: Bid, cap_wei: int) -> Bid:
    """Return a bid that nodes accept in place of another, at today's price or higher. Raises FeeTooHighError."""
    bid = Bid(
        price_wei=max(_bumped(before.price_wei), today.price_wei), tip_wei=max(_bumped(before.tip_wei), today.tip_wei)
    )
    if bid.price_wei > cap_wei:
        raise FeeTooHighError(f"a replacement would offer {bid.price_wei} wei for a unit of gas, above {cap_wei}")
    return bid


def data_fee(providers: RpcProviders, network: Network, *, calldata_bytes: int, limit_wei: int) -> int:
    """Return the most that a rollup charges for posting a transaction, in wei; 0 on other networks.

    Raises AbsurdFeeError above the limit, ChainError.
    """
    oracle = evm_parameters(network).data_fee_oracle
    if oracle is None:
        return 0
    # The oracle takes the length of a transaction without its signature.
    data = calldata("getL1FeeUpperBound(uint256)", ENVELOPE_BYTES + calldata_bytes)
    fee_wei = DATA_FEE_FACTOR * median_low(
        providers.answers(lambda node: ask_contract(node, oracle, data), decides=majority())
    )
    if fee_wei > limit_wei:
        raise AbsurdFeeError(f"{network.code}: posting a transaction costs {fee_wei} wei, above {limit_wei}")
    return fee_wei


def _price(node: JsonRpc, network: Network) -> GasPrice:
    if evm_parameters(network).has_base_fee:
        try:
            price = gas_price(node)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
        else:
            if price.base_wei > 0:
                return price
    asked = eth(node).gas_price * (100 + LEGACY_MARGIN_PERCENT) // 100
    return _checked(GasPrice(base_wei=0, tip_wei=max(TIP_MIN_WEI, asked)))


def _bumped(wei: int) -> int:
    return -(-wei * BUMP_EIGHTHS // 8)
