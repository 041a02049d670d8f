"""Declares each family of chains: its traits, and the parameters in which its networks differ.

Callers ask for a trait and need not know the family. Parameters are a family's own: one object for each network, read
only by the family's code. All families' parameters share the interface of Parameters.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, cast

import msgspec

from core.addresses import solana
from core.catalogue.fields import CurrencyCode, Positive, Text

if TYPE_CHECKING:
    from core.catalogue.catalogue import Network

# Hexadecimal digits of a hash of 32 bytes.
HASH_DIGITS: Final = 64

Family = Literal["evm", "tron", "solana", "ton", "bitcoin"]
Claim = Literal["counter", "coins", "window"]

SERVED_FAMILIES: Final[frozenset[Family]] = frozenset({"evm", "bitcoin", "tron", "solana", "ton"})
"""The families whose networks this version reads and spends on. It knows the written addresses of all families."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The properties that all networks of a family share."""

    # The thing that only one transaction can claim: its sender's next number, coins, or just its own window. Only
    # chains and this module compare it; other callers ask one of the questions below.
    claim: Claim
    # Whether nodes publish transactions that are in no block yet.
    has_mempool: bool
    # Whether coin can arrive by a transfer that no block lists, so that the gateway also reads balances.
    has_hidden_transfers: bool
    # Whether a transfer names its sender.
    has_sender: bool
    # Whether a transfer may carry a text for its recipient.
    has_memo: bool
    # The most payouts in one spend.
    outputs_max: int
    # The most spends of one wallet that may wait for a block.
    in_flight_max: int
    # How long payouts that do not fill a spend wait for others to join them: since the last came, since the first.
    gather_s: int = 0
    gather_max_s: int = 0
    # Where the claim is a window, or a number that ends: a transaction signed now can be included this long after the
    # newest block. Of a number, none is signed that ends later than that from now.
    window_s: int = 0
    # The same in blocks, where the chain counts windows in them.
    window_blocks: int = 0
    # Whether the hot wallet signs sweeps too and pays for them, so that deposit addresses need no gas coin.
    has_cosigned_sweeps: bool = False
    # Whether the chain takes coin from an address without a spend, as rent or as gas for receiving.
    has_charges: bool = False
    # Whether the effects of a spend come one after another in several blocks. Its fate names the last that it shows.
    has_late_effects: bool = False
    # The number of block times after which the signer raises the offer of a spend that is in no block.
    patience_blocks: int = 6
    # Whether transaction ids are hexadecimal; these are stored in lower case. Elsewhere capitals matter.
    has_hex_txids: bool = True

    @property
    def has_counters(self) -> bool:
        """Return True if senders number their transactions, so that the signer allots the numbers."""
        return self.claim == "counter"

    @property
    def counters_end(self) -> bool:
        """Return True if a number is only claimed for a while, and is allotted again if no block took it by then."""
        return self.claim == "counter" and self.window_s > 0

    @property
    def spends_expire(self) -> bool:
        """Return True if time alone ends a spend that is in no block."""
        return self.has_windows or self.counters_end

    @property
    def notes_departures_by_counter(self) -> bool:
        """Return True if used counters show departures, which the scan reads before it records their block."""
        return self.claim == "counter"

    @property
    def notes_departures_by_sender(self) -> bool:
        """Return True if only a transaction's sender shows a departure."""
        return self.claim == "window"

    @property
    def has_windows(self) -> bool:
        """Return True if each attempt of a spend ends with a window of its own."""
        return self.claim == "window"

    @property
    def spends_coins(self) -> bool:
        """Return True if spends take coins, each as a whole, from the addresses where these lie."""
        return self.claim == "coins"

    @property
    def has_sweeps(self) -> bool:
        """Return True if payouts spend only the hot wallet's money, so that deposits are swept to it."""
        return self.claim != "coins"

    @property
    def funds_addresses(self) -> bool:
        """Return True if an address pays its own fees, so that the hot wallet can send it the gas coin it lacks."""
        return self.claim != "coins" and not self.has_cosigned_sweeps

    @property
    def has_unowned_coins(self) -> bool:
        """Return True if transfers to pool addresses without an owner count, since spends may take them."""
        return self.claim == "coins"

    @property
    def has_fee_per_deposit(self) -> bool:
        """Return True if each deposit adds a fee of its own to the spend that takes it."""
        return self.claim == "coins"

    @property
    def always_has_effect(self) -> bool:
        """Return True if a transaction in a block always had its effect, exactly and as a whole."""
        return self.claim == "coins"

    @property
    def resumes_on_new_block(self) -> bool:
        """Return True if blocks may be hours apart, so that stopped signing needs a block made after the stop."""
        return self.claim == "coins"


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
            window_blocks=150,
            has_cosigned_sweeps=True,
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
            window_s=120,
            has_charges=True,
            has_late_effects=True,
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
    """Return the traits of a network's family."""
    return TRAITS[network.family]


