"""Chooses coins, prices, signs, sends and follows our own transactions on bitcoin. Built by chains.bitcoin.family.

A transaction spends only confirmed coins, at any of our addresses, and gives change to its wallet, so that none of our
transactions waits for another. One that claims the same coins and pays more replaces it.
"""

from collections.abc import Sequence
from typing import Final

from chains.bitcoin.scripts import script_of
from chains.bitcoin.spends import building, fees, selection
from chains.bitcoin.spends.fate import fate_of
from chains.bitcoin.spends.heads import lock_height
from chains.bitcoin.spends.inclusion import Inclusions
from chains.bitcoin.spends.selection import Bill, Choice, ShortError
from chains.bitcoin.spends.sending import give
from chains.bitcoin.spends.sizes import TRUC_VBYTES_MAX, VBYTES_MAX, dust_units, vsize
from chains.bitcoin.spends.terms import TRUC_VERSION, VERSION, coin_offer
from chains.bitcoin.spends.waiting import waiting_spends
from chains.bitcoin.transactions import read
from chains.family import Keyring
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.spending import (
    Attempt,
    Case,
    Coins,
    Draft,
    Fate,
    FeeTooHighError,
    Intent,
    Purse,
    Sending,
    SpendRefusedError,
    UnderfundedError,
)
from core.catalogue.catalogue import Network
from core.catalogue.families import bitcoin_parameters, traits_of

# How much more a replacement offers for its size.
BUMP_PERCENT: Final = 25


class BitcoinSpender:
    """Spends on one network, as chains.family.Spender. Units are satoshi; the measure of fees is a virtual byte."""

    def __init__(self, network: Network, providers: Providers[JsonRpc]) -> None:
        self.providers = providers
        self._network = network
        self._chain = bitcoin_parameters(network).chain
        self._inclusions = Inclusions(network)

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft; see chains.family. Coins that other spends hold are not in the purse."""
        scripts = self._scripts(intent)
        rate = fees.todays_rate(self.providers, cap_units=cap_units)
        is_truc = fees.passes_truc(self.providers)
        bill = Bill(
            scripts=scripts,
            units=intent.units,
            rate=rate,
            cap_units=cap_units,
            # Version 3 keeps a recipient's child from pinning others' payouts; of one output he pins only his own.
            is_truc=is_truc and len(scripts) > 1,
        )
        locked = lock_height(self.providers, purse.scanned)
        return self._drafted(intent, bill, selection.choose(bill, purse.coins), lock_height=locked, is_truc=is_truc)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft with the coins of `before`, and further ones if its change does not pay for the higher fee.

        It is locked to the scan's present height, so that it does not keep a wrong height of `before`.
        """
        coins, terms = building.claimed(before), before.offer.terms
        scripts, increment = self._scripts(before.intent), fees.asked_increment(self.providers)
        bill = Bill(
            scripts=scripts,
            units=before.intent.units,
            rate=self._dearer_rate(before, scripts, increment, cap_units=cap_units),
            cap_units=cap_units,
            before_units=terms["fee_units"],
            increment=increment,
        )
        taken = {(coin.txid, coin.vout) for coin in coins}
        free = [coin for coin in purse.coins if (coin.txid, coin.vout) not in taken]
        locked = terms["lock_height"] if purse.scanned is None else lock_height(self.providers, purse.scanned)
        try:
            choice = selection.choose(bill, free, claimed=coins, parts_max=max(1, terms["change_parts"]))
        except ShortError as error:
            offer = coin_offer(
                fee_units=error.fee_units, change_units=0, change_parts=0, lock_height=locked, rate=bill.rate
            )
            raise UnderfundedError(str(error), offer=offer, missing_units=error.missing_units) from None
        is_truc = fees.passes_truc(self.providers)
        return self._drafted(before.intent, bill, choice, lock_height=locked, is_truc=is_truc)

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign each coin with its address's key, deterministically and without the network; see chains.family."""
        if counter is not None:
            raise ValueError("a bitcoin transaction has no number")
        return building.signed(draft, self._chain, keys)

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        """Return the coins that bytes spend, as (txid, vout)."""
        return tuple(one.outpoint for one in read(raw).inputs)

    def waiting_spends(
        self,
        outpoints: Sequence[tuple[str, int]],
        *,
        block_hash: str | None,
        cautious: bool,
        up_s: int | None = None,
    ) -> frozenset[str]:
        """Return spends of some coins in the nodes' pools; see chains.family. Takes nodes of version 24 or later."""
        return waiting_spends(self.providers, outpoints, block_hash=block_hash, cautious=cautious, up_s=up_s)

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every provider. They count as taken if one takes them."""
        txid = read(raw).txid
        sendings = self.providers.answers(lambda node: give(node, raw, txid))
        return next(sending for sending in Sending if sending in sendings)

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts and by the blocks in which the scan saw its coins spent."""
        return fate_of(self.providers, self._inclusions, case, currency=self._network.gas_currency)

    def _drafted(self, intent: Intent, bill: Bill, choice: Choice, *, lock_height: int, is_truc: bool) -> Draft:
        """Return the draft of a choice, in version 3 if nodes relay that and it is small enough."""
        vbytes = bill.size(len(choice.coins), choice.change_parts)
        offer = coin_offer(
            fee_units=choice.fee_units,
            change_units=choice.change_units,
            change_parts=choice.change_parts,
            lock_height=lock_height,
            rate=bill.rate,
            version=TRUC_VERSION if is_truc and vbytes <= TRUC_VBYTES_MAX else VERSION,
        )
        draft = Draft(intent=intent, claim=Coins(coins=choice.coins), offer=offer)
        # Check before anything is signed that it pays the intended outputs and that its fee is within the cap.
        building.unsigned(draft, self._chain)
        if choice.fee_units > bill.cap_units * vbytes or vbytes > VBYTES_MAX:
            raise ValueError(f"{choice.fee_units} satoshi for {vbytes} virtual bytes")
        return draft

    def _scripts(self, intent: Intent) -> tuple[bytes, ...]:
        """Return the scripts of the outputs. Raises SpendRefusedError for dust, which no node relays."""
        outputs_max = traits_of(self._network).outputs_max
        if not 0 < len(intent.outputs) <= outputs_max:
            raise ValueError(f"a transaction has 1 to {outputs_max} outputs, not {len(intent.outputs)}")
        if intent.pair is not None and intent.pair.contract is not None:
            raise ValueError(f"{intent.pair.currency} has a contract")
        scripts = tuple(script_of(output.recipient, self._chain) for output in intent.outputs)
        for script, output in zip(scripts, intent.outputs, strict=True):
            if output.units < dust_units(script):
                raise SpendRefusedError(f"{output.units} satoshi to {output.recipient} are dust")
        return scripts

    def _dearer_rate(self, before: Draft, scripts: tuple[bytes, ...], increment: int, *, cap_units: int) -> int:
        """Return the rate of a replacement: today's rate, or a step above the rate of `before` if that is higher.

        increment: the least step that nodes accept. If the step leads above the cap, the cap is offered; raises
        FeeTooHighError if even the least step does.
        """
        terms = before.offer.terms
        vbytes = vsize(inputs=len(building.claimed(before)), scripts=scripts, change=terms["change_parts"])
        had = -(-terms["fee_units"] * fees.KVB // vbytes)
        step = max(had * (100 + BUMP_PERCENT) // 100, had + increment)
        cap = cap_units * fees.KVB
        if had + increment > cap:
            raise FeeTooHighError(f"a replacement would offer more than {cap_units} satoshi for a virtual byte")
        return min(cap, max(step, fees.todays_rate(self.providers, cap_units=cap_units)))
