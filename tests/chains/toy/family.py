"""Brings the toy family, once for each kind of claim; the registry finds the values by these modules' names."""

from __future__ import annotations

import functools
from typing import Any

from chains.family import Family, Wiring
from core.catalogue.families import traits_of
from tests.chains.toy.keys import ToyDeriver
from tests.chains.toy.providers import ToyProviders
from tests.chains.toy.reader import ToyReader


@functools.cache
def providers(wiring: Wiring) -> ToyProviders:
    return ToyProviders(wiring.network, wiring.urls)


def _reader(wiring: Wiring) -> ToyReader:
    return ToyReader(wiring, providers(wiring), has_sender=traits_of(wiring.network).has_sender)


def _nobody(_wiring: Wiring) -> Any:
    raise LookupError("this family does not spend yet")


FAMILY = Family(
    reader=_reader,  # type: ignore[arg-type]
    spender=_nobody,
    treasurer=_nobody,
    screener=lambda _wiring: None,
    deriver=lambda seed, _network: ToyDeriver(seed),
)
