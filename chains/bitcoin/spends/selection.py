"""Chooses the coins and the change of a spend. Called by chains.bitcoin.spends.spender.

Takes the largest coins first, so that few are spent, and replaces the last one by the smallest that is enough. The same
coins and figures always give the same choice, in a bounded number of steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from chains.bitcoin.scripts import KEY_HASH, KEY_HASH_BYTES
from chains.bitcoin.spends.fees import fee_units
from chains.bitcoin.spends.sizes import (
    CHANGE_VBYTES,
    INPUT_VBYTES,
    TRUC_VBYTES_MAX,
    VBYTES_MAX,
    dust_units,
    vsize,
)
from chains.spending import Coin, CoinsTooSmallError, FeeTooHighError, InsufficientCoinError

# A coin is costly if its input costs more than this share of its value. Costly coins are spent last.
COSTLY_PERCENT: Final = 5
# The fees of inputs beyond one for each output may be at most this share of the paid units.
INPUTS_SHARE_PERCENT: Final = 10
PERCENT: Final = 100
# While the wallet has fewer coins than this, change is split into several, so that spends need not wait for each other.
COINS_WANTED: Final = 8
# Each part of the change is worth at least this many units, and this many times the cost of making and spending it.
# Coins worth less do not count as coins of the wallet.
PART_MIN_UNITS: Final = 10_000
PART_COSTS: Final = 50

_DUST_UNITS: Final = dust_units(KEY_HASH.ljust(KEY_HASH_BYTES, b"\0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The outputs to pay, and the fee by size."""

    scripts: tuple[bytes, ...]
    units: int
    # The rate, in satoshi for a thousand virtual bytes, and the cap, in satoshi for one.
    rate: int
    cap_units: int
    # For a replacement: the fee of the replaced transaction, and the rate on top of it, for a thousand virtual bytes.
    before_units: int = 0
    increment: int = 0
    # Whether it has to fit into a transaction of version 3.
    is_truc: bool = False

    def size(self, inputs: int, parts: int = 0) -> int:
        """Return the virtual bytes with a number of coins and parts of change."""
        return vsize(inputs=inputs, scripts=self.scripts, change=parts)

    def fee(self, inputs: int, parts: int = 0) -> int:
        """Return the fee with a number of coins and parts of change."""
        vbytes = self.size(inputs, parts)
        return max(fee_units(vbytes, self.rate), self.before_units + fee_units(vbytes, self.increment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The coins and the change that pay a bill. Coins are in the transaction's order."""

    coins: tuple[Coin, ...]
    fee_units: int
    change_units: int
    change_parts: int


class ShortError(InsufficientCoinError):
    """All coins together are not enough."""

    def __init__(self, *, fee_units: int, missing_units: int) -> None:
        super().__init__(f"free coins lack {missing_units} units, {fee_units} for the fee included")
        self.fee_units = fee_units
        self.missing_units = missing_units


def is_costly(units: int, rate: int) -> bool:
    """Return True if a coin's input costs more than COSTLY_PERCENT of its value at a rate."""
    return fee_units(INPUT_VBYTES, rate) * PERCENT > units * COSTLY_PERCENT


def choose(bill: Bill, free: Sequence[Coin], *, claimed: Sequence[Coin] = (), parts_max: int = COINS_WANTED) -> Choice:
    """Return the coins and the change that pay a bill. held: coins that are spent in any case.

    Raises ShortError; CoinsTooSmallError if the coins are enough, but too small to spend at this rate or too many for
    one transaction; and FeeTooHighError if the fee is above the cap.
    """
    taken = [*claimed, *_further(bill, free, claimed)]
    places, least = {_place(coin) for coin in taken}, _part_min(bill)
    left = sum(coin.units >= least and _place(coin) not in places for coin in free)
    parts_wanted = max(1, min(parts_max, COINS_WANTED - left))
    fee, change, parts = _change(bill, taken, parts_wanted)
    if fee > bill.cap_units * bill.size(len(taken), parts):
        raise FeeTooHighError(f"a fee of {fee} units, above {bill.cap_units} for a virtual byte")
    _bound_share(bill, len(taken))
    coins = tuple(sorted(taken, key=_place))
    return Choice(coins=coins, fee_units=fee, change_units=change, change_parts=parts)


def _further(bill: Bill, free: Sequence[Coin], claimed: Sequence[Coin]) -> list[Coin]:
    """Return the coins to spend in addition to the held ones."""
    worth = [coin for coin in free if coin.units > fee_units(INPUT_VBYTES, bill.rate)]
    worth.sort(key=lambda coin: (-coin.units, _place(coin)))
    vbytes_max = TRUC_VBYTES_MAX if bill.is_truc else VBYTES_MAX
    missing, taken = bill.units + bill.fee(len(claimed)) - _sum(claimed), list[Coin]()
    while missing > 0:
        inputs = len(claimed) + len(taken)
        if len(taken) == len(worth) or bill.size(inputs + 1, COINS_WANTED) > vbytes_max:
            raise _shortage(bill, free, claimed, fee_units=bill.fee(inputs), missing_units=missing)
        taken.append(worth[len(taken)])
        missing = bill.units + bill.fee(inputs + 1) - _sum(claimed) - _sum(taken)
    if not taken:
        return taken
    least, last = taken[-1].units + missing, taken[-1]
    enough = [coin for coin in worth[len(taken) - 1 :] if coin.units >= least]
    # The smallest coin that is enough; a costly one only if there is no other.
    fair = [coin for coin in enough if not is_costly(coin.units, bill.rate)]
    return [*taken[:-1], (fair or enough or [last])[-1]]


def _shortage(
    bill: Bill, free: Sequence[Coin], claimed: Sequence[Coin], *, fee_units: int, missing_units: int
) -> InsufficientCoinError | CoinsTooSmallError:
    """Return the error for coins that do not pay a bill: too little coin, or coins too small or too many."""
    if not claimed and _sum(free) > bill.units + fee_units:
        return CoinsTooSmallError(
            f"{len(free)} free coins are enough, but spending them costs too much or fills more than one transaction"
        )
    return ShortError(fee_units=fee_units, missing_units=missing_units)


def _bound_share(bill: Bill, inputs: int) -> None:
    """Refuse a transaction whose inputs cost too large a share of its payment. Raises CoinsTooSmallError.

    Recipients are charged for one input for each output; the gateway pays for further ones.
    """
    further = max(0, inputs - len(bill.scripts))
    extra = fee_units(further * INPUT_VBYTES, bill.rate)
    if extra * PERCENT > bill.units * INPUTS_SHARE_PERCENT:
        raise CoinsTooSmallError(
            f"{inputs} inputs cost {extra} units more than is charged for, of {bill.units} that are paid"
        )


def _change(bill: Bill, taken: Sequence[Coin], parts_wanted: int) -> tuple[int, int, int]:
    """Return the fee, the change and its parts. Change that is not worth its own spending goes to the fee."""
    left, part_min = _sum(taken) - bill.units, _part_min(bill)
    for parts in range(parts_wanted, 0, -1):
        fee = bill.fee(len(taken), parts)
        if left - fee >= (parts * part_min if parts > 1 else max(_DUST_UNITS, fee_units(INPUT_VBYTES, bill.rate))):
            return fee, left - fee, parts
    if left > bill.cap_units * bill.size(len(taken)) and left - bill.fee(len(taken), 1) >= _DUST_UNITS:
        return bill.fee(len(taken), 1), left - bill.fee(len(taken), 1), 1
    return left, 0, 0


def _part_min(bill: Bill) -> int:
    return max(PART_MIN_UNITS, PART_COSTS * fee_units(CHANGE_VBYTES + INPUT_VBYTES, bill.rate))


def _place(coin: Coin) -> tuple[str, int]:
    return coin.txid, coin.vout


def _sum(coins: Iterable[Coin]) -> int:
    return sum(coin.units for coin in coins)
