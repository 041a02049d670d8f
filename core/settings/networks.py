"""Reads the variables of single networks: <NETWORK>_…. Called by core.settings.settings and its rules."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final

from core.addresses.addresses import AddressError, parse
from core.catalogue.catalogue import Catalogue, Network, load_catalogue
from core.catalogue.families import SERVED_FAMILIES
from core.catalogue.fields import Environment

RPC_SUFFIX = "_RPC_URLS"
FEE_CAP_SUFFIX = "_FEE_CAP"
COLD_SUFFIX = "_COLD_ADDRESS"
SANCTIONS_SUFFIX = "_SANCTIONS_ORACLE"
EXPLORER_SUFFIX = "_EXPLORER_URL"
CONFIRMATIONS_SUFFIX = "_CONFIRMATIONS"
# Half of the blocks that the scan keeps: a deposit that waits for more could not be compared with its chain.
CONFIRMATIONS_MAX: Final = 256
# The families' other names for the cap on fees.
_CAP_ALIASES = sorted(
    {network.family_parameters.FEE_CAP_ALIAS for network in load_catalogue("production").networks.values()} - {""}
)
# The names of numbers that only one family reads.
_FIGURES = sorted(
    {
        suffix
        for network in load_catalogue("production").networks.values()
        for suffix in network.family_parameters.FIGURES
    }
)
# The ends of the names of variables, by the field that they fill.
SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "rpc_urls": (RPC_SUFFIX,),
    "fee_caps": (*_CAP_ALIASES, FEE_CAP_SUFFIX),
    "figures": tuple(_FIGURES),
    "sanctions_oracles": (SANCTIONS_SUFFIX,),
    "explorer_urls": (EXPLORER_SUFFIX,),
    "cold_addresses": (COLD_SUFFIX,),
    "confirmations": (CONFIRMATIONS_SUFFIX,),
}
# Ends that only the networks of some families have.
FAMILY_SUFFIXES: Final = frozenset({*_CAP_ALIASES, *_FIGURES, SANCTIONS_SUFFIX})


def network_variables(values: Mapping[str, str], suffix: str) -> dict[str, str]:
    """Return the values of <NETWORK><suffix> by network code."""
    return {n.removesuffix(suffix).lower(): value for n, value in values.items() if n.endswith(suffix)}


def rpc_variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of <NETWORK>_RPC_URLS by network code."""
    return network_variables(values, RPC_SUFFIX)


def fee_caps(values: Mapping[str, str]) -> dict[str, str]:
    """Return the operator's caps on fees by network code, in the unit of each family's caps."""
    caps: dict[str, str] = {}
    for suffix in (*_CAP_ALIASES, FEE_CAP_SUFFIX):
        caps |= network_variables(values, suffix)
    return caps


def fee_cap_name(values: Mapping[str, str], code: str) -> str:
    """Return the name of the variable by which a network's cap was given."""
    names = [f"{code.upper()}{suffix}" for suffix in (FEE_CAP_SUFFIX, *_CAP_ALIASES)]
    return next(name for name in names if name in values)


