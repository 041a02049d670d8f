"""Brings everything of bitcoin. Imported by chains.registry when a network of it is first asked for."""

import functools
from typing import Final

from chains.bitcoin.keys import BitcoinDeriver
from chains.bitcoin.nodes import bitcoin_providers
from chains.bitcoin.reader import BitcoinReader
from chains.bitcoin.spends.spender import BitcoinSpender
from chains.bitcoin.treasurer import BitcoinTreasurer
from chains.family import CoinTreasurer, Deriver, Family, Reader, Spender, Wiring
from chains.net.providers import RpcProviders
from core.catalogue.catalogue import Network
from core.catalogue.families import BitcoinParameters, bitcoin_parameters


@functools.cache
def _providers(wiring: Wiring) -> RpcProviders:
    """Return a network's providers, the same ones for whatever is built of its wiring, so that connections are kept."""
    return bitcoin_providers(wiring.network, wiring.urls, timeout_s=wiring.timeout_s)


def _reader(wiring: Wiring) -> Reader:
    return BitcoinReader(wiring.network, wiring.pairs, _providers(wiring))


def _spender(wiring: Wiring) -> Spender:
    return BitcoinSpender(wiring.network, _providers(wiring))


def _treasurer(wiring: Wiring) -> CoinTreasurer:
    join_sat_vb = wiring.options.get(BitcoinParameters.JOIN, bitcoin_parameters(wiring.network).join_sat_vb)
    return BitcoinTreasurer(wiring.network, _providers(wiring), join_sat_vb=join_sat_vb)


def _screener(_wiring: Wiring) -> None:
    """Return None: without contracts the chain has no list of sanctioned addresses. DENY_LIST applies anyway."""


def _deriver(seed: bytes, network: Network) -> Deriver:
    return BitcoinDeriver(seed, bitcoin_parameters(network).chain)


FAMILY: Final = Family(reader=_reader, spender=_spender, treasurer=_treasurer, screener=_screener, deriver=_deriver)
