"""Computes the present fee rate, and the cost of moving coin. Called by spender, treasurer and reader.

A rate is in the nodes' unit: satoshi for a thousand virtual bytes. The median of the nodes' rates counts, the lower of
two: the signer raises a fee that is too low, which only costs time, but a fee that is too high never comes back.
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
# The offer if a node has seen too little to estimate, as on a new chain.
UNKNOWN_RATE: Final = 5 * KVB
# The least increment that nodes ask of a replacement; their operators may raise it.
INCREMENT_MIN: Final = 1 * KVB
# Bitcoin Core relays transactions of version 3 from this version on.
TRUC_SINCE: Final = 280_000
# No honest node reports a rate above a whole coin for a thousand bytes.
COINS_MAX: Final = 1


class _Pool(wire.PoolFloor):
    """The lowest rates that the pool takes and relays, and its policy on version 3."""

    # The increment that a replacement pays; nodes before version 24 report it elsewhere.
    incrementalrelayfee: Decimal = Decimal(0)
    # Only Bitcoin Knots reports it: reject, accept, or enforce.
    truc_policy: str = ""


class _Node(msgspec.Struct):
    """The version of a node's program, as getnetworkinfo returns it."""

    version: int


def todays_rate(providers: Providers[JsonRpc], *, cap_units: int) -> int:
    """Return the rate for a block soon. With three providers or more, none decides it alone.

    cap_units: for a virtual byte. Raises FeeTooHighError above it, ChainError.
    """
    rate = asked_rate(providers)
    if rate > cap_units * KVB:
        raise FeeTooHighError(f"a virtual byte costs {rate / KVB} satoshi, the cap is {cap_units}")
    return rate


def asked_rate(providers: Providers[JsonRpc]) -> int:
    """Return the nodes' present rate. The rate of a single node is bounded by the last agreed one.

    Raises ChainError.
    """
    voices = providers.answers(_voice)
    return providers.bounded("rate", median_low(voices), voices=len(voices))


def asked_increment(providers: Providers[JsonRpc]) -> int:
    """Return the increment of a replacement, for a thousand virtual bytes; bounded as the rate is.

    Raises ChainError.
    """
    voices = providers.answers(
        lambda node: max(INCREMENT_MIN, _rate(_pool(node).incrementalrelayfee)), decides=majority()
    )
    return providers.bounded("increment", median_low(voices), voices=len(voices))


def passes_truc(providers: Providers[JsonRpc]) -> bool:
    """Return True if most nodes relay transactions of version 3 (BIP-431). Raises ChainError."""
    return bool(median_low(providers.answers(_passes_truc, decides=majority())))


def fee_units(vbytes: int, rate: int) -> int:
    """Return the fee of a number of virtual bytes, rounded up."""
    return -(-vbytes * rate // KVB)


def costs(providers: Providers[JsonRpc], network: Network, *, cap_units: int) -> Cost:
    """Return the cost of a spend with one payout, and of one more coin in it, at today's rate, at most at the cap."""
    rate = min(asked_rate(providers), cap_units * KVB)
    payout_vbytes = bitcoin_parameters(network).payout_measure_max
    return Cost(payout_units=fee_units(payout_vbytes, rate), sweep_units=fee_units(INPUT_VBYTES, rate))


def _voice(node: JsonRpc) -> int:
    """Return one node's rate: its estimate, and never less than its pool takes."""
    pool = _pool(node)
    rate = node.call("estimatesmartfee", [TARGET_BLOCKS], wire.Estimate).feerate
    estimate = UNKNOWN_RATE if rate is None else _rate(rate) or UNKNOWN_RATE
    return max(_rate(pool.mempoolminfee), _rate(pool.minrelaytxfee), estimate)


def _passes_truc(node: JsonRpc) -> bool:
    """Return True if one node relays version 3. A node that hides its version counts as one that does not."""
    try:
        version = node.call("getnetworkinfo", [], _Node).version
    except RpcError:
        return False
    return version >= TRUC_SINCE and _pool(node).truc_policy != "reject"


def _pool(node: JsonRpc) -> _Pool:
    return node.call("getmempoolinfo", [], _Pool)


def _rate(coins: Decimal) -> int:
    """Return a rate that a node reports in whole coins. Some report a negative one if they do not know it."""
    if not coins.is_finite() or not -COINS_MAX <= coins <= COINS_MAX:
        raise ProviderError("a rate that nobody asks for")
    return max(0, int((coins * UNITS).to_integral_value(ROUND_UP)))