def claim_of(network: "Network") -> Claim:
    """Return the kind of claim that a network's transactions have, to be stored with them."""
    return traits_of(network).claim


def stored_txid(network: "Network", text: str) -> str:
    """Return a transaction id, as a person wrote it, in its stored form."""
    return text.lower() if traits_of(network).has_hex_txids else text


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="family"):
    """The parameters of one family's networks. The defaults here suit a family that has none."""

    # Base units of the gas coin in one unit of the family's fee caps.
    FEE_CAP_UNIT: ClassVar[int] = 1
    # Another name of <NETWORK>_FEE_CAP, as the end of a variable's name; "" for none.
    FEE_CAP_ALIAS: ClassVar[str] = ""
    # Settings that only networks of this family have, by the ends of their names.
    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    # Those options that are whole numbers and read only by the family's code, with the highest value of each.
    FIGURES: ClassVar[Mapping[str, int]] = MappingProxyType({})
    # The highest fee cap that an operator may set, in the unit of the family's caps.
    FEE_CAP_MAX: ClassVar[int] = 10**9
    # The identity of a development chain; "" if it has the identity of the main one.
    DEVELOPMENT_IDENTITY: ClassVar[str] = ""

    @property
    def family(self) -> Family:
        """Return the family whose parameters these are."""
        return cast("Family", self.__struct_config__.tag)

    @property
    def fee_cap(self) -> int | None:
        """Return the highest offer for a unit of the family's measure, unless the operator sets another cap."""
        return None

    @property
    def payout_measure_max(self) -> int:
        """Return the amount of the family's measure that the dearest payout is assumed to take."""
        return 0

    def in_development(self) -> Self:
        """Return the parameters of the chain that replaces this one in development."""
        return self

    def problems(  # Those of EVM networks use what they are given.
        self,
        identity: str,
        gas_currency: str,  # noqa: ARG002
        currencies: frozenset[str],  # noqa: ARG002
    ) -> Iterator[str]:
        """Yield the contradictions between these parameters and a network's identity, gas coin and coins."""
        if problem := self.problem_of(identity):
            yield problem

    def problem_of(self, identity: str) -> str:  # noqa: ARG002  families without a form have none
        """Return the reason why no network of the family has this identity, or ""."""
        return ""


