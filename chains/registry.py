"""Finds a network's reader, spender and other parts. Called by actors, cli and chains.keys.

The only module that knows which families exist. A process imports a family that it serves when it first needs it.
"""

import functools
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, cast

from chains.family import CoinTreasurer, Deriver, Family, Reader, Screener, Spender, Treasurer, Wiring
from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.families import traits_of
from core.catalogue.fields import Environment
from core.settings.settings import Settings

_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "evm": "chains.evm.family",
        "bitcoin": "chains.bitcoin.family",
        "tron": "chains.tron.family",
        "solana": "chains.solana.family",
        "ton": "chains.ton.family",
    }
)


def reader(network: Network, settings: Settings) -> Reader:
    """Return the reader of a network, the same one each time, so that its connections are kept.

    LookupError where the network has no RPC URL or its family is not served.
    """
    return _reader(_wiring_of(network, settings))


def spender(network: Network, settings: Settings) -> Spender:
    """Return the spender of a network, the same one each time; it shares the reader's connections.

    LookupError where the network has no RPC URL or its family is not served.
    """
    return _spender(_wiring_of(network, settings))


def treasurer(network: Network, settings: Settings) -> Treasurer:
    """Return the treasurer of a network on which money lies at addresses.

    LookupError where it lies in coins, where the network has no RPC URL, or where its family is not served.
    """
    if not traits_of(network).has_sweeps:
        raise LookupError(f"nothing is swept on {network.code}")
    return cast("Treasurer", _family(network.family).treasurer(_wiring_of(network, settings)))


def coin_treasurer(network: Network, settings: Settings) -> CoinTreasurer:
    """Return the treasurer of a network on which money lies in coins.

    LookupError where it lies at addresses, where the network has no RPC URL, or where its family is not served.
    """
    if not traits_of(network).spends_coins:
        raise LookupError(f"{network.code} has no coins to join")
    return cast("CoinTreasurer", _family(network.family).treasurer(_wiring_of(network, settings)))


def screener(network: Network, settings: Settings) -> Screener | None:
    """Return the screener of a network; None if the operator has configured no list of sanctioned addresses.

    LookupError where the network has no RPC URL or its family is not served.
    """
    wiring = _wiring_of(network, settings)
    return _family(network.family).screener(wiring)


def deriver(network: Network, seed: bytes) -> Deriver:
    """Return a wallet's addresses and keys on a network. LookupError where its family is not served."""
    if network.family not in _MODULES:
        raise LookupError(f"{network.code} is not served here")
    return _family(network.family).deriver(seed, network)


def fee_cap_units(network: Network, settings: Settings) -> int:
    """Return the highest fee for a unit of the family's measure, in base units of the gas coin.

    The operator's setting (`<NETWORK>_FEE_CAP`), or else the catalogue's. Raises LookupError if both are missing.
    """
    cap = settings.fee_caps.get(network.code, network.family_parameters.fee_cap)
    if cap is None:
        raise LookupError(f"{network.code} has no cap on fees")
    return cap * network.family_parameters.FEE_CAP_UNIT


def _wiring_of(network: Network, settings: Settings) -> Wiring:
    urls = settings.rpc_urls.get(network.code)
    if urls is None or network.family not in _MODULES:
        raise LookupError(f"{network.code} is not served here")
    oracle = settings.sanctions_oracles.get(network.code)
    options = tuple(sorted(settings.figures.get(network.code, {}).items()))
    return _wiring(network, urls, settings.rpc_timeout_s, settings.environment, oracle, options)


@functools.cache
def _wiring(
    network: Network,
    urls: tuple[str, ...],
    timeout_s: float,
    environment: Environment,
    sanctions_oracle: str | None,
    options: tuple[tuple[str, int], ...],
) -> Wiring:
    """Return the same wiring each time, since readers and spenders are cached by it."""
    return Wiring(
        network=network,
        pairs=tuple(load_catalogue(environment).pairs_on(network.code)),
        urls=urls,
        timeout_s=timeout_s,
        sanctions_oracle=sanctions_oracle,
        options=MappingProxyType(dict(options)),
    )


@functools.cache
def _reader(wiring: Wiring) -> Reader:
    return _family(wiring.network.family).reader(wiring)


@functools.cache
def _spender(wiring: Wiring) -> Spender:
    return _family(wiring.network.family).spender(wiring)


@functools.cache
def _family(code: str) -> Family:
    family: Family = import_module(_MODULES[code]).FAMILY
    return family
