"""Brings everything of the TRON family. Imported by chains.registry when a network of it is first asked for."""

import functools
from typing import Final

from chains.family import Deriver, Family, Reader, Screener, Spender, Treasurer, Wiring
from chains.tron.keys import TronDeriver
from chains.tron.nodes import TronProviders, tron_providers
from chains.tron.reader import TronReader
from chains.tron.spends.spender import TronSpender
from chains.tron.treasurer import TronTreasurer
from core.catalogue.catalogue import Network


@functools.cache
def _providers(wiring: Wiring) -> TronProviders:
    """Return a network's providers, the same ones for whatever is built of its wiring, so that connections are kept."""
    return tron_providers(wiring.network, wiring.urls, timeout_s=wiring.timeout_s)


def _reader(wiring: Wiring) -> Reader:
    return TronReader(wiring.network, wiring.pairs, _providers(wiring))


def _spender(wiring: Wiring) -> Spender:
    return TronSpender(wiring.network, _providers(wiring))


def _treasurer(wiring: Wiring) -> Treasurer:
    return TronTreasurer(_providers(wiring))


def _screener(_wiring: Wiring) -> Screener | None:
    """Return None: no list of this chain's addresses is read."""


def _deriver(seed: bytes, _network: Network) -> Deriver:
    return TronDeriver(seed)


FAMILY: Final = Family(reader=_reader, spender=_spender, treasurer=_treasurer, screener=_screener, deriver=_deriver)
