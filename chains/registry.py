"""Finds a network's reader and its spender. Called by actors; families are imported when first needed."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from chains.family import Reader, Spender
from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.fields import Environment
from core.settings.settings import Settings

if TYPE_CHECKING:
    from chains.net.providers import Providers

Builder = Callable[[Network, tuple[str, ...], float, Environment], Reader]
SpenderBuilder = Callable[[Network, tuple[str, ...], float, str | None], Spender]


def reader(network: Network, settings: Settings) -> Reader:
    """Return the reader of a network, the same one each time, so that its connections are kept.

    LookupError where the network has no RPC URL or its family is not served.
    """
    urls = settings.rpc_urls.get(network.code)
    build = _BUILDERS.get(network.family)
    if urls is None or build is None:
        raise LookupError(f"{network.code} is not served here")
    return build(network, urls, settings.rpc_timeout_s, settings.environment)


def spender(network: Network, settings: Settings) -> Spender:
    """Return the spender of a network, the same one each time; it shares the reader's connections.

    LookupError where the network has no RPC URL or its family is not served.
    """
    urls = settings.rpc_urls.get(network.code)
    build = _SPENDERS.get(network.family)
    if urls is None or build is None:
        raise LookupError(f"{network.code} is not served here")
    return build(network, urls, settings.rpc_timeout_s, settings.sanctions_oracles.get(network.code))


def fee_cap_units(network: Network, settings: Settings) -> int:
    """Return the most that may be offered for a unit of the family's measure, in base units of the gas coin.

    The operator's word (`<NETWORK>_GAS_CAP_GWEI`) or else the catalogue's. LookupError where there is neither.
    """
    cap = settings.gas_caps_gwei.get(network.code, network.family_parameters.fee_cap)
    if cap is None:
        raise LookupError(f"{network.code} has no cap on fees")
    return cap * network.family_parameters.FEE_CAP_UNIT


@functools.cache
def _evm(network: Network, urls: tuple[str, ...], timeout_s: float, environment: Environment) -> Reader:
    from chains.evm.reader import EvmReader  # noqa: PLC0415 - a process loads the families that it serves

    pairs = load_catalogue(environment).pairs_on(network.code)
    return EvmReader(network, pairs, _evm_providers(network, urls, timeout_s))


@functools.cache
def _evm_spender(network: Network, urls: tuple[str, ...], timeout_s: float, sanctions_oracle: str | None) -> Spender:
    from chains.evm.spends.spender import EvmSpender  # noqa: PLC0415 - as above

    providers = _evm_providers(network, urls, timeout_s)
    return EvmSpender(network, providers, sanctions_oracle=sanctions_oracle)


@functools.cache
def _evm_providers(network: Network, urls: tuple[str, ...], timeout_s: float) -> "Providers":
    from chains.evm.nodes import evm_providers  # noqa: PLC0415 - as above

    return evm_providers(network, urls, timeout_s=timeout_s)


_BUILDERS: Final[Mapping[str, Builder]] = MappingProxyType({"evm": _evm})
_SPENDERS: Final[Mapping[str, SpenderBuilder]] = MappingProxyType({"evm": _evm_spender})
