"""Declares networks, coins and currencies: catalogue.json, checked and indexed. Read by every package.

Contracts and decimals are those of the main networks, in every environment. Minimums are worth about 1 USD where a
transfer costs cents and about 5 USD where it costs dollars (ethereum, tron, bitcoin), so that a deposit is worth its
sweep. Confirmations credit a deposit; maturity, about the chain's own finality, makes it available.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from core.catalogue.families import Family, FamilyParameters
from core.catalogue.fields import CurrencyCode, Digits, Environment, NetworkCode, Positive, Text
from core.money import rescale

Method = tuple[str, str]
"""A currency and a network."""

CATALOGUE_FILE: Final = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fiat:
    """A currency that only prices; digits are those of its minor unit."""

    code: CurrencyCode
    name: Text
    digits: Digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A coin. Balances are multiples of 10^-precision, the ledger counts in units of 10^-scale."""

    code: CurrencyCode
    name: Text
    precision: Digits
    scale: Digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A chain. Depths count blocks, the one that holds the transaction included."""

    code: NetworkCode
    name: Text
    # The page of a transaction in a public explorer, with {txid} in it; '' for a chain that no explorer shows.
    explorer: str
    # The chain that its nodes name; a node that names another is not believed. Its form is the family's.
    chain_identity: Text
    # The coin of fees; native is the same if it is also offered for payments, else None.
    gas_currency: CurrencyCode
    native: CurrencyCode | None
    confirmations: Positive
    maturity: Positive
    block_time_ms: Positive
    # The name under which its nodes return the last final block; None if only depth decides.
    finality_tag: Text | None
    # The parameters of its family.
    family_parameters: FamilyParameters = field(hash=False)

    @property
    def family(self) -> Family:
        """Return the network's family of chains."""
        return self.family_parameters.family


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A coin on a network. Its amounts are in units of 10^-decimals, as its contract counts."""

    currency: CurrencyCode
    network: NetworkCode
    # None for the network's own coin. EVM: EIP-55 form.
    contract: Text | None
    decimals: Digits
    min_deposit_units: Positive
    min_payout_units: Positive

    @property
    def method(self) -> Method:
        """Return the currency and the network."""
        return self.currency, self.network

    def to_ledger(self, units: int, asset_scale: int) -> int:
        """Express units of this network's token in the ledger's scale of the coin; always exact."""
        return rescale(units, self.decimals, asset_scale)

    def from_ledger(self, units: int, asset_scale: int) -> int:
        """Express ledger units in this network's token units; PrecisionLostError if the token is too coarse."""
        return rescale(units, asset_scale, self.decimals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The whole catalogue, in the file's order. Only core.catalogue.reader builds it, and checks it."""

    networks: Mapping[str, Network]
    assets: Mapping[str, Asset]
    fiats: Mapping[str, Fiat]
    pairs: Mapping[Method, Pair]
    networks_by_currency: Mapping[str, tuple[str, ...]]
    pairs_by_network: Mapping[str, tuple[Pair, ...]]

    def networks_of(self, currency: str) -> tuple[str, ...]:
        """Return the networks that carry a coin; empty for an unknown code."""
        return self.networks_by_currency.get(currency, ())

    def with_own_coin(self, family: str) -> tuple[str, ...]:
        """Return the networks of a family whose own coin is offered."""
        return tuple(n.code for n in self.networks.values() if n.family == family and n.native is not None)

    def pairs_on(self, network: str) -> tuple[Pair, ...]:
        """Return the coins of a network; empty for an unknown one."""
        return self.pairs_by_network.get(network, ())

    def pair(self, currency: str, network: str) -> Pair | None:
        """Return a coin on a network, or None if it is not offered."""
        return self.pairs.get((currency, network))

    def is_pricing_currency(self, code: str) -> bool:
        """Return whether a price may be set in it: any fiat currency or coin."""
        return code in self.fiats or code in self.assets

    def digits(self, code: str) -> int:
        """Return the fractional digits that amounts of a fiat currency or a coin may have; KeyError if unknown."""
        fiat = self.fiats.get(code)
        return self.assets[code].precision if fiat is None else fiat.digits

    def scale(self, code: str) -> int:
        """Return the ledger's scale of a coin; KeyError if unknown."""
        return self.assets[code].scale

    def smallest_deposit(self, pair: Pair) -> int:
        """Return the smallest amount of a coin on a network, in the ledger's units."""
        return pair.to_ledger(pair.min_deposit_units, self.scale(pair.currency))

    def ledger_scales(self) -> Mapping[str, int]:
        """Return every coin's scale. Rows are stored in it, so a start-up check compares it with the database's."""
        return MappingProxyType({code: asset.scale for code, asset in self.assets.items()})


@functools.cache
def load_catalogue(environment: Environment) -> Catalogue:
    """Read the catalogue once. Development has a faster pace and smaller minimums; all else is as in production."""
    # The reader builds the types above, so it can only be imported here.
    from core.catalogue.reader import read_catalogue  # noqa: PLC0415

    return read_catalogue(CATALOGUE_FILE.read_bytes(), environment)
