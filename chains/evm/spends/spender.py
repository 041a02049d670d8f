"""Prices, signs, sends and follows our own transactions on Ethereum and its kin. Built by chains.evm.family.

Questions that decide about money go to every provider, and a single one is not believed if others answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median_low

import structlog

from chains.base import ProviderError, witnesses_needed
from chains.evm import wire
from chains.evm.spends import balances, gas
from chains.evm.spends import fate as spend_fate
from chains.evm.spends import trial as spend_trial
from chains.evm.spends.gas import Bid
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.trial import Trial
from chains.evm.spends.tx import Spend, give, outcome, sign_spend, spend_of
from chains.family import Keyring
from chains.net.at_once import majority
from chains.net.providers import RpcProviders
from chains.one_transfer import is_living, movements, only_output
from chains.spending import (
    Attempt,
    Case,
    Counter,
    Draft,
    Fate,
    FateKind,
    InsufficientCoinError,
    Intent,
    Purse,
    Sending,
    UnderfundedError,
)
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Network
from core.catalogue.families import evm_parameters

log = structlog.get_logger()


class EvmSpender:
    """Spends on one EVM network, as chains.family.Spender and CounterSpender. Counters are nonces, units are wei."""

    def __init__(self, network: Network, providers: RpcProviders) -> None:
        self._parameters = evm_parameters(network)
        self.providers = providers
        self._network = network
        self._chain_id = int(network.chain_identity)

    def next_counter(self, sender: str, *, ours: int) -> int:
        """Return the nonce after the last included one; see chains.family. One node of two cannot raise it.

        A lagging node may lower it, which does no harm: the caller never goes below his own count.
        """
        nonces = self.providers.answers(lambda node: spend_fate.nonce(node, sender), decides=majority())
        counter = median_low(nonces)
        if counter > ours and len(nonces) < witnesses_needed(self.providers.count):
            raise ProviderError(f"one provider alone says that {sender} used slots beyond {ours}")
        return counter

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the nonce after the transactions in the nodes' pools; see chains.family."""
        needed = witnesses_needed(self.providers.count)

        def decides(answers: Sequence[int | ProviderError], pending: int) -> bool:
            nonces = [answer for answer in answers if isinstance(answer, int)]
            return not cautious and pending < needed <= nonces.count(max(nonces, default=0))

        answers = self.providers.everyone(lambda node: spend_fate.nonce(node, sender, "pending"), decides=decides)
        nonces = sorted((answer for answer in answers if isinstance(answer, int)), reverse=True)
        place = 0 if cautious else needed - 1
        # Not every node reports its pool; the caller also asks for the nonces in blocks.
        return max(ours, *nonces[place : place + 1]) if nonces else ours

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft; see chains.family.

        Nodes report the balance after the newest block, so it has to cover the spends that are in no block too.
        """
        gas_currency, output = self._network.gas_currency, only_output(intent)
        currency = gas_currency if intent.pair is None else intent.pair.currency
        promised = replace(output, units=output.units + purse.promised.get(currency, 0))
        whole = replace(intent, outputs=(promised,))
        spend = spend_of(whole)
        bid = gas.todays_bid(self.providers, self._network, cap_wei=cap_units)
        trial = self._trial(whole, spend, bid)
        offer = gas_offer(
            gas_limit=trial.gas,
            price_units=bid.price_wei,
            tip_units=bid.tip_wei,
            data_units=self._data_fee(spend, trial.gas * cap_units),
        )
        # In a transfer of the gas coin, the promised coin is part of the value already.
        promised_wei = 0 if currency == gas_currency else purse.promised.get(gas_currency, 0)
        needed_wei = spend.value_wei + promised_wei + offer.ceiling_units
        if trial.native_wei < needed_wei:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {trial.native_wei} wei and needs {needed_wei} with all that waits"
            )
        return Draft(intent=intent, claim=Counter(at_least=purse.next_counter), offer=offer)

    def refuses(self, intent: Intent) -> bool:
        """Return True if the chain would refuse a token's transfer; see chains.family. Tried at a gas price of 0."""
        spend, figure = spend_of(intent), spend_trial.gas_figure(intent, self._network)
        trials = self.providers.answers(
            lambda node: spend_trial.attempt(node, intent, spend, gas_figure=figure, bid=spend_trial.UNPRICED)
        )
        return spend_trial.is_refused(trials, self.providers.count)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft that nodes accept in place of `before`; see chains.family. The gas limit stays.

        Spends that wait behind it were promised before, and are not checked here.
        """
        del purse
        intent, terms = before.intent, before.offer.terms
        spend = spend_of(intent)
        bid = gas.dearer_bid(
            gas.todays_bid(self.providers, self._network, cap_wei=cap_units),
            before=Bid(price_wei=terms["price_units"], tip_wei=terms["tip_units"]),
            cap_wei=cap_units,
        )
        offer = gas_offer(
            gas_limit=terms["gas_limit"],
            price_units=bid.price_wei,
            tip_units=bid.tip_wei,
            data_units=self._data_fee(spend, terms["gas_limit"] * cap_units),
        )
        missing = spend.value_wei + offer.ceiling_units - balances.newest(self.providers, intent.wallet.address)
        if missing > 0:
            raise UnderfundedError(f"{intent.wallet.address} lacks {missing} wei", offer=offer, missing_units=missing)
        return replace(before, offer=offer)

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign with a nonce, deterministically and without the network. ValueError without one or for a foreign key."""
        if counter is None:
            raise ValueError("an EVM transaction has a nonce")
        sign = partial(keys.sign, draft.intent.wallet)
        return sign_spend(spend_of(draft.intent), sign, chain_id=self._chain_id, nonce=counter, offer=draft.offer)

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every provider. They count as taken if one takes them."""
        txid = "0x" + keccak256(raw).hex()
        return outcome(self.providers.answers(lambda node: give(node, raw, txid)))

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts; see chains.family. ValueError if it has no nonce."""
        if not isinstance(case.claim, Counter):
            raise ValueError("an EVM transaction has a nonce")  # noqa: TRY004 - what is wrong is the row
        slot = case.claim.at_least
        fates = self.providers.answers(
            lambda node: spend_fate.testimony(node, case.intent, slot=slot, txids=case.txids, depth=case.depth),
            decides=majority(is_living),
        )
        fate = spend_fate.judge(fates, self.providers.count, is_fee_one=self._parameters.data_fee_oracle is None)
        if fate.kind is not FateKind.INCLUDED:
            return fate
        return replace(fate, movements=movements(fate, case.intent, self._network))

    def _trial(self, intent: Intent, spend: Spend, bid: Bid) -> Trial:
        figure = spend_trial.gas_figure(intent, self._network)
        trial = spend_trial.judge(
            self.providers.answers(
                lambda node: spend_trial.attempt(node, intent, spend, gas_figure=figure, bid=bid),
                # One success outweighs all refusals.
                decides=majority(lambda trial: not trial.refusal),
            ),
            self.providers.count,
        )
        if intent.pair is not None and trial.gas > figure:
            log.warning(
                "gas.above_charge", network=self._network.code, currency=intent.pair.currency,
                gas_limit=trial.gas, charged_gas=figure,
            )  # fmt: skip
        return trial

    def _data_fee(self, spend: Spend, limit_wei: int) -> int:
        return gas.data_fee(
            self.providers, self._network, calldata_bytes=len(wire.data(spend.data)), limit_wei=limit_wei
        )
