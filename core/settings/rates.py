"""Reads the addresses of rate sources: RATES_<SOURCE>_URL. Called only by core.settings.settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from core.rates.sources import load_sources

# Written instead of an address, to switch a source off.
OFF: Final = "off"

_VARIABLE: Final = re.compile(r"RATES_([A-Z0-9]+)_URL")


def rate_urls(values: Mapping[str, str]) -> dict[str, str]:
    """Return the address of every source that is not switched off; the public one if none is given."""
    urls = {name: source.url for name, source in load_sources().items()} | dict(_given(values))
    return {name: url for name, url in urls.items() if name in load_sources() and url != OFF}


def rate_problems(values: Mapping[str, str], *, is_production: bool) -> Iterator[str]:
    """Yield a line for each problem of the sources."""
    for name, url in _given(values):
        if name not in load_sources():
            yield f"{variable(name)}: there is no such source"
        elif is_production and url != OFF and urlsplit(url).scheme != "https":
            yield f"{variable(name)}: production asks over https only, or anyone on the way could set prices"
    if is_production and not any(load_sources()[name].kind == "market" for name in rate_urls(values)):
        yield "RATES_*_URL: every market is switched off, and nothing would have a price"


def variable(name: str) -> str:
    """Return the variable that holds a source's address."""
    return f"RATES_{name.upper()}_URL"


def _given(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        match = _VARIABLE.fullmatch(name)
        if match:
            yield match[1].lower(), value