class EvmParameters(Parameters, frozen=True, kw_only=True, tag="evm"):
    """The parameters of an EVM network. Its identity is the chain id, in decimal. The measure of fees is gas."""

    FEE_CAP_UNIT: ClassVar[int] = 10**9
    FEE_CAP_MAX: ClassVar[int] = 2_000
    FEE_CAP_ALIAS: ClassVar[str] = "_GAS_CAP_GWEI"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"_GAS_CAP_GWEI", "_SANCTIONS_ORACLE"})

    # The highest offer for a unit of gas.
    gas_cap_gwei: Positive
    # The gas assumed for a transfer of the gas coin between our own addresses, whether or not that coin is offered for
    # payments. A payout may go to a contract, and is charged for transfer_gas.
    coin_gas: Positive
    # Whether blocks have a base fee, so that offers name a price and a tip (EIP-1559) instead of a price alone.
    has_base_fee: bool
    # A rollup's contract that returns the cost of posting a transaction's data, which comes on top of its gas.
    data_fee_oracle: Text | None
    # The gas charged as the fee of one payout, by coin.
    transfer_gas: Mapping[CurrencyCode, Positive]

    def __post_init__(self) -> None:
        """Make the figures as immutable as the rest."""
        msgspec.structs.force_setattr(self, "transfer_gas", MappingProxyType(dict(self.transfer_gas)))

    @property
    def fee_cap(self) -> int:
        """Return the highest offer for a unit of gas, in gwei."""
        return self.gas_cap_gwei

    @property
    def payout_measure_max(self) -> int:
        """Return the gas of the dearest payout."""
        return max(self.transfer_gas.values(), default=self.coin_gas)

    def in_development(self) -> Self:
        """Return the parameters of a development chain, which is never a rollup."""
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
    """The parameters of a TRON network. Its identity is the first block's id. The measure of fees is a transaction."""

    FEE_CAP_UNIT: ClassVar[int] = 10**6
    FEE_CAP_MAX: ClassVar[int] = 10_000
    DEVELOPMENT_IDENTITY: ClassVar[str] = "0000000000000000a1d23bd2b36cae3ff1fdbdc8faa92d3de7ac08fc7e82b58d"

    # The highest cost of one transaction, in TRX.
    fee_cap_trx: Positive
    # The energy charged as the fee of one payout, by token, for a recipient that has never held the token.
    transfer_energy: Mapping[CurrencyCode, Positive]
    # The energy assumed for a sweep, by token: its recipient, the hot wallet, holds the token already.
    sweep_energy: Mapping[CurrencyCode, Positive]

    def __post_init__(self) -> None:
        """Make the figures as immutable as the rest."""
        for name in ("transfer_energy", "sweep_energy"):
            msgspec.structs.force_setattr(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def fee_cap(self) -> int:
        """Return the highest cost of one transaction, in TRX."""
        return self.fee_cap_trx

    @property
    def payout_measure_max(self) -> int:
        """Return 1: a payout is one transaction."""
        return 1

    def problems(self, identity: str, gas_currency: str, currencies: frozenset[str]) -> Iterator[str]:
        """Say what contradicts the network."""
        if len(identity) != HASH_DIGITS or set(identity) - set("0123456789abcdef") or identity.strip("0") == "":
            yield "its identity is no block's id"
        for figures in (self.transfer_energy, self.sweep_energy):
            for currency in (currencies - {gas_currency}) ^ figures.keys():
                yield f"{currency} is not offered there, or has no figure of energy"


class SolanaParameters(Parameters, frozen=True, kw_only=True, tag="solana"):
    """The parameters of a Solana cluster. Its identity is the genesis hash. The measure of fees is a transaction."""

    # Ten SOL.
    FEE_CAP_MAX: ClassVar[int] = 10**10
    DEVELOPMENT_IDENTITY: ClassVar[str] = "FtFyWSdB17dT6mCPHf5raaNAJoKqm1EXAfFmLPp7VN7S"

    # The highest cost of one transaction, in lamports, rent of the recipient's token account included.
    fee_cap_lamports: Positive

    @property
    def fee_cap(self) -> int:
        """Return the highest cost of one transaction, in lamports."""
        return self.fee_cap_lamports

    @property
    def payout_measure_max(self) -> int:
        """Return 1: a payout is one transaction."""
        return 1

    def problem_of(self, identity: str) -> str:
        """Return the reason why no network of the family has this identity, or ""."""
        return "" if solana.stored(identity) is not None else "its identity is no block's hash"


def _is_hash(text: str) -> bool:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return len(raw) == HASH_DIGITS // 2 and base64.b64encode(raw).decode() == text


class TonParameters(Parameters, frozen=True, kw_only=True, tag="ton"):
    """The parameters of a TON network. Its identity is the zero state's root hash. The measure of fees is a payout."""

    # A hundred coins.
    FEE_CAP_MAX: ClassVar[int] = 10**11
    DEVELOPMENT_IDENTITY: ClassVar[str] = "1bLr4jNLaseAV6gBhD6QyvsvY8JhnKZOZ/gxaUXAqkA="

    # Whether addresses are shown with the flag of a test network, and read with it.
    is_test: bool
    # The highest cost of one payout, in base units of the coin, with all that goes along with jettons.
    fee_cap_units: Positive

    @property
    def fee_cap(self) -> int:
        """Return the highest cost of one payout, in base units of the coin."""
        return self.fee_cap_units

    @property
    def payout_measure_max(self) -> int:
        """Return 1: the cap is for one payout."""
        return 1

    def problem_of(self, identity: str) -> str:
        """Return the reason why no network of the family has this identity, or ""."""
        return "" if _is_hash(identity) else "its identity is no hash in base64"

    def in_development(self) -> Self:
        """Return the parameters of a development chain, which is a test network."""
        return msgspec.structs.replace(self, is_test=True)


class BitcoinParameters(Parameters, frozen=True, kw_only=True, tag="bitcoin"):
    """The parameters of a bitcoin network. Its identity is the hash of the genesis block; regtest has one too."""

    DEVELOPMENT_IDENTITY: ClassVar[str] = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
    FEE_CAP_MAX: ClassVar[int] = 2_000
    # The highest fee rate at which small coins are joined, in satoshi for a virtual byte; 0 for never.
    JOIN: ClassVar[str] = "_JOIN_SAT_VB"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({JOIN})
    FIGURES: ClassVar[Mapping[str, int]] = MappingProxyType({JOIN: FEE_CAP_MAX})
    # The size with one of our coins, a recipient of the longest kind, and change.
    PAYOUT_VBYTES: ClassVar[int] = 153

    # The chain whose prefix and versions the addresses have.
    chain: Literal["main", "regtest"]
    # The highest offer, and the highest rate at which small coins are joined, in satoshi for a virtual byte.
    fee_cap_sat_vb: Positive
    join_sat_vb: Positive

    @property
    def fee_cap(self) -> int:
        """Return the highest offer for a virtual byte, in satoshi."""
        return self.fee_cap_sat_vb

    @property
    def payout_measure_max(self) -> int:
        """Return the virtual bytes of a spend with a single payout."""
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
