"""Prices, signs, sends and follows our own transactions on TRON. Built by chains.registry for the signer.

What decides about money is asked of every provider; what one of them says alone is not believed where others speak.
A transaction lives for ten minutes and is signed anew when it has expired for good: nothing is ever offered more for.
"""

from dataclasses import replace

from chains.family import Keyring
from chains.net.at_once import majority
from chains.one_transfer import is_living, movements
from chains.spending import Attempt, Case, Draft, Fate, FateKind, InsufficientCoinError, Intent, Purse, Sending
from chains.tron import transactions
from chains.tron.nodes import TronProviders
from chains.tron.spends import drafts
from chains.tron.spends import fate as tron_fate
from chains.tron.spends.sending import give
from core.catalogue.catalogue import Network


class TronSpender:
    """One TRON network, as chains.family.Spender; units of the gas coin are sun."""

    def __init__(self, network: Network, providers: TronProviders) -> None:
        self._network, self._providers = network, providers

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return what to offer now; see chains.family. Raises ForeignKeyError where others may sign for the wallet.

        Nodes know the balance of the newest block: what is promised to spends in none has to be there besides.
        """
        gas_currency = self._network.gas_currency
        currency = gas_currency if intent.pair is None else intent.pair.currency
        found = drafts.verdict(self._providers, intent)
        made = drafts.make(intent, found, cap_units=cap_units, scanned=purse.scanned)
        promised = dict(purse.promised)
        needed_sun = promised.get(gas_currency, 0) + made.offer.ceiling_units
        needed_sun += intent.units if currency == gas_currency else 0
        # What is staked and what is free others in flight may use up.
        spared = 0 if any(promised.values()) else drafts.spared_units(made, found)
        if found.sun < needed_sun - spared:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {found.sun} sun and needs {needed_sun - spared} with all that waits"
            )
        needed_units = intent.units + promised.get(currency, 0)
        if currency != gas_currency and found.token_units < needed_units:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {found.token_units} units of {currency} and needs {needed_units}"
            )
        return made

    def refuses(self, intent: Intent) -> bool:
        """Return whether the chain would refuse a token's transfer; see chains.family."""
        return drafts.refuses(self._providers, intent)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: prices are the chain's, and what waits longest is what it lives."""
        del before, purse, cap_units
        return None

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign a draft; deterministic, without any network. ValueError with a counter, or for another's key."""
        if counter is not None:
            raise ValueError("a TRON transaction has no number")
        raw = drafts.raw_of(draft)
        return transactions.signed(raw, keys.sign(draft.intent.wallet, bytes.fromhex(transactions.txid_of(raw))))

    def send(self, raw: bytes) -> Sending:
        """Give bytes to every provider; taken by one is taken."""
        txid = transactions.txid_of_signed(raw)
        told = self._providers.answers(lambda node: give(node, raw, txid))
        return next(sending for sending in Sending if sending in told)

    def fate(self, case: Case) -> Fate:
        """Find out where a spend stands, of all its attempts; see chains.family."""
        told = self._providers.answers(lambda node: tron_fate.testimony(node, case), decides=majority(is_living))
        fate = tron_fate.judge(told, self._providers.count)
        if fate.kind is not FateKind.INCLUDED:
            return fate
        return replace(fate, movements=movements(fate, case.intent, self._network))
