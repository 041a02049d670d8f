"""What a unit of gas costs on an EVM network now.

Used by chains.evm.adapter for quotes, by chains.evm.spends.gas and chains.evm.spends.tx for spends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from chains.base import FeeTooHighError, ProviderError
from chains.evm.nodes import wire
from chains.evm.nodes.providers import middle
from chains.evm.nodes.rpc import Rpc

HISTORY_BLOCKS: Final = 5
HISTORY_PERCENTILE: Final = 50
# Below it some networks' nodes do not relay.
TIP_MIN_WEI: Final = 10**8
# What is added where the price is all tip, as others may have raised theirs by the time that it is seen.
LEGACY_MARGIN_PERCENT: Final = 10
# A node that asks for more is wrong or hostile, whatever the network.
GAS_PRICE_MAX_WEI: Final = 2_000 * 10**9


class AbsurdFeeError(FeeTooHighError):
    """The node asks for more than any transfer may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GasPrice:
    """The next block's base fee and a middling tip, in wei for a unit of gas. Without base fee the price is all tip."""

    base_wei: int
    tip_wei: int

    @property
    def max_wei(self) -> int:
        """What to offer at most: still enough after six full blocks in a row."""
        return 2 * self.base_wei + self.tip_wei

    @property
    def least_wei(self) -> int:
        """What gets in with the next block: however far its base fee rises, for half the tip; or what was asked for."""
        if self.base_wei:
            return self.base_wei * 9 // 8 + self.tip_wei // 2
        return self.tip_wei * 100 // (100 + LEGACY_MARGIN_PERCENT)

    @property
    def expected_wei(self) -> int:
        """What to reckon with: a spend that waits for two full blocks."""
        return self.base_wei * 5 // 4 + self.tip_wei


class _FeeHistory(msgspec.Struct, rename="camel"):
    base_fee_per_gas: list[str]
    reward: list[list[str]] | None = None


def gas_price(node: Rpc) -> GasPrice:
    """Ask for the current price. Raises AbsurdFeeError, ProviderError."""
    history = node.call("eth_feeHistory", [hex(HISTORY_BLOCKS), "latest", [HISTORY_PERCENTILE]], _FeeHistory)
    if not history.base_fee_per_gas:
        raise ProviderError("eth_feeHistory: no base fee")
    tips = sorted(wire.quantity(row[0]) for row in history.reward or [] if row)
    price = GasPrice(
        base_wei=wire.quantity(history.base_fee_per_gas[-1]),
        tip_wei=max(TIP_MIN_WEI, tips[len(tips) // 2] if tips else 0),
    )
    return _checked(price)


def legacy_price(node: Rpc) -> GasPrice:
    """Ask for the price where there is no base fee. Raises AbsurdFeeError, ProviderError."""
    asked = wire.quantity(node.call("eth_gasPrice", [], str))
    return _checked(GasPrice(base_wei=0, tip_wei=max(TIP_MIN_WEI, asked * (100 + LEGACY_MARGIN_PERCENT) // 100)))


def agreed_price(voices: Sequence[GasPrice]) -> GasPrice:
    """Return a price of which each figure is the middle of what nodes tell.

    Nodes with a base fee and nodes without speak of different figures: the larger side counts, of two equal ones the
    cheaper, so that a lie about the kind raises nothing either.
    """
    sides = [[price for price in voices if price.base_wei], [price for price in voices if not price.base_wei]]
    agreed = [(len(side), _middle_of(side)) for side in sides if side]
    return max(agreed, key=lambda each: (each[0], -each[1].max_wei))[1]


def _middle_of(side: Sequence[GasPrice]) -> GasPrice:
    return GasPrice(base_wei=middle([price.base_wei for price in side]), tip_wei=middle([p.tip_wei for p in side]))


def _checked(price: GasPrice) -> GasPrice:
    if price.max_wei > GAS_PRICE_MAX_WEI:
        raise AbsurdFeeError(f"{price.max_wei} wei for a unit of gas")
    return price
