"""Makes one coin of many on bitcoin while that is cheap. Built by chains.bitcoin.family for the signer.

Coins are spent where they lie, so that nothing is swept. But a spend of many small ones costs as much as they are worth
when fees are high; joined in time they cost little.
"""

from collections.abc import Sequence
from typing import Final

from chains.bitcoin.scripts import script_of
from chains.bitcoin.spends import fees
from chains.bitcoin.spends.heads import lock_height
from chains.bitcoin.spends.selection import is_costly
from chains.bitcoin.spends.sizes import dust_units, vsize
from chains.bitcoin.spends.terms import coin_offer
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.spending import Coin, Coins, Draft, Intent, KeyRef, Output, Scanned, Sweep, Wait
from core.catalogue.catalogue import Network
from core.catalogue.families import bitcoin_parameters

# A wallet with at most this many coins needs no join; a join takes at most COINS_MAX, the smallest.
COINS_FEW: Final = 50
COINS_MAX: Final = 100
# From this number on, one transaction can hardly spend all coins, and a large payout lacks inputs: join the largest.
COINS_MANY: Final = 1_300


class BitcoinTreasurer:
    """One network, as chains.family.CoinTreasurer. Units are satoshi."""

    def __init__(self, network: Network, providers: Providers[JsonRpc], *, join_sat_vb: int) -> None:
        """Take the rate above which nothing is joined, in satoshi for a virtual byte; 0 for never."""
        self._chain = bitcoin_parameters(network).chain
        self._providers = providers
        self._join_rate = join_sat_vb * fees.KVB

    def join(
        self, coins: Sequence[Coin], hot: KeyRef, *, cap_units: int, scanned: Scanned | None = None
    ) -> Sweep | Wait:
        """Return a join of the smallest coins, if a virtual byte costs no more than the operator says.

        Costly coins are not joined: most of what they bring would go to miners.
        """
        rate = fees.todays_rate(self._providers, cap_units=cap_units)
        script = script_of(hot.address, self._chain)
        taken = _joined(coins, rate)
        fee = fees.fee_units(vsize(inputs=len(taken), scripts=[script]), rate)
        units = sum(coin.units for coin in taken) - fee
        if rate > self._join_rate or not taken or units < dust_units(script):
            return Wait(reason="dear", cost_units=fee)
        intent = Intent(wallet=hot, pair=None, outputs=(Output(recipient=hot.address, units=units),))
        locked = lock_height(self._providers, scanned)
        offer = coin_offer(fee_units=fee, change_units=0, change_parts=0, lock_height=locked, rate=rate)
        return Sweep(draft=Draft(intent=intent, claim=Coins(coins=taken), offer=offer))


def _joined(coins: Sequence[Coin], rate: int) -> tuple[Coin, ...]:
    """Return the smallest coins that are not costly, or of too many the largest, in the order of their inputs.

    Empty if those are few: dust that strangers send must not cause a join of the coins that pay.
    """
    fair = [coin for coin in coins if not is_costly(coin.units, rate)]
    if len(fair) <= COINS_FEW:
        return ()
    fair.sort(key=lambda coin: (coin.units, coin.txid, coin.vout))
    taken = fair[-COINS_MAX:] if len(fair) >= COINS_MANY else fair[:COINS_MAX]
    return tuple(sorted(taken, key=lambda coin: (coin.txid, coin.vout)))
