"""Ethereum and its kin: prices, signs, sends and follows our own transactions. Built by chains.registry for the signer.

What decides about money is asked of every provider; what one of them says alone is not believed where others speak.
"""

from dataclasses import replace
from statistics import median_low

import structlog

from chains.base import (
    Attempt,
    Fate,
    FateKind,
    InsufficientCoinError,
    Intent,
    Offer,
    ProviderError,
    Sending,
)
from chains.evm import wire
from chains.evm.spends import balances
from chains.evm.spends import fate as evm_fate
from chains.evm.spends import gas as evm_gas
from chains.evm.spends import trial as evm_trial
from chains.evm.spends.gas import Bid
from chains.evm.spends.library import account
from chains.evm.spends.terms import gas_offer, only_output
from chains.evm.spends.tx import Spend, give, outcome, plan_spend, sign_spend
from chains.net.providers import Providers
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Network
from core.catalogue.families import evm_parameters

log = structlog.get_logger()


class EvmSpender:
    """One EVM network, as chains.base.Spender. A slot is a nonce; units of the gas coin are wei."""

    def __init__(self, network: Network, providers: Providers) -> None:
        self._parameters = evm_parameters(network)
        self.providers = providers
        self._network = network
        self._chain_id = int(network.chain_identity)

    def next_slot(self, sender: str, *, ours: int) -> int:
        """Return the nonce that follows what is included; see chains.base. One of two cannot raise it.

        One that lags may lower it, which does no harm: the caller never goes below his own count.
        """
        told = self.providers.answers(lambda node: evm_fate.nonce(node, sender))
        slot = median_low(told)
        if slot > ours and len(told) < evm_fate.witnesses(self.providers.count):
            raise ProviderError(f"one provider alone says that {sender} used slots beyond {ours}")
        return slot

    def waiting_slot(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the nonce that follows what waits in the nodes' pools too; see chains.base."""
        answers = self.providers.everyone(lambda node: evm_fate.nonce(node, sender, "pending"))
        told = sorted((answer for answer in answers if isinstance(answer, int)), reverse=True)
        place = 0 if cautious else evm_fate.witnesses(self.providers.count) - 1
        # Not every node tells of its pool; the slots in blocks are asked for besides.
        return max(ours, *told[place : place + 1]) if told else ours

    def quote(self, intent: Intent, *, cap_units: int) -> Offer:
        """Return what to offer now; see chains.base.

        Of the balances, only what the newest block shows is known: spends that wait are for the caller to subtract.
        """
        spend = _spend(intent)
        bid = evm_gas.todays_bid(self.providers, self._network, cap_wei=cap_units)
        figure = evm_trial.gas_figure(intent, self._network)
        trial = evm_trial.judge(
            self.providers.answers(lambda node: evm_trial.attempt(node, intent, spend, gas_figure=figure, bid=bid))
        )
        offer = gas_offer(
            gas_limit=trial.gas,
            price_units=bid.price_wei,
            tip_units=bid.tip_wei,
            data_units=self._data_fee(spend, trial.gas * cap_units),
        )
        if intent.pair is not None and trial.gas > figure:
            log.warning(
                "gas.above_charge", network=self._network.code, currency=intent.pair.currency,
                gas_limit=trial.gas, charged_gas=figure,
            )  # fmt: skip
        if trial.native_wei < spend.value_wei + offer.ceiling_units:
            raise InsufficientCoinError(
                f"{intent.wallet.address} holds {trial.native_wei} wei, fees are {offer.ceiling_units}"
            )
        return offer

    def replacement(self, intent: Intent, *, before: Offer, cap_units: int) -> Offer:
        """Return an offer that nodes accept in place of `before`; see chains.base. The gas limit stays."""
        told = before.terms
        bid = evm_gas.dearer_bid(
            evm_gas.todays_bid(self.providers, self._network, cap_wei=cap_units),
            before=Bid(price_wei=told["price_units"], tip_wei=told["tip_units"]),
            cap_wei=cap_units,
        )
        return gas_offer(
            gas_limit=told["gas_limit"],
            price_units=bid.price_wei,
            tip_units=bid.tip_wei,
            data_units=self._data_fee(_spend(intent), told["gas_limit"] * cap_units),
        )

    def sign(self, intent: Intent, *, slot: int, offer: Offer, private_key: str) -> Attempt:
        """Sign. Deterministic, without any network. ValueError if the key is not the sender's."""
        if account().from_key(private_key).address.lower() != intent.wallet.address:
            raise ValueError(f"this is not the key of {intent.wallet.address}")
        return sign_spend(_spend(intent), private_key=private_key, chain_id=self._chain_id, nonce=slot, offer=offer)

    def send(self, raw: bytes) -> Sending:
        """Give bytes to every provider; taken by one is taken."""
        txid = "0x" + keccak256(raw).hex()
        return outcome(self.providers.answers(lambda node: give(node, raw, txid)))

    def fate(self, intent: Intent, *, slot: int, txids: tuple[str, ...], depth: int) -> Fate:
        """Find out where a spend stands, of all its attempts; see chains.base."""
        told = self.providers.answers(
            lambda node: evm_fate.testimony(node, intent, slot=slot, txids=txids, depth=depth)
        )
        fate = evm_fate.judge(told, self.providers.count)
        if fate.kind is not FateKind.INCLUDED:
            return fate
        return replace(fate, movements=evm_fate.movements(fate, intent, self._network))

    def native_balance(self, address: str) -> int:
        """Return an address's coin at the newest block: the middle of what providers tell, of two the lower."""
        return balances.newest(self.providers, address)

    def _data_fee(self, spend: Spend, limit_wei: int) -> int:
        return evm_gas.data_fee(
            self.providers, self._network, calldata_bytes=len(wire.data(spend.data)), limit_wei=limit_wei
        )


def _spend(intent: Intent) -> Spend:
    contract = None if intent.pair is None else intent.pair.contract
    output = only_output(intent)
    return plan_spend(to=output.recipient, units=output.units, contract=contract)
