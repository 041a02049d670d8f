"""Tells what the families of chains are: what the rest of the house must know of each, and what its networks differ in.

Whoever asks for a trait need not know which family has it. Parameters are a family's own: one object for each network,
read by the family's code alone; what they share with those of others are the questions of Parameters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, cast

import msgspec

from core.catalogue.fields import CurrencyCode, Positive, Text

if TYPE_CHECKING:
    from core.catalogue.catalogue import Network

# Of a hash of 32 bytes.
HASH_DIGITS: Final = 64

Family = Literal["evm", "tron", "solana", "ton", "bitcoin"]

SERVED_FAMILIES: Final[frozenset[Family]] = frozenset({"evm", "bitcoin", "tron"})
"""Those whose networks this version reads and spends on. The written forms of addresses it knows for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What holds for all networks of a family."""

    # What the chain lets only one transaction have: the next number of its sender, coins, or nothing but its window.
    claim: Literal["counter", "coins", "window"]
    # Whether what is in no block yet is told to everybody.
    has_mempool: bool
    # Whether coin can arrive by a transfer that no block lists, so that balances are looked at.
    has_hidden_transfers: bool
    # Whether a transfer names who sent it.
    has_sender: bool
    # Whether a transfer may carry a text for its recipient.
    has_memo: bool
    # Payouts in one spend.
    outputs_max: int
    # Spends of one wallet that may be in no block.
    in_flight_max: int
    # How long payouts that fill no spend wait for others that leave with them: since the last came, since the first.
    gather_s: int = 0
    gather_max_s: int = 0
    # Where the claim is a window: for so long after the newest block what is signed now may come into one.
    window_s: int = 0
    # Blocks, by the time that they take, after which more is offered for what is in none of them.
    patience_blocks: int = 6
    # Whether the ids of transactions are hexadecimal, in lower case where they are stored: elsewhere capitals count.
    has_hex_txids: bool = True


TRAITS: Final[Mapping[Family, Traits]] = MappingProxyType(
    {
        "evm": Traits(
            claim="counter",
            has_mempool=False,
            has_hidden_transfers=True,
            has_sender=True,
            has_memo=False,
            outputs_max=1,
            in_flight_max=64,
        ),
        "tron": Traits(
            claim="window",
            has_mempool=False,
            has_hidden_transfers=False,
            has_sender=True,
            has_memo=False,
            outputs_max=1,
            in_flight_max=64,
            window_s=600,
        ),
        "solana": Traits(
            claim="window",
            has_mempool=False,
            has_hidden_transfers=False,
            has_sender=True,
            has_memo=True,
            outputs_max=1,
            in_flight_max=64,
            window_s=120,
            has_hex_txids=False,
        ),
        "ton": Traits(
            claim="counter",
            has_mempool=False,
            has_hidden_transfers=False,
            has_sender=True,
            has_memo=True,
            outputs_max=50,
            in_flight_max=1,
            has_hex_txids=False,
        ),
        "bitcoin": Traits(
            claim="coins",
            has_mempool=True,
            has_hidden_transfers=False,
            has_sender=False,
            has_memo=False,
            outputs_max=100,
            in_flight_max=25,
            gather_s=2,
            gather_max_s=10,
            patience_blocks=3,
        ),
    }
)


def traits_of(network: "Network") -> Traits:
    """Return what holds for a network as for all of its family."""
    return TRAITS[network.family]


def stored_txid(network: "Network", text: str) -> str:
    """Return a transaction's id, as somebody wrote it, in the form in which it is stored."""
    return text.lower() if traits_of(network).has_hex_txids else text


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="family"):
    """What only networks of one family have. The answers here are those of a family that has nothing to say."""

    # Base units of the gas coin in one of the units that the family's fee caps are written in.
    FEE_CAP_UNIT: ClassVar[int] = 1
    # What the operator's cap is called besides <NETWORK>_FEE_CAP; "" for nothing.
    FEE_CAP_ALIAS: ClassVar[str] = ""
    # Ends of the names of settings that networks of other families do not have.
    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    # Those of them that are whole numbers which the family's code alone reads, and the highest that each may be.
    FIGURES: ClassVar[Mapping[str, int]] = MappingProxyType({})
    # The highest cap that an operator may set, in those units.
    FEE_CAP_MAX: ClassVar[int] = 10**9
    # What a chain of development calls itself; "" where it bears the identity of the main one.
    DEVELOPMENT_IDENTITY: ClassVar[str] = ""

    @property
    def family(self) -> Family:
        """Return the family whose parameters these are."""
        return cast("Family", self.__struct_config__.tag)

    @property
    def fee_cap(self) -> int | None:
        """Return the most that is offered for a unit of the family's measure, unless the operator sets another cap."""
        return None

    @property
    def payout_measure_max(self) -> int:
        """Return how much of the family's measure the dearest payout is reckoned with."""
        return 0

    def in_development(self) -> Self:
        """Return the parameters of the chain that stands for this one in development."""
        return self

    def problems(  # Those of EVM networks use what they are given.
        self,
        identity: str,  # noqa: ARG002
        gas_currency: str,  # noqa: ARG002
        currencies: frozenset[str],  # noqa: ARG002
    ) -> Iterator[str]:
        """Say what contradicts a network of that identity and gas coin with such coins."""
        yield from ()