def figures(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the numbers that only one family reads, by network code and the end of each variable's name."""
    by_network: dict[str, dict[str, str]] = {}
    for suffix in _FIGURES:
        for code, text in network_variables(values, suffix).items():
            by_network.setdefault(code, {})[suffix] = text
    return by_network


def cold_addresses(values: Mapping[str, str], environment: Environment) -> dict[str, str]:
    """Return cold addresses by network code in the stored form; invalid ones stay, for network_problems to name."""
    known, addresses = _served(environment), network_variables(values, COLD_SUFFIX)
    return {code: _stored(known.get(code), text) for code, text in addresses.items()}


def _stored(network: Network | None, text: str) -> str:
    try:
        return text if network is None else parse(network, text)
    except AddressError:
        return text


def network_problems(values: Mapping[str, str], environment: Environment) -> Iterator[str]:
    """Yield a line for each problem of the networks' variables."""
    networks, served = load_catalogue(environment).networks, _served(environment)
    for code in rpc_variables(values):
        if code not in networks:
            yield f"{code.upper()}{RPC_SUFFIX}: the catalogue has no such network"
        elif code not in served:
            yield f"{code.upper()}{RPC_SUFFIX}: this version has no adapter for {networks[code].family} networks"
    yield from _option_problems(values, networks)
    yield from _cap_problems(values, served)
    yield from _cold_problems(values, served)
    yield from _confirmation_problems(values, served)
    for suffix in (FEE_CAP_SUFFIX, COLD_SUFFIX, EXPLORER_SUFFIX, CONFIRMATIONS_SUFFIX):
        for code in network_variables(values, suffix):
            if code not in served:
                yield f"{code.upper()}{suffix}: this version serves no such network"


def _option_problems(values: Mapping[str, str], networks: Mapping[str, Network]) -> Iterator[str]:
    for suffix in sorted(FAMILY_SUFFIXES):
        for code, text in network_variables(values, suffix).items():
            parameters = networks[code].family_parameters if code in networks else None
            if parameters is None or suffix not in parameters.OPTIONS:
                yield f"{code.upper()}{suffix}: there is no such network, or its family has no such setting"
            elif suffix in parameters.FIGURES and _is_above(text, parameters.FIGURES[suffix]):
                yield f"{code.upper()}{suffix}: must be at most {parameters.FIGURES[suffix]}"


def _cap_problems(values: Mapping[str, str], served: Mapping[str, Network]) -> Iterator[str]:
    for suffix in _CAP_ALIASES:
        for code in network_variables(values, suffix).keys() & network_variables(values, FEE_CAP_SUFFIX).keys():
            yield f"{code.upper()}{FEE_CAP_SUFFIX}: {code.upper()}{suffix} is the same: name one of them"
    for code, text in fee_caps(values).items():
        highest = served[code].family_parameters.FEE_CAP_MAX if code in served else None
        if highest is not None and _is_above(text, highest):
            yield f"{fee_cap_name(values, code)}: must be at most {highest}"


def _is_above(text: str, highest: int) -> bool:
    """Return True if a text is a number above another. Texts that are not numbers are reported elsewhere."""
    try:
        return Decimal(text.strip()) > highest
    except InvalidOperation:
        return False


def _cold_problems(values: Mapping[str, str], served: Mapping[str, Network]) -> Iterator[str]:
    for code, text in network_variables(values, COLD_SUFFIX).items():
        if code not in served:
            continue
        try:
            parse(served[code], text)
        except AddressError as refusal:
            yield f"{code.upper()}{COLD_SUFFIX}: {refusal}"


def confirmations_span(network: Network) -> tuple[int, int]:
    """Return the least and the most confirmations that an operator may ask for; at maturity nothing is left to gain."""
    return network.confirmations, max(network.confirmations, min(network.maturity, CONFIRMATIONS_MAX))


def _confirmation_problems(values: Mapping[str, str], served: Mapping[str, Network]) -> Iterator[str]:
    for code, text in network_variables(values, CONFIRMATIONS_SUFFIX).items():
        lowest, highest = confirmations_span(served[code]) if code in served else (0, 0)
        if code in served and text.strip().isdecimal() and not lowest <= int(text) <= highest:
            yield f"{code.upper()}{CONFIRMATIONS_SUFFIX}: must be {lowest} to {highest}"


@functools.cache
def catalogue_of(environment: Environment, confirmations: tuple[tuple[str, int], ...]) -> Catalogue:
    """Return the catalogue with an operator's confirmations by network code."""
    catalogue = load_catalogue(environment)
    raised = {code: replace(catalogue.networks[code], confirmations=count) for code, count in confirmations}
    return replace(catalogue, networks=MappingProxyType({**catalogue.networks, **raised}))


def _served(environment: Environment) -> Mapping[str, Network]:
    networks = load_catalogue(environment).networks
    return {code: network for code, network in networks.items() if network.family in SERVED_FAMILIES}
