"""Tells what a virtual byte costs now, and what moving coin comes to. Called by spender, treasurer and reader.

A rate is what nodes count in: satoshi for a thousand virtual bytes. Each node has one voice, and the middle one counts,
of two the lower: too low a fee costs time, and is raised by itself; too high a one never comes back.
"""

from decimal import ROUND_UP, Decimal
from statistics import median_low
from typing import Final

import msgspec

from chains.base import Cost, ProviderError
from chains.bitcoin import wire
from chains.bitcoin.spends.sizes import INPUT_VBYTES
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.providers import Providers
from chains.spending import FeeTooHighError
from core.catalogue.catalogue import Network
from core.catalogue.families import bitcoin_parameters

KVB: Final = 1_000
UNITS: Final = 10**8
# Blocks within which an offer is to be included.
TARGET_BLOCKS: Final = 3
# What is offered where a node has seen too little to estimate, as on a chain that has just begun.
UNKNOWN_RATE: Final = 5 * KVB
# What nodes ask for the bytes of what takes another's place is this, or more where their operators say so.
INCREMENT_MIN: Final = 1 * KVB
# From this version on, Bitcoin Core passes on version 3.
TRUC_SINCE: Final = 280_000
# A whole coin for a thousand bytes is nothing that an honest node says.
COINS_MAX: Final = 1


class _Pool(wire.PoolFloor):
    """The least that is taken and passed on, and whether version 3 is."""

    # What is paid above all that is replaced; nodes before version 24 tell it elsewhere.
    incrementalrelayfee: Decimal = Decimal(0)
    # Knots alone says this: reject, accept, or enforce.
    truc_policy: str = ""


class _Node(msgspec.Struct):
    """The version of a node's program, as getnetworkinfo shows it."""

    version: int


def todays_rate(providers: Providers[JsonRpc], *, cap_units: int) -> int:
    """Return what gets in soon, of which no provider alone decides where there are three.

    cap_units: for a virtual byte. Raises FeeTooHighError above it, ProviderError.
    """
    rate = asked_rate(providers)
    if rate > cap_units * KVB:
        raise FeeTooHighError(f"a virtual byte costs {rate / KVB} satoshi, the cap is {cap_units}")
    return rate


def asked_rate(providers: Providers[JsonRpc]) -> int:
    """Return what nodes ask for now; what one asks for alone is bounded by what they last agreed on.

    Raises ProviderError.
    """
    voices = providers.answers(_voice)
    return providers.bounded("rate", median_low(voices), voices=len(voices))


def asked_increment(providers: Providers[JsonRpc]) -> int:
    """Return what is paid above all that it replaces, for a thousand virtual bytes; bounded as the rate is.

    Raises ProviderError.
    """
    voices = providers.answers(
        lambda node: max(INCREMENT_MIN, _rate(_pool(node).incrementalrelayfee)), decides=majority()
    )
    return providers.bounded("increment", median_low(voices), voices=len(voices))


def passes_truc(providers: Providers[JsonRpc]) -> bool:
    """Return whether most nodes pass on transactions of version 3 (BIP-431). Raises ProviderError."""
    return bool(median_low(providers.answers(_passes_truc, decides=majority())))


def fee_units(vbytes: int, rate: int) -> int:
    """Return the fee of so many virtual bytes, rounded up."""
    return -(-vbytes * rate // KVB)


def costs(providers: Providers[JsonRpc], network: Network, *, cap_units: int) -> Cost:
    """Return what a payout costs that leaves alone, and what one more coin adds, at today's rate or at the cap."""
    rate = min(asked_rate(providers), cap_units * KVB)
    payout_vbytes = bitcoin_parameters(network).payout_measure_max
    return Cost(payout_units=fee_units(payout_vbytes, rate), sweep_units=fee_units(INPUT_VBYTES, rate))


def _voice(node: JsonRpc) -> int:
    """Return what one node asks for: its estimate, and never less than it would take."""
    pool = _pool(node)
    told = node.call("estimatesmartfee", [TARGET_BLOCKS], wire.Estimate).feerate
    estimate = UNKNOWN_RATE if told is None else _rate(told) or UNKNOWN_RATE
    return max(_rate(pool.mempoolminfee), _rate(pool.minrelaytxfee), estimate)


def _passes_truc(node: JsonRpc) -> bool:
    """Return whether one node does; one that does not show its version counts as one that does not."""
    try:
        version = node.call("getnetworkinfo", [], _Node).version
    except RpcError:
        return False
    return version >= TRUC_SINCE and _pool(node).truc_policy != "reject"


def _pool(node: JsonRpc) -> _Pool:
    return node.call("getmempoolinfo", [], _Pool)


def _rate(coins: Decimal) -> int:
    """Return a rate that a node tells in whole coins; some say less than nothing for what they do not know."""
    if not coins.is_finite() or not -COINS_MAX <= coins <= COINS_MAX:
        raise ProviderError("a rate that nobody asks for")
    return max(0, int((coins * UNITS).to_integral_value(ROUND_UP)))