class EvmParameters(Parameters, frozen=True, kw_only=True, tag="evm"):
    """What EVM networks differ in. Their identity is their chain id, in decimal. The measure of fees is gas."""

    FEE_CAP_UNIT: ClassVar[int] = 10**9
    FEE_CAP_MAX: ClassVar[int] = 2_000
    FEE_CAP_ALIAS: ClassVar[str] = "_GAS_CAP_GWEI"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"_GAS_CAP_GWEI", "_SANCTIONS_ORACLE"})

    # The most that is offered for a unit of gas.
    gas_cap_gwei: Positive
    # The gas that a transfer of its own coin between our own addresses is reckoned with, whether or not that coin is
    # offered for payments. A payout may go to a contract, and is charged for transfer_gas.
    coin_gas: Positive
    # Whether blocks have a base fee, so that offers name a price and a tip (EIP-1559) instead of a price alone.
    has_base_fee: bool
    # The contract of a rollup that tells what posting a transaction's data costs on top of its gas.
    data_fee_oracle: Text | None
    # The gas that the fee of one payout is charged for, by coin.
    transfer_gas: Mapping[CurrencyCode, Positive]

    def __post_init__(self) -> None:
        """Make the figures as immutable as the rest."""
        msgspec.structs.force_setattr(self, "transfer_gas", MappingProxyType(dict(self.transfer_gas)))

    @property
    def fee_cap(self) -> int:
        """Return the most that is offered for a unit of gas, in gwei."""
        return self.gas_cap_gwei

    @property
    def payout_measure_max(self) -> int:
        """Return the gas of the dearest payout."""
        return max(self.transfer_gas.values(), default=self.coin_gas)

    def in_development(self) -> Self:
        """Return the parameters of a development chain, which is no rollup, whatever it stands for."""
        return msgspec.structs.replace(self, data_fee_oracle=None)

    def problems(self, identity: str, gas_currency: str, currencies: frozenset[str]) -> Iterator[str]:
        """Say what contradicts the network."""
        if not identity.isdecimal() or str(int(identity)) != identity or identity == "0":
            yield "its identity is no chain id"
        for currency in currencies ^ self.transfer_gas.keys():
            yield f"{currency} is not offered there, or has no figure of gas"
        if self.transfer_gas.get(gas_currency, self.coin_gas) < self.coin_gas:
            yield f"its own coin's gas, of {gas_currency}, is less than a plain transfer takes"


