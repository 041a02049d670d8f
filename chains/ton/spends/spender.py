"""Prices, signs, sends and follows our own requests on TON. Built by chains.registry for the signer.

Questions that decide about money go to every provider, and a single one is not believed if others answer.
A request names its number and its last second. The signer sends the same bytes until the wallet has taken them, or
until their time is over for good; then the number is allotted again. Fees are the chain's, so no offer is ever raised.
"""

from collections.abc import Mapping
from dataclasses import replace
from statistics import median_low

from chains.base import ProviderError, witnesses_needed
from chains.family import Keyring
from chains.net.at_once import majority
from chains.net.providers import Providers
from chains.spending import (
    Attempt,
    Case,
    Counter,
    Draft,
    Fate,
    InsufficientCoinError,
    Intent,
    Purse,
    Sending,
)
from chains.ton import boc, messages, nodes, requests
from chains.ton.jettons import JETTONS, Jetton
from chains.ton.nodes import Toncenter
from chains.ton.requests import Request
from chains.ton.spends import accounts, contents, drafts
from chains.ton.spends import fate as spend_fate
from chains.ton.spends.sending import give
from chains.ton.spends.trial import Verdict
from chains.ton.wallet import wallet_state
from core.catalogue.catalogue import Network


class TonSpender:
    """Spends on one TON network, as chains.family.Spender, CounterSpender and TokenSpender. Counters are seqnos."""

    def __init__(
        self, network: Network, providers: Providers[Toncenter], jettons: Mapping[str, Jetton] = JETTONS
    ) -> None:
        """Take the network, its providers, and the jettons whose wallets are known, by their masters."""
        self._network, self._providers = network, providers
        self._setting = drafts.setting(network, jettons)
        self._looks = spend_fate.Looks()

    def next_counter(self, sender: str, *, ours: int) -> int:
        """Return the wallet's seqno; see chains.family. One node of two cannot raise it.

        A lagging node may lower it, which does no harm: the caller never goes below his own count.
        """
        seqnos = self._providers.answers(lambda node: _seqno(node, sender), decides=majority())
        counter = median_low(seqnos)
        if counter > ours and len(seqnos) < witnesses_needed(self._providers.count):
            raise ProviderError(f"one provider alone says that {sender} used numbers beyond {ours}")
        return counter

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the wallet's seqno; see chains.family. No node shows the requests that wait for a block."""
        answers = self._providers.everyone(lambda node: _seqno(node, sender))
        seqnos = sorted((answer for answer in answers if isinstance(answer, int)), reverse=True)
        place = 0 if cautious else witnesses_needed(self._providers.count) - 1
        return max(ours, *seqnos[place : place + 1]) if seqnos else ours

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft; see chains.family.

        Nodes report the balance after the newest block, so it has to cover the spends that are in no block too.
        """
        agreed = drafts.verdict(self._providers, intent, self._setting.jettons)
        made = drafts.make(
            intent, agreed, self._setting,
            cap_units=cap_units, scanned=purse.scanned, next_counter=purse.next_counter,
        )  # fmt: skip
        self._check_purse(intent, purse, agreed, made.offer.ceiling_units)
        return made

    def refuses(self, intent: Intent) -> bool:
        """Return True if the chain would refuse a token's transfer; see chains.family."""
        return drafts.refuses(self._providers, intent, self._setting.jettons)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: the chain takes its own fees, whatever is offered."""
        del before, purse, cap_units
        return None

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign with a number, deterministically and without the network.

        Raises ValueError without a number, for a foreign key, or a plan that does not do what the draft says.
        """
        if counter is None:
            raise ValueError("a TON wallet counts its requests")
        wallet, made = draft.intent.wallet, replace(self._checked(draft), seqno=counter)
        state = wallet_state(keys.public(wallet), is_test=self._setting.is_test)
        if state.address != wallet.address:
            raise ValueError("the wallet is not that of its key")
        cell = made.cell()
        body = requests.signed(cell, keys.sign(wallet, cell.hash))
        # The first request makes the contract.
        message = messages.external(wallet.address, body, None if counter else state)
        query_id = contents.figures_of(made).query_id
        return Attempt(
            txid=messages.read(message).normalized_hash.hex(),
            raw=boc.write(message),
            mark=f"{query_id:016x}" if query_id else "",
        )

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every provider. They count as taken if one takes them."""
        sendings = self._providers.answers(lambda node: give(node, raw))
        return next(sending for sending in Sending if sending in sendings)

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts; see chains.family. ValueError if it has no number."""
        fates = self._providers.answers(
            lambda node: spend_fate.testimony(node, case, self._setting.jettons, self._looks),
            decides=majority(spend_fate.is_living),
        )
        return spend_fate.judge(fates, case.intent, self._network, self._providers.count)

    def _check_purse(self, intent: Intent, purse: Purse, agreed: Verdict, ceiling_units: int) -> None:
        """Raise InsufficientCoinError if the wallet cannot pay in addition to what it has promised."""
        gas, wallet = self._network.gas_currency, intent.wallet.address
        currency = gas if intent.pair is None else intent.pair.currency
        needed = purse.promised.get(gas, 0) + ceiling_units + (intent.units if currency == gas else 0)
        if agreed.units < needed:
            raise InsufficientCoinError(f"{wallet} holds {agreed.units} units and needs {needed} with all that waits")
        needed_units = intent.units + purse.promised.get(currency, 0)
        if currency != gas and agreed.token_units < needed_units:
            raise InsufficientCoinError(
                f"{wallet} holds {agreed.token_units} units of {currency} and needs {needed_units}"
            )

    def _checked(self, draft: Draft) -> Request:
        """Return the request of a draft, with 0 instead of its number. Raises ValueError if it is not its intent's."""
        made, ends_at = contents.read_plan(draft.plan), getattr(draft.claim, "ends_at", None)
        if not isinstance(draft.claim, Counter) or ends_at is None:
            raise ValueError("a request has a number and an end")
        figures = contents.figures_of(made)
        same = drafts.requested(draft.intent, figures, self._setting, valid_until=int(ends_at.timestamp()))
        if made != same:
            raise ValueError("the request of a draft is not the one of its intent")
        return made


def _seqno(node: Toncenter, wallet: str) -> int:
    return accounts.seqno_of(nodes.account(node, wallet))
