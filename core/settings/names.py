"""Lists the names of all variables, and finds names that resemble one. Called by cli.checks and .ci/settings.py."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from core.catalogue.catalogue import load_catalogue
from core.rates.sources import load_sources
from core.settings.networks import FAMILY_SUFFIXES, SUFFIXES
from core.settings.rates import variable
from core.settings.settings import Settings

NETWORK: Final = "<NETWORK>"
SOURCE: Final = "<SOURCE>"
# A likeness of one letter more, less or exchanged in a name of six.
LIKENESS_MIN: Final = 0.85
# Fields that several variables fill, by the ends of their names.
_BY_NETWORK: Final[Mapping[str, tuple[str, ...]]] = SUFFIXES
_BY_SOURCE: Final = "rates_urls"


def variables() -> Mapping[str, str]:
    """Return the field of each variable, by name as documented: with <NETWORK> or <SOURCE> for those of many."""
    by_name: dict[str, str] = {}
    for field in Settings.model_fields:
        by_name |= dict.fromkeys(_names(field), field)
    return MappingProxyType(by_name)


def _names(field: str) -> tuple[str, ...]:
    if field == _BY_SOURCE:
        return (variable(SOURCE),)
    suffixes = _BY_NETWORK.get(field)
    return (field.upper(),) if suffixes is None else tuple(f"{NETWORK}{suffix}" for suffix in suffixes)


@functools.cache
def known() -> frozenset[str]:
    """Return every name that a variable may have."""
    return frozenset(name for template in variables() for name in _written(template))


def _written(template: str) -> Iterator[str]:
    if SOURCE in template:
        yield from (variable(source) for source in load_sources())
    elif NETWORK in template:
        suffix = template.removeprefix(NETWORK)
        yield from (f"{code.upper()}{suffix}" for code in networks_with(suffix))
    else:
        yield template


def networks_with(suffix: str) -> tuple[str, ...]:
    """Return the networks that have a variable of that end."""
    networks = load_catalogue("production").networks.items()
    return tuple(
        code
        for code, network in networks
        if suffix not in FAMILY_SUFFIXES or suffix in network.family_parameters.OPTIONS
    )


def lookalikes(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each unknown name that resembles a variable's, with that variable's name."""
    for name in sorted(set(names) - known()):
        meant = _meant(name)
        if meant is not None:
            yield name, meant


def _meant(name: str) -> str | None:
    """Return the variable that a name is a slip of: of case, of order, with our name before it, or of some letters."""
    plain = re.sub(r"[^A-Z0-9]+", "_", name.upper()).removeprefix("SLUICE_")
    if plain in known():
        return plain
    words = sorted(plain.split("_"))
    turned = next((each for each in sorted(known()) if sorted(each.split("_")) == words), None)
    close = get_close_matches(plain, sorted(known()), n=1, cutoff=LIKENESS_MIN)
    return turned or next(iter(close), None)
