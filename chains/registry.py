"""From a network to its adapter. Called by actors; families are imported when first needed."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from chains.base import ChainAdapter
from core.catalogue import Environment, Network, load_catalogue
from core.settings import Settings

Builder = Callable[[Network, tuple[str, ...], float, Environment], ChainAdapter]


def adapter(network: Network, settings: Settings) -> ChainAdapter:
    """Return the adapter of a network, the same one each time, so that its connections are kept.

    LookupError where the network has no RPC URL or its family is not served.
    """
    urls = settings.rpc_urls.get(network.code)
    build = _BUILDERS.get(network.family)
    if urls is None or build is None:
        raise LookupError(f"{network.code} is not served here")
    return build(network, urls, settings.rpc_timeout_s, settings.environment)


@functools.cache
def _evm(network: Network, urls: tuple[str, ...], timeout_s: float, environment: Environment) -> ChainAdapter:
    from chains.evm import EvmAdapter  # noqa: PLC0415 - a process loads the families that it serves
    from chains.providers import Providers  # noqa: PLC0415

    pairs = load_catalogue(environment).pairs_on(network.code)
    return EvmAdapter(network, pairs, Providers(network, urls, timeout_s=timeout_s))


_BUILDERS: Final[Mapping[str, Builder]] = MappingProxyType({"evm": _evm})
