"""Reads the JSON of bitcoin nodes, only the fields that we read. Used by the modules beside.

Amounts come as decimal numbers of whole coins, and are never a float on their way.
"""

from decimal import Decimal
from typing import Annotated, Final

import msgspec

from chains.base import ProviderError
from chains.bitcoin.transactions import UNITS_MAX, id_bytes

UNITS: Final = 10**8
COINS_MAX: Final = UNITS_MAX // UNITS

Height = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Size = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


class ChainState(msgspec.Struct):
    """How far a node is, as getblockchaininfo tells it."""

    blocks: Height
    headers: Height
    initialblockdownload: bool
    pruned: bool = False
    pruneheight: Height = 0


class HeaderPlace(msgspec.Struct):
    """Where a block stands, as getblockheader tells it; one that was replaced has less than one confirmation."""

    height: Height
    confirmations: int


class Script(msgspec.Struct):
    """What an output is paid to."""

    hex: str


class Unspent(msgspec.Struct, rename={"script": "scriptPubKey"}):
    """A coin that is unspent after a block, as gettxout tells it."""

    bestblock: str
    confirmations: int
    value: Decimal
    script: Script


class Spent(msgspec.Struct):
    """A transaction with what it paid, as getrawtransaction tells it of one in a block."""

    hex: str
    fee: Decimal | None = None


class Fees(msgspec.Struct):
    """What a transaction in the pool offers, alone and with all that it stands upon."""

    base: Decimal
    ancestor: Decimal


class PoolEntry(msgspec.Struct):
    """A transaction in the pool, as getmempoolentry tells it. Sizes are virtual."""

    vsize: Size
    ancestorsize: Size
    fees: Fees


class Estimate(msgspec.Struct):
    """What estimatesmartfee tells, in coins for a thousand bytes; no rate where the node has seen too little."""

    feerate: Decimal | None = None


class PoolFloor(msgspec.Struct):
    """The least that is taken into the pool, in coins for a thousand bytes, as getmempoolinfo tells it."""

    mempoolminfee: Decimal
    minrelaytxfee: Decimal


def id_of(text: str) -> str:
    """Return a hash as a node tells it. Raises ProviderError for what is none."""
    try:
        id_bytes(text)
    except ValueError:
        raise ProviderError(f"not a hash: {text[:80]!r}") from None
    return text


def units_of(coins: Decimal) -> int:
    """Return an amount in base units. Raises ProviderError for what is no amount of coin."""
    # Before it is reckoned with: what is no number, or beyond all numbers, is an error of arithmetic's own there.
    if coins.is_finite() and 0 <= coins <= COINS_MAX:
        units = int(coins * UNITS)
        if Decimal(units) / UNITS == coins:
            return units
    raise ProviderError(f"not an amount: {str(coins)[:80]}")
