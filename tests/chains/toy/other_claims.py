"""The toy spenders of windows and of coins: what they differ in from the one that counts."""

from __future__ import annotations

import json
from collections import Counter as Tally
from dataclasses import replace

from chains.base import Case, Coins, Draft, InsufficientCoinError, Intent, Offer, Purse, Window
from chains.family import Keyring
from tests.chains.toy.chain import NATIVE, WINDOW, Tx
from tests.chains.toy.nodes import ToyNode
from tests.chains.toy.providers import checked
from tests.chains.toy.spender import ToySpender


class WindowSpender(ToySpender):
    """Nothing is counted: a transaction lives as long as the block that it refers to is young."""

    cause = "expired"

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        made = super().draft(intent, purse, cap_units=cap_units)
        head: int = min(self._all(lambda node: checked(node.ask("head"), int)))
        return replace(made, claim=Window(reference=str(head), last_height=head + WINDOW))

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Nothing is offered more for here: what expires is signed anew."""
        del before, purse, cap_units

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        assert counter is None
        assert isinstance(draft.claim, Window)
        return replace(self._plain(draft), reference=int(draft.claim.reference))

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        assert isinstance(case.claim, Window)
        assert case.claim.last_height is not None
        return checked(node.ask("head"), int) - case.depth + 1 > case.claim.last_height


class CoinsSpender(ToySpender):
    """Money lies in coins, which are spent whole; what is too much comes back to the wallet."""

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        if len(intent.outputs) > self._outputs_max:
            raise ValueError("more outputs than one transaction has")
        fee, taken = self._fee(cap_units), []
        for coin in purse.coins:
            if sum(one.units for one in taken) >= intent.units + fee:
                break
            taken.append(coin)
        change = sum(one.units for one in taken) - intent.units - fee
        if change < 0:
            raise InsufficientCoinError(f"free coins lack {-change} units")
        keys = sorted({(one.key.address, one.key.ordinal) for one in taken}, key=str)
        return Draft(
            intent=intent,
            claim=Coins(coins=tuple(taken)),
            offer=Offer(ceiling_units=fee, terms={"fee_units": fee}),
            plan=json.dumps([change, keys]).encode(),
        )

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """No row keeps what the change and the keys were."""
        del before, purse, cap_units

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        assert counter is None
        assert isinstance(draft.claim, Coins)
        change, _ = json.loads(draft.plan)
        back = ((draft.intent.wallet.address, NATIVE, change),) if change else ()
        plain = self._plain(draft)
        return replace(plain, sender="", outputs=plain.outputs + back, coins=draft.claim.outpoints)

    def _signatures(self, draft: Draft, unsigned: Tx, keys: Keyring) -> tuple[tuple[str, str], ...]:
        _, signers = json.loads(draft.plan)
        refs = [replace(draft.intent.wallet, address=address, ordinal=ordinal) for address, ordinal in signers]
        return tuple((keys.public(ref).hex(), keys.sign(ref, unsigned.body()).hex()) for ref in refs)

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        deep = checked(node.ask("head"), int) - case.depth + 1
        return any(txid not in case.txids and height <= deep for txid, height in case.spent_by.values())

    def _moved(self, tx: Tx, case: Case, failed: set[int]) -> Tally[tuple[str, str]]:
        del case, failed
        gas = self._network.gas_currency
        moved: Tally[tuple[str, str]] = Tally()
        for txid, vout in tx.coins:
            address, units = self._all(lambda node, at=(txid, vout): node.ask("output", *at))[0]
            moved[address, gas] -= units
        for recipient, _, units in tx.outputs:
            moved[recipient, gas] += units
        return moved
