"""Brings the toy family, once for each kind of claim; the registry finds the values by these modules' names."""

from __future__ import annotations

import functools

from chains.family import Family, Wiring
from core.catalogue.families import traits_of
from tests.chains.toy.keys import ToyDeriver
from tests.chains.toy.other_claims import CoinsSpender, SeqnoSpender, WindowSpender
from tests.chains.toy.providers import ToyProviders
from tests.chains.toy.reader import ToyReader
from tests.chains.toy.spender import ToySpender
from tests.chains.toy.treasurer import ToyCoinTreasurer, ToyTreasurer


@functools.cache
def providers(wiring: Wiring) -> ToyProviders:
    return ToyProviders(wiring.network, wiring.urls)


def _reader(wiring: Wiring) -> ToyReader:
    return ToyReader(wiring, providers(wiring), has_sender=traits_of(wiring.network).has_sender)


SPENDERS = {"counter": ToySpender, "window": WindowSpender, "coins": CoinsSpender}


@functools.cache
def spender(wiring: Wiring) -> ToySpender:
    traits = traits_of(wiring.network)
    made = SeqnoSpender if traits.counters_end else SPENDERS[traits.claim]
    return made(wiring.network, providers(wiring))


def _treasurer(wiring: Wiring) -> ToyTreasurer | ToyCoinTreasurer:
    is_coins = traits_of(wiring.network).claim == "coins"
    return ToyCoinTreasurer(spender(wiring)) if is_coins else ToyTreasurer(spender(wiring))


FAMILY = Family(
    reader=_reader,
    spender=spender,
    treasurer=_treasurer,
    screener=lambda _wiring: None,
    deriver=lambda seed, _network: ToyDeriver(seed),
)
