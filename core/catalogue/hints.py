"""Says which coin or network a caller meant, in the texts of errors. Pure; read where one is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from core.catalogue.catalogue import Catalogue

# From this likeness on, a code is meant by another.
NEAR: Final = 0.7
# Names of our networks and currencies in other gateways and exchanges, in lower-case letters and digits.
_NAMES: Final = msgspec.json.decode(
    Path(__file__).with_name("other_names.json").read_bytes(), type=dict[str, dict[str, list[str]]]
)
_NETWORKS: Final = {name: code for code, names in _NAMES["networks"].items() for name in names}
_COINS: Final = {name: code for code, names in _NAMES["currencies"].items() for name in names}
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")


def unknown_currency(catalogue: Catalogue, code: str, *, name: str = "currency") -> str:
    """Return the text that refuses a code that is no price's currency."""
    codes = [*catalogue.assets, *catalogue.fiats]
    return f"{name} is unknown.{_meant(code, codes, _COINS)}"


def unknown_coin(catalogue: Catalogue, code: str, *, name: str = "currency") -> str:
    """Return the text that refuses a code that is no coin."""
    if code in catalogue.fiats:
        return f"{name} must be a coin, and {code} is none. The coins are {', '.join(catalogue.assets)}."
    return f"{name} is unknown.{_meant(code, catalogue.assets, _COINS)}"


def network_needed(catalogue: Catalogue, currency: str, served: Collection[str]) -> str:
    """Return the text that asks for the network of a coin that has several."""
    return f"{currency} has several networks; name one of {_listed(catalogue, currency, served)}."


def unoffered(catalogue: Catalogue, currency: str, network: str, served: Collection[str]) -> str:
    """Return the text that refuses a coin on a network where this gateway does not offer it.

    served: the networks that it serves, or those on which the merchant accepts the coin.
    """
    if network not in catalogue.networks:
        return f"network is unknown.{_meant(network, catalogue.networks, _NETWORKS)}"
    offered = _listed(catalogue, currency, served)
    rest = f"; it is offered on {offered}" if offered else ""
    return f"{currency} is not offered on {network} here{rest}."


def _listed(catalogue: Catalogue, currency: str, served: Collection[str]) -> str:
    return ", ".join(network for network in catalogue.networks_of(currency) if network in served)


def _meant(code: str, known: Iterable[str], names: Mapping[str, str]) -> str:
    """Return the question whether another code was meant; '' if none resembles this one."""
    plain = {each.lower(): each for each in known}
    bare = _SEPARATORS.sub("", code.lower())
    near = plain.get(names.get(bare, bare).lower())
    if near is None:
        near = next((plain[each] for each in difflib.get_close_matches(bare, plain, n=1, cutoff=NEAR)), None)
    return "" if near is None else f" Did you mean {near}?"
