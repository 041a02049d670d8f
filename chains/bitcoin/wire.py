"""Reads the JSON of bitcoin nodes, only the fields that we use. Used by the other modules of chains.bitcoin.

Amounts come as decimal numbers of whole coins and are never turned into floats.
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
    """The progress of a node, as getblockchaininfo returns it."""

    blocks: Height
    headers: Height
    initialblockdownload: bool
    pruned: bool = False
    pruneheight: Height = 0


class HeaderPlace(msgspec.Struct):
    """The height of a block, as getblockheader returns it. A replaced block has less than one confirmation."""

    height: Height
    confirmations: int


class Script(msgspec.Struct):
    """The script that an output pays."""

    hex: str


class Unspent(msgspec.Struct, rename={"script": "scriptPubKey"}):
    """A coin that is unspent after a block, as gettxout returns it."""

    bestblock: str
    confirmations: int
    value: Decimal
    script: Script


class Spent(msgspec.Struct):
    """A transaction in a block with its fee, as getrawtransaction returns it."""

    hex: str
    fee: Decimal | None = None


class Fees(msgspec.Struct):
    """The fees of a transaction in the pool, alone and with its unconfirmed ancestors."""

    base: Decimal
    ancestor: Decimal


class PoolEntry(msgspec.Struct):
    """A transaction in the pool, as getmempoolentry returns it. Sizes are virtual."""

    vsize: Size
    ancestorsize: Size
    fees: Fees


class Estimate(msgspec.Struct):
    """The answer of estimatesmartfee, in coins for a thousand bytes. Without a rate if the node has seen too little."""

    feerate: Decimal | None = None


class PoolFloor(msgspec.Struct):
    """The lowest rate that the pool takes, in coins for a thousand bytes, as getmempoolinfo returns it."""

    mempoolminfee: Decimal
    minrelaytxfee: Decimal


def id_of(text: str) -> str:
    """Return a hash that a node returned. Raises ProviderError if it is not a hash."""
    try:
        id_bytes(text)
    except ValueError:
        raise ProviderError(f"not a hash: {text[:80]!r}") from None
    return text


def units_of(coins: Decimal) -> int:
    """Return an amount in base units. Raises ProviderError if it is not an amount of coin."""
    # Checked before any arithmetic, where NaN and infinity would raise errors of their own.
    if coins.is_finite() and 0 <= coins <= COINS_MAX:
        units = int(coins * UNITS)
        if Decimal(units) / UNITS == coins:
            return units
    raise ProviderError(f"not an amount: {str(coins)[:80]}")
