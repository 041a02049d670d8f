"""Brings everything of the Solana family. Imported by chains.registry when a network of it is first asked for."""

import functools
from typing import Final

from chains.family import Deriver, Family, Reader, Screener, Spender, Treasurer, Wiring
from chains.net.providers import RpcProviders
from chains.solana.keys import SolanaDeriver
from chains.solana.nodes import solana_providers
from chains.solana.reader import SolanaReader
from chains.solana.spends.spender import SolanaSpender
from chains.solana.treasurer import SolanaTreasurer
from core.catalogue.catalogue import Network


@functools.cache
def _providers(wiring: Wiring) -> RpcProviders:
    """Return a network's providers, the same ones for whatever is built of its wiring, so that connections are kept."""
    return solana_providers(wiring.network, wiring.urls, timeout_s=wiring.timeout_s)


def _reader(wiring: Wiring) -> Reader:
    return SolanaReader(wiring.pairs, _providers(wiring))


def _spender(wiring: Wiring) -> Spender:
    return SolanaSpender(wiring.network, _providers(wiring))


def _treasurer(wiring: Wiring) -> Treasurer:
    return SolanaTreasurer(_providers(wiring))


def _screener(_wiring: Wiring) -> Screener | None:
    """Return None: no list of this chain's addresses is read."""


def _deriver(seed: bytes, _network: Network) -> Deriver:
    return SolanaDeriver(seed)


FAMILY: Final = Family(reader=_reader, spender=_spender, treasurer=_treasurer, screener=_screener, deriver=_deriver)
