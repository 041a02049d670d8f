"""Adds toy families to the gateway of a test, and removes them again.

It adds all parts of a family: rows of the catalogue, traits, a place among the served networks, the form of addresses,
its module in the registry, and the sequence that numbers its addresses.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pytest

from chains import registry
from core.addresses import addresses as address_addresses
from core.catalogue import families
from core.catalogue import reader as catalogue_reader
from core.catalogue.catalogue import Catalogue, Network, Pair, load_catalogue
from core.catalogue.families import Parameters, Traits
from core.settings import networks
from models.addresses import reservations
from tests.chains.toy import addresses
from tests.chains.toy import family as toy_family


class _Toy(Parameters, frozen=True, kw_only=True):
    @property
    def fee_cap(self) -> int:
        return 1_000_000


class ToyCounter(_Toy, frozen=True, kw_only=True, tag="toycounter"):
    """Accounts that count what they send; several outputs a spend; heights with holes."""


class ToySeqno(_Toy, frozen=True, kw_only=True, tag="toyseqno"):
    """Accounts whose numbers end, one spend at a time; receiving is charged."""


class ToyCoins(_Toy, frozen=True, kw_only=True, tag="toycoins"):
    """Coins; no sender; several outputs a spend."""


class ToyWindow(_Toy, frozen=True, kw_only=True, tag="toywindow"):
    """Accounts whose transactions end with a window; heights with holes."""


TRAITS: Final[Mapping[str, Traits]] = {
    "toycounter": Traits(
        claim="counter", has_mempool=False, has_hidden_transfers=False, has_sender=True, has_memo=False,
        outputs_max=4, in_flight_max=8,
    ),
    "toyseqno": Traits(
        claim="counter", window_s=120, has_charges=True, has_mempool=False, has_hidden_transfers=False, has_sender=True,
        has_memo=False, outputs_max=4, in_flight_max=1,
    ),
    "toycoins": Traits(
        claim="coins", has_mempool=True, has_hidden_transfers=False, has_sender=False, has_memo=False,
        outputs_max=4, in_flight_max=8,
    ),
    "toywindow": Traits(
        claim="window", window_s=60, has_cosigned_sweeps=True, has_mempool=False, has_hidden_transfers=False,
        has_sender=True, has_memo=False, outputs_max=1, in_flight_max=8,
    ),
}  # fmt: skip
_PARAMETERS: Final[Mapping[str, Parameters]] = {
    "toycounter": ToyCounter(),
    "toyseqno": ToySeqno(),
    "toycoins": ToyCoins(),
    "toywindow": ToyWindow(),
}
# The gas coin of each, which the catalogue has already.
_COINS: Final = {"toycounter": "TON", "toyseqno": "TON", "toycoins": "BTC", "toywindow": "SOL"}
BLOCK_TIMES_MS: Final = {"toyseqno": 250}
TOKEN: Final = "toytoken"
MODULE: Final = toy_family.__name__
_FORM: Final = address_addresses._Form(parse=addresses.parse, display=addresses.display, stored=addresses.stored)


def plug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter the families; monkeypatch takes them out again, and forget() what was kept of them."""
    read = catalogue_reader.read_catalogue
    monkeypatch.setattr(catalogue_reader, "read_catalogue", lambda *given: _with_toys(read(*given)))
    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, **TRAITS}))
    monkeypatch.setattr(registry, "_MODULES", MappingProxyType({**registry._MODULES, **dict.fromkeys(TRAITS, MODULE)}))
    sequences = {**reservations.SEQUENCES, **dict.fromkeys(TRAITS, reservations.SEQUENCES["evm"])}
    _everywhere(monkeypatch, "SEQUENCES", reservations.SEQUENCES, MappingProxyType(sequences))
    monkeypatch.setattr(
        address_addresses, "_FORMS", MappingProxyType({**address_addresses._FORMS, **dict.fromkeys(TRAITS, _FORM)})
    )
    served = families.SERVED_FAMILIES
    _everywhere(monkeypatch, "SERVED_FAMILIES", served, served | TRAITS.keys())
    forget()


def forget() -> None:
    """Drop the cached catalogue and all objects built from it; the next caller builds them again."""
    load_catalogue.cache_clear()
    networks.catalogue_of.cache_clear()
    for kept in (registry._wiring, registry._reader, registry._spender, registry._family):
        kept.cache_clear()
    for built in (toy_family.providers, toy_family.spender):
        built.cache_clear()


def _everywhere(monkeypatch: pytest.MonkeyPatch, name: str, before: object, after: object) -> None:
    """Replace a table wherever it was imported to."""
    for module in list(sys.modules.values()):
        if vars(module).get(name) is before:
            monkeypatch.setattr(module, name, after)


def _with_toys(known: Catalogue) -> Catalogue:
    pairs = {(pair.currency, pair.network): pair for code in TRAITS for pair in _pairs(known, code)}
    by_network = {code: tuple(pair for pair in pairs.values() if pair.network == code) for code in TRAITS}
    by_currency = dict(known.networks_by_currency)
    for currency, network in pairs:
        by_currency[currency] = (*by_currency[currency], network)
    return replace(
        known,
        networks=MappingProxyType({**known.networks, **{code: _network(code) for code in TRAITS}}),
        pairs=MappingProxyType({**known.pairs, **pairs}),
        networks_by_currency=MappingProxyType(by_currency),
        pairs_by_network=MappingProxyType({**known.pairs_by_network, **by_network}),
    )


def _network(code: str) -> Network:
    return Network(
        code=code, name=code.capitalize(), explorer="", chain_identity=f"{code}-1", gas_currency=_COINS[code],
        native=_COINS[code],
        confirmations=2, maturity=4, block_time_ms=BLOCK_TIMES_MS.get(code, 1_000), finality_tag=None,
        family_parameters=_PARAMETERS[code],  # type: ignore[arg-type]  # known to the type checker are those that ship
    )  # fmt: skip


def _pairs(known: Catalogue, code: str) -> tuple[Pair, ...]:
    coin = _COINS[code]
    decimals = known.assets[coin].precision
    pair = Pair(
        currency=coin, network=code, contract=None, decimals=decimals, min_deposit_units=1_000, min_payout_units=1_000
    )
    if code == "toycoins":
        return (pair,)
    token = replace(pair, currency="USDT", contract=TOKEN, decimals=6)
    return (pair, token)