class TronParameters(Parameters, frozen=True, kw_only=True, tag="tron"):
    """What TRON's networks differ in. Their identity is the first block's id. The measure of fees is a transaction."""

    FEE_CAP_UNIT: ClassVar[int] = 10**6
    FEE_CAP_MAX: ClassVar[int] = 10_000
    DEVELOPMENT_IDENTITY: ClassVar[str] = "0000000000000000a1d23bd2b36cae3ff1fdbdc8faa92d3de7ac08fc7e82b58d"

    # The most that one transaction may cost, in TRX.
    fee_cap_trx: Positive
    # The energy that the fee of one payout is charged for, by token: its recipient has never had any.
    transfer_energy: Mapping[CurrencyCode, Positive]
    # The energy that bringing a token home is reckoned with: the hot wallet has some.
    sweep_energy: Mapping[CurrencyCode, Positive]

    def __post_init__(self) -> None:
        """Make the figures as immutable as the rest."""
        for name in ("transfer_energy", "sweep_energy"):
            msgspec.structs.force_setattr(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def fee_cap(self) -> int:
        """Return the most that one transaction may cost, in TRX."""
        return self.fee_cap_trx

    @property
    def payout_measure_max(self) -> int:
        """Return one: a payout is a transaction."""
        return 1

    def problems(self, identity: str, gas_currency: str, currencies: frozenset[str]) -> Iterator[str]:
        """Say what contradicts the network."""
        if len(identity) != HASH_DIGITS or set(identity) - set("0123456789abcdef") or identity.strip("0") == "":
            yield "its identity is no block's id"
        for figures in (self.transfer_energy, self.sweep_energy):
            for currency in (currencies - {gas_currency}) ^ figures.keys():
                yield f"{currency} is not offered there, or has no figure of energy"


class SolanaParameters(Parameters, frozen=True, kw_only=True, tag="solana"):
    """What Solana's clusters differ in: their identity, the genesis hash, alone."""

    DEVELOPMENT_IDENTITY: ClassVar[str] = "solana-development"


class TonParameters(Parameters, frozen=True, kw_only=True, tag="ton"):
    """What TON's networks differ in. Their identity is the zero state's root hash, in base64."""

    DEVELOPMENT_IDENTITY: ClassVar[str] = "ton-development"

    # Whether addresses are shown with the flag of a test network, and read with it.
    is_test: bool

    def in_development(self) -> Self:
        """Return the parameters of a development chain, which is a test network."""
        return msgspec.structs.replace(self, is_test=True)


class BitcoinParameters(Parameters, frozen=True, kw_only=True, tag="bitcoin"):
    """What bitcoin's networks differ in. Their identity is the hash of the genesis block, which regtest has too."""

    DEVELOPMENT_IDENTITY: ClassVar[str] = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
    FEE_CAP_MAX: ClassVar[int] = 2_000
    # Up to which rate small coins are joined, in satoshi for a virtual byte; 0 for never.
    JOIN: ClassVar[str] = "_JOIN_SAT_VB"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({JOIN})
    FIGURES: ClassVar[Mapping[str, int]] = MappingProxyType({JOIN: FEE_CAP_MAX})
    # One coin of ours, a recipient of the longest kind, and change.
    PAYOUT_VBYTES: ClassVar[int] = 153

    # Whose prefix and versions addresses have.
    chain: Literal["main", "regtest"]
    # The most that is offered, and up to which rate small coins are joined, in satoshi for a virtual byte.
    fee_cap_sat_vb: Positive
    join_sat_vb: Positive

    @property
    def fee_cap(self) -> int:
        """Return the most that is offered for a virtual byte, in satoshi."""
        return self.fee_cap_sat_vb

    @property
    def payout_measure_max(self) -> int:
        """Return the virtual bytes of a payout that leaves alone."""
        return self.PAYOUT_VBYTES

    def in_development(self) -> Self:
        """Return the parameters of regtest."""
        return msgspec.structs.replace(self, chain="regtest")


FamilyParameters = EvmParameters | TronParameters | SolanaParameters | TonParameters | BitcoinParameters


def tron_parameters(network: "Network") -> TronParameters:
    """Return a network's parameters as those of TRON. Raises ValueError for a network of another family."""
    match network.family_parameters:
        case TronParameters() as parameters:
            return parameters
        case _:
            raise ValueError(f"{network.code} is no TRON network")


def bitcoin_parameters(network: "Network") -> BitcoinParameters:
    """Return a network's parameters as those of bitcoin. Raises ValueError for a network of another family."""
    match network.family_parameters:
        case BitcoinParameters() as parameters:
            return parameters
        case _:
            raise ValueError(f"{network.code} is no network of bitcoin")


def evm_parameters(network: "Network") -> EvmParameters:
    """Return an EVM network's parameters. Raises ValueError for a network of another family."""
    match network.family_parameters:
        case EvmParameters() as parameters:
            return parameters
        case _:
            raise ValueError(f"{network.code} is no EVM network")
