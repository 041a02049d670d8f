"""Prices, signs, sends and follows our own transactions on TRON. Built by chains.registry for the signer.

Questions that decide about money go to every provider, and a single one is not believed if others answer.
A transaction lives for ten minutes; the signer signs another once it has expired for good, and never raises its offer.
"""

from dataclasses import replace

from chains.family import Keyring
from chains.net.at_once import majority
from chains.one_transfer import is_living, movements
from chains.spending import Attempt, Case, Draft, Fate, FateKind, InsufficientCoinError, Intent, Purse, Sending
from chains.tron import transactions
from chains.tron.nodes import TronProviders
from chains.tron.spends import drafts
from chains.tron.spends import fate as spend_fate
from chains.tron.spends.sending import give
from core.catalogue.catalogue import Network


class TronSpender:
    """Spends on one TRON network, as chains.family.Spender. Units of the gas coin are sun."""

    def __init__(self, network: Network, providers: TronProviders) -> None:
        self._network, self._providers = network, providers

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft; see chains.family. Raises ForeignKeyError if others may sign for the wallet.

        Nodes report the balance after the newest block, so it has to cover the spends that are in no block too.
        """
        gas_currency = self._network.gas_currency
        currency = gas_currency if intent.pair is None else intent.pair.currency
        verdict = drafts.verdict(self._providers, intent)
        made = drafts.make(intent, verdict, cap_units=cap_units, scanned=purse.scanned)
        promised = dict(purse.promised)
        needed_sun = promised.get(gas_currency, 0) + made.offer.ceiling_units
        needed_sun += intent.units if currency == gas_currency else 0
        # Spends in flight may use up the staked and the free resources.
        spared = 0 if any(promised.values()) else drafts.spared_units(made, verdict)
        if verdict.sun < needed_sun - spared:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {verdict.sun} sun and needs {needed_sun - spared} with all that waits"
            )
        needed_units = intent.units + promised.get(currency, 0)
        if currency != gas_currency and verdict.token_units < needed_units:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {verdict.token_units} units of {currency} and needs {needed_units}"
            )
        return made

    def refuses(self, intent: Intent) -> bool:
        """Return True if the chain would refuse a token's transfer; see chains.family."""
        return drafts.refuses(self._providers, intent)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: the chain sets the prices, and a transaction waits no longer than it lives."""
        del before, purse, cap_units
        return None

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign a draft, deterministically and without the network. ValueError for a counter or a foreign key."""
        if counter is not None:
            raise ValueError("a TRON transaction has no number")
        raw = drafts.raw_of(draft)
        return transactions.signed(raw, keys.sign(draft.intent.wallet, bytes.fromhex(transactions.txid_of(raw))))

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every provider. They count as taken if one takes them."""
        txid = transactions.txid_of_signed(raw)
        sendings = self._providers.answers(lambda node: give(node, raw, txid))
        return next(sending for sending in Sending if sending in sendings)

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts; see chains.family."""
        fates = self._providers.answers(lambda node: spend_fate.testimony(node, case), decides=majority(is_living))
        fate = spend_fate.judge(fates, self._providers.count)
        if fate.kind is not FateKind.INCLUDED:
            return fate
        return replace(fate, movements=movements(fate, case.intent, self._network))
