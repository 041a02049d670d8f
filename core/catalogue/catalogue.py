"""Tells which networks, coins and currencies there are: catalogue.json, checked and indexed. Read by every package.

Contracts and decimals are those of the main networks, in every environment. Minimums are worth about 1 USD where a
transfer costs cents and about 5 USD where it costs dollars (ethereum, tron, bitcoin), so that a deposit is worth its
sweep. Confirmations credit a deposit; maturity, about the chain's own finality, makes it available.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

from msgspec import Meta

from core.money import rescale

Environment = Literal["development", "production"]
Family = Literal["evm", "tron", "solana", "ton", "bitcoin"]
Method = tuple[str, str]
"""A currency and a network."""

DECIMALS_MAX: Final = 18
CATALOGUE_FILE: Final = Path(__file__).with_name("catalogue.json")

Positive = Annotated[int, Meta(ge=1)]
Digits = Annotated[int, Meta(ge=0, le=DECIMALS_MAX)]
CurrencyCode = Annotated[str, Meta(pattern="^[A-Z]{3,5}$")]
NetworkCode = Annotated[str, Meta(pattern="^[a-z]{3,16}$")]
Text = Annotated[str, Meta(min_length=1)]


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
    family: Family
    # EVM only: what its nodes must answer to eth_chainId, and what signatures are bound to.
    chain_id: Positive | None
    # What fees are paid in; native is the same where it is also offered for payments, else None.
    gas_currency: CurrencyCode
    native: CurrencyCode | None
    confirmations: Positive
    maturity: Positive
    block_time_ms: Positive
    # The name under which its nodes give the last final block; None where depth alone tells.
    finality_tag: Text | None
    # EVM only. The most that is offered for a unit of gas, unless the operator sets another cap.
    gas_cap_gwei: Positive | None
    # The gas that a transfer of its own coin between our own addresses is reckoned with, whether or not that coin is
    # offered for payments. A payout may go to a contract, and is charged for Pair.transfer_gas.
    coin_gas: Positive | None
    # Whether blocks have a base fee, so that offers name a price and a tip (EIP-1559) instead of a price alone.
    has_base_fee: bool | None
    # The contract of a rollup that tells what posting a transaction's data costs on top of its gas.
    data_fee_oracle: Text | None


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
    # EVM only: the gas that the fee of one payout is charged for.
    transfer_gas: Positive | None

    def to_ledger(self, units: int, asset_scale: int) -> int:
        """Express units of this network's token in the ledger's scale of the coin; always exact."""
        return rescale(units, self.decimals, asset_scale)

    def from_ledger(self, units: int, asset_scale: int) -> int:
        """Express ledger units in this network's token units; PrecisionLostError if the token is too coarse."""
        return rescale(units, asset_scale, self.decimals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All of it, in the file's order. Built by core.catalogue.reader alone, which checks it."""

    networks: Mapping[str, Network]
    assets: Mapping[str, Asset]
    fiats: Mapping[str, Fiat]
    pairs: Mapping[Method, Pair]
    networks_by_currency: Mapping[str, tuple[str, ...]]
    pairs_by_network: Mapping[str, tuple[Pair, ...]]

    def networks_of(self, currency: str) -> tuple[str, ...]:
        """Return the networks that carry a coin; none for a code that is no coin."""
        return self.networks_by_currency.get(currency, ())

    def with_own_coin(self, family: str) -> tuple[str, ...]:
        """Return the networks of a family whose own coin is offered."""
        return tuple(n.code for n in self.networks.values() if n.family == family and n.native is not None)

    def pairs_on(self, network: str) -> tuple[Pair, ...]:
        """Return the coins of a network; none for an unknown one."""
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

    def ledger_scales(self) -> Mapping[str, int]:
        """Return every coin's scale. Rows are stored in it, so a start-up check compares it with the database's."""
        return MappingProxyType({code: asset.scale for code, asset in self.assets.items()})


@functools.cache
def load_catalogue(environment: Environment) -> Catalogue:
    """Read the catalogue once. Development has a faster pace and smaller minimums; all else is as in production."""
    # The reader builds the types above, so it can only be imported here.
    from core.catalogue.reader import read_catalogue  # noqa: PLC0415

    return read_catalogue(CATALOGUE_FILE.read_bytes(), environment)
