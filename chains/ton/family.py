"""Brings everything of the TON family. Imported by chains.registry when a network of it is first asked for."""

import functools
from typing import Final, cast

from chains.family import Deriver, Family, Reader, Screener, Spender, Treasurer, Wiring
from chains.net.providers import Providers
from chains.ton.keys import TonDeriver
from chains.ton.nodes import Toncenter, ton_providers
from chains.ton.reader import TonReader
from chains.ton.spends.spender import TonSpender
from chains.ton.treasurer import TonTreasurer
from core.catalogue.catalogue import Network
from core.catalogue.families import TonParameters


@functools.cache
def _providers(wiring: Wiring) -> Providers[Toncenter]:
    """Return a network's providers, the same ones for whatever is built of its wiring, so that connections are kept."""
    return ton_providers(wiring.network, wiring.urls, timeout_s=wiring.timeout_s)


def _reader(wiring: Wiring) -> Reader:
    return TonReader(wiring.pairs, _providers(wiring))


def _spender(wiring: Wiring) -> Spender:
    return TonSpender(wiring.network, _providers(wiring))


def _treasurer(wiring: Wiring) -> Treasurer:
    return TonTreasurer(wiring.network, _providers(wiring))


def _screener(_wiring: Wiring) -> Screener | None:
    """Return None: no list of this chain's addresses is read."""


def _deriver(seed: bytes, network: Network) -> Deriver:
    return TonDeriver(seed, is_test=cast("TonParameters", network.family_parameters).is_test)


FAMILY: Final = Family(reader=_reader, spender=_spender, treasurer=_treasurer, screener=_screener, deriver=_deriver)
