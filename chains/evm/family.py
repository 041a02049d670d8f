"""Brings everything of the EVM family. Imported by chains.registry when a network of it is first asked for."""

import functools
from typing import Final

from chains.evm.keys import EvmDeriver
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.evm.spends.sanctions import OracleScreener
from chains.evm.spends.spender import EvmSpender
from chains.evm.treasurer import EvmTreasurer
from chains.family import Deriver, Family, Reader, Screener, Spender, Treasurer, Wiring
from chains.net.providers import RpcProviders
from core.catalogue.catalogue import Network


@functools.cache
def _providers(wiring: Wiring) -> RpcProviders:
    """Return a network's providers, the same ones for whatever is built of its wiring, so that connections are kept."""
    return evm_providers(wiring.network, wiring.urls, timeout_s=wiring.timeout_s)


def _reader(wiring: Wiring) -> Reader:
    return EvmReader(wiring.network, wiring.pairs, _providers(wiring))


def _spender(wiring: Wiring) -> Spender:
    return EvmSpender(wiring.network, _providers(wiring))


def _treasurer(wiring: Wiring) -> Treasurer:
    return EvmTreasurer(wiring.network, _providers(wiring))


def _screener(wiring: Wiring) -> Screener | None:
    return None if wiring.sanctions_oracle is None else OracleScreener(_providers(wiring), wiring.sanctions_oracle)


def _deriver(seed: bytes, _network: Network) -> Deriver:
    return EvmDeriver(seed)


FAMILY: Final = Family(reader=_reader, spender=_spender, treasurer=_treasurer, screener=_screener, deriver=_deriver)
