"""What a spend offers for gas: today's price within the cap, a dearer one in place of another.

Called by chains.evm.spends.spender.
Where there is no base fee, the whole price is tip: an offer whose tip is its price is therefore signed as a legacy
transaction, and no other is.
"""

from dataclasses import dataclass
from typing import Final

from chains.base import FeeTooHighError
from chains.evm.nodes import wire
from chains.evm.nodes.providers import Providers, middle
from chains.evm.nodes.rpc import JsonRpc, RpcError
from chains.evm.spends.fees import AbsurdFeeError, GasPrice, agreed_price, gas_price, legacy_price
from core.catalogue.addresses import keccak256
from core.catalogue.catalogue import Network

METHOD_NOT_FOUND: Final = -32601
# A replacement pays so many eighths of what it replaces: nodes ask for 10 % more of both figures.
BUMP_EIGHTHS: Final = 9
# The cost of data, by the length of a transaction without its signature.
DATA_FEE_SELECTOR: Final = keccak256(b"getL1FeeUpperBound(uint256)")[:4].hex()
# Everything in an unsigned transaction but its calldata, at most.
ENVELOPE_BYTES: Final = 128
# What data costs may double before the spend is included.
DATA_FEE_FACTOR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What to pay for a unit of gas, in wei: at most, and what of it as a tip."""

    price_wei: int
    tip_wei: int


def todays_offer(providers: Providers, network: Network, *, cap_wei: int) -> Offer:
    """Return what gets in now, as a price and a tip of which no provider alone decides.

    Where the cap leaves less than is usual, but enough for the next blocks, the cap is offered. Raises FeeTooHighError
    where it does not, ProviderError.
    """
    price = _todays_price(providers, network, cap_wei=cap_wei)
    return Offer(price_wei=min(price.max_wei, cap_wei), tip_wei=price.tip_wei)


def frugal_offer(providers: Providers, network: Network, *, cap_wei: int, affordable_wei: int) -> Offer:
    """Return what to offer for what can wait: enough for two full blocks, and so a quarter above the base fee.

    Where the sender cannot afford that, but what gets in with the next block, it is what he can afford. Raises
    FeeTooHighError where two full blocks would take it above the cap, ProviderError.
    """
    price = _todays_price(providers, network, cap_wei=cap_wei)
    usual = price.expected_wei
    offered = affordable_wei if price.least_wei <= affordable_wei < usual else usual
    # Where all is tip, it stays so: without a base fee this is what is offered.
    return Offer(price_wei=offered, tip_wei=min(price.tip_wei, offered - price.base_wei * 9 // 8))


def _todays_price(providers: Providers, network: Network, *, cap_wei: int) -> GasPrice:
    price = todays_price(providers, network)
    if price.expected_wei > cap_wei:
        raise FeeTooHighError(f"{network.code}: a unit of gas costs {price.expected_wei} wei, the cap is {cap_wei}")
    return price


def todays_price(providers: Providers, network: Network) -> GasPrice:
    """Return what a unit of gas costs now, of every provider's word the middle one. Raises ProviderError."""
    return agreed_price(providers.voices(lambda node: _price(node, network)))


def dearer_offer(today: Offer, *, before: Offer, cap_wei: int) -> Offer:
    """Return an offer that nodes take in place of another, at today's price or higher. Raises FeeTooHighError."""
    offer = Offer(
        price_wei=max(_bumped(before.price_wei), today.price_wei), tip_wei=max(_bumped(before.tip_wei), today.tip_wei)
    )
    if offer.price_wei > cap_wei:
        raise FeeTooHighError(f"a replacement would offer {offer.price_wei} wei for a unit of gas, above {cap_wei}")
    return offer


def data_fee(providers: Providers, network: Network, *, calldata_bytes: int, limit_wei: int) -> int:
    """Return what a rollup adds for posting a transaction, at most, in wei; 0 where nothing is added.

    Raises AbsurdFeeError above the limit, ProviderError.
    """
    oracle = network.data_fee_oracle
    if oracle is None:
        return 0
    call = {"to": oracle, "data": f"0x{DATA_FEE_SELECTOR}{ENVELOPE_BYTES + calldata_bytes:064x}"}
    told = providers.voices(lambda node: wire.word(node.call("eth_call", [call, "latest"], str)))
    fee_wei = DATA_FEE_FACTOR * middle(told)
    if fee_wei > limit_wei:
        raise AbsurdFeeError(f"{network.code}: posting a transaction costs {fee_wei} wei, above {limit_wei}")
    return fee_wei


def _price(node: JsonRpc, network: Network) -> GasPrice:
    if network.has_base_fee:
        try:
            price = gas_price(node)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
        else:
            if price.base_wei > 0:
                return price
    return legacy_price(node)


def _bumped(wei: int) -> int:
    return -(-wei * BUMP_EIGHTHS // 8)
