"""Which answers decide before a slow node has answered: none that a further answer could turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from chains.base import ProviderError
from chains.evm.reader import EvmReader
from chains.evm.spends.spender import EvmSpender
from chains.evm.spends.trial import Trial
from chains.spending import Case, Counter, Fate, FateKind, Intent, KeyRef, Output, OutputFate, Sending, Window
from chains.tron import transactions
from chains.tron.spends.spender import TronSpender
from core.catalogue.catalogue import Network
from tests.chains.conftest import CATALOGUE, OURS, THEIRS

WAITING, DEAD = Fate(kind=FateKind.WAITING), Fate(kind=FateKind.DEAD, cause="claim_used")
INCLUDED = Fate(kind=FateKind.INCLUDED, txid="0x1", height=8, outputs=(OutputFate(effect="exact"),))
ETHEREUM, TRON = CATALOGUE.networks["ethereum"], CATALOGUE.networks["tron"]
INTENT = Intent(wallet=KeyRef(address=OURS, ordinal=None), pair=None, outputs=(Output(recipient=THEIRS, units=1),))
GOOD, REFUSED = Trial(native_wei=9, gas=21_000), Trial(native_wei=9, refusal="reverted")


class Asked:
    """Three providers that give the same answer, and note what decides."""

    count = 3

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.decides: Callable[[list[object], int], bool] | None = None

    def everyone(
        self, _question: object, *, decides: Callable[[list[object], int], bool] | None = None, **_how: object
    ) -> list[object]:
        self.decides = decides
        return [self.answer] * 3

    answers = everyone


def decider(answer: object, ask: Callable[[Any], object]) -> Callable[[list[object], int], bool]:
    providers = Asked(answer)
    ask(providers)
    assert providers.decides is not None
    return providers.decides


def evm_fate(providers: Any) -> object:
    return EvmSpender(ETHEREUM, providers).fate(
        Case(intent=INTENT, claim=Counter(at_least=0), txids=("0x1",), depth=12)
    )


def tron_fate(providers: Any) -> object:
    window = Window(reference="00", ends_at=datetime(2026, 1, 1, tzinfo=UTC))
    return TronSpender(TRON, providers).fate(Case(intent=INTENT, claim=window, txids=("0x1",), depth=1))


@pytest.mark.parametrize("ask", [evm_fate, tron_fate])
def test_two_of_three_do_not_decide_that_a_spend_is_dead(ask: Callable[[Any], object]) -> None:
    decides = decider(WAITING, ask)
    assert not decides([DEAD, DEAD], 1)
    assert decides([WAITING, WAITING], 1)
    assert decides([INCLUDED, INCLUDED], 1)
    assert not decides([INCLUDED, WAITING], 1)


def test_two_of_three_do_not_decide_that_a_transfer_is_refused() -> None:
    decides = decider(GOOD, lambda providers: cast("Any", EvmSpender(ETHEREUM, providers))._trial(INTENT, None, None))
    assert not decides([REFUSED, REFUSED], 1)
    assert decides([GOOD, GOOD], 1)


@pytest.mark.parametrize("is_cautious", [False, True])
def test_slots_that_wait_are_decided_by_two_and_where_one_is_enough_by_all(*, is_cautious: bool) -> None:
    decides = decider(
        5, lambda providers: EvmSpender(ETHEREUM, providers).waiting_counter(OURS, ours=1, cautious=is_cautious)
    )
    assert decides([5, 5], 1) is not is_cautious
    assert not decides([5, 6], 1), "the third may have as many as the second"
    assert not decides([5, 5], 2), "two others may have more"
    assert not decides([5, ProviderError()], 1)
    assert not decides([], 3)


def test_two_of_three_that_know_no_final_block_decide_nothing() -> None:
    decides = decider(7, lambda providers: EvmReader(ETHEREUM, (), providers).final_height())
    assert not decides([None, None], 1)
    assert decides([7, 7], 1)


@pytest.mark.parametrize(("spender", "network"), [(EvmSpender, ETHEREUM), (TronSpender, TRON)])
def test_bytes_are_given_to_all(monkeypatch: pytest.MonkeyPatch, spender: type[Any], network: Network) -> None:
    monkeypatch.setattr(transactions, "txid_of_signed", lambda _raw: "00")
    providers = Asked(Sending.TAKEN)
    assert spender(network, providers).send(b"") is Sending.TAKEN
    assert providers.decides is None
