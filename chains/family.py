"""Declares what a family of chains brings, and nothing that one of them alone needs. Spoken by actors.

Implemented once a family, found by chains.registry. The values are those of chains.base.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from chains.base import (
    Agreement,
    Block,
    BlockScan,
    Cost,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Sightings,
    Skipped,
    Snapshot,
    Transfer,
)
from chains.spending import (
    Attempt,
    Case,
    Coin,
    Departure,
    Draft,
    Fate,
    Intent,
    KeyRef,
    Lying,
    Offer,
    Purse,
    Scanned,
    Sending,
    Step,
    Sweep,
    Wait,
)
from core.catalogue.catalogue import Network, Pair


class Reader(Protocol):
    """One network. Every method may raise ProviderError; all are bounded in time and safe to call from threads."""

    @property
    def providers(self) -> int:
        """Return how many different providers there are; with one alone nothing can have a second opinion."""
        ...

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Bound what is asked inside the block; beyond it everything raises ProviderError."""
        ...

    def identify(self) -> Sequence[str | ProviderError]:
        """Return which chain each provider says that it serves, as the catalogue names chains, in their order."""
        ...

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return what each provider cannot be asked, in their order: a line for each, none where nothing is missing."""
        ...

    def head(self) -> int:
        """Return the newest height; where heights have holes, it may be one that is skipped."""
        ...

    def block(self, height: int) -> Block | Skipped | None:
        """Return a header, SKIPPED if the chain went over this height, or None if it has not come there yet."""
        ...

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the blocks above a height with their transfers to us, in order; none if there are none yet.

        That is the next block, or many while the head is far; what the chain skips is gone over. Ours is asked about
        every recipient of an offered asset, once for each provider that is tried. Where blocks are left out, nothing in
        them was for us, and they are too deep to be replaced. whole: none is.
        upon: the hash of the block at that height. A next block with another parent counts where its provider has that
        parent below it, else the next provider is asked.
        """
        ...

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | Skipped | None:
        """Return a block as scan() does, read in another way, and if possible by another provider.

        but_by: the mark of the provider that told it first, which is not asked again where there are others. None if
        none of those has the block yet.
        """
        ...

    def final_height(self) -> int | None:
        """Return the newest height that the chain itself calls final; None if it does not say."""
        ...

    def locate(self, txid: str) -> int | None:
        """Return the height at which a transaction is included, or None if it is not known."""
        ...

    def second_opinion(self, recorded: Recorded) -> Agreement:
        """Ask every provider for a deposit's transaction itself."""
        ...

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Ask every provider that keeps up whether it has this block; those in the minority are asked last."""
        ...

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return what places hold after a block: the one named, or where no node tells old balances, a newer one.

        witnesses: how many providers have to tell each of it, if there are as many. Raises DisagreementError if too few
        do, or as many tell something else.
        """
        ...

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return what a payout and a sweep of each coin of this network cost now.

        cap_units: the most that is ever offered, in the family's own measure.
        """
        ...


class HiddenReader(Reader, Protocol):
    """A network on which coin may arrive by what no block lists. Of families with has_hidden_transfers."""

    def balance(self, address: str, block_hash: str) -> int:
        """Return how much of the network's own coin an address holds after a block, in token units."""
        ...

    def internal_transfers(self, block: Block, recipient: str) -> tuple[Transfer, ...]:
        """Return coin that contracts passed on to an address in a block; none if no provider can tell."""
        ...


class MempoolReader(Reader, Protocol):
    """A network that tells everybody what is in no block yet. Of families with has_mempool."""

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        """Return transfers to us that stand in no block, a bounded portion of them, and which of the known are gone.

        known: of the transactions whose sightings are recorded, whether that says that they are soon. Told are those
        that are not known, and those of the known of which it is otherwise now. What was told and is still not known is
        told again, so that nothing depends on whether a caller came to write it down.
        """
        ...


class DepartureReader(Reader, Protocol):
    """A network that shows what left our addresses though no row knows it. Every family's reader is one."""

    def departure(self, txid: str, block: Block) -> Departure | None:
        """Return a transaction that took from one of our addresses in a block; None if nothing proves who signed it.

        Its bytes give its id, and where a sender is named they bear his signature. Raises ProviderError where no node
        has it in this block, and DisownedError where a node may tell of it though it is in none.
        """
        ...


class CounterReader(DepartureReader, Protocol):
    """A network whose senders count their transactions. Of families whose claim is a counter."""

    def distrust(self, read_by: str, problem: str) -> None:
        """Let the provider with this mark rest, because others contradict a block that it showed."""
        ...

    def used_counters(self, sender: str, height: int) -> int:
        """Return how many counters one of our addresses has used up to a block. One node's word: it starts a search."""
        ...

    def counter_height(self, sender: str, counter: int, low: int, high: int) -> int:
        """Return the block above `low`, at most `high`, in which a counter was used; the block itself shows it.

        One node's word. Raises ProviderError also where no node has the state of old blocks any more.
        """
        ...


# Keys ----------------------------------------------------------------------------------------------------------------

# BIP-44's accounts: deposit addresses and the hot wallet are two, so that one never turns up as the other.
DEPOSITS: Final = 0
HOT: Final = 1


class Keyring(Protocol):
    """Signs for the addresses of one wallet. A private key is derived for one signature and never leaves."""

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign what a family signs with one key, deterministically. ValueError if the address is not that key's."""
        ...

    def public(self, key: KeyRef) -> bytes:
        """Return a public key. ValueError if the address is not that key's."""
        ...


class Deriver(Protocol):
    """All addresses of one wallet on a family's networks. Exists in the signer and in the command line alone."""

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form. account: DEPOSITS, by their ordinal in the pool, or HOT, always 0."""
        ...

    def keyring(self) -> Keyring:
        """Return what signs for these addresses."""
        ...


@runtime_checkable
class WatchedDeriver(Deriver, Protocol):
    """Addresses that others can watch by a public key, without being able to sign."""

    def descriptors(self) -> Sequence[str]:
        """Return what such watchers take: a line for the deposit addresses, and one for the hot wallet's."""
        ...


# Spending ------------------------------------------------------------------------------------------------------------


class Spender(Protocol):
    """One network, for its signer. Every method may raise ProviderError; all are bounded in time."""

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return what can be signed for an intent now, if the wallet can pay for it beside what it has promised.

        cap_units: the most that is offered, for a unit of the family's own measure. Raises FeeTooHighError above it,
        SpendRefusedError where the chain says that it would have no effect, InsufficientCoinError where the wallet
        cannot pay, ValueError for more outputs than the family has in one spend.
        """
        ...

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign a draft; deterministic, so the same arguments give the same bytes. No network is used.

        counter: what was allotted where the claim is one, else None. ValueError if the wallet's key is another.
        """
        ...

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return a draft with the same claim that nodes accept in place of `before`; None where a family has none.

        Of coins it claims all of those of `before`, and may claim further ones of the purse.

        Raises FeeTooHighError above the cap, UnderfundedError with what is missing where the wallet cannot pay for it.
        """
        ...

    def send(self, raw: bytes) -> Sending:
        """Give bytes to the nodes: to every one of them, and taken by one is taken."""
        ...

    def fate(self, case: Case) -> Fate:
        """Find out where a spend stands, of all its attempts."""
        ...


class CounterSpender(Protocol):
    """What a spender of a family whose claims are counters tells besides."""

    def next_counter(self, sender: str, *, ours: int) -> int:
        """Return the first number that the chain has not used, of what is included (EVM: the nonce, at the latest).

        ours: the first that we have not used ourselves. What goes beyond takes two providers where there are as many,
        since a number that follows an invented one can never be included; ProviderError. Less than ours is usual.
        """
        ...

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the first number that no transaction has of which nodes know, those that wait for a block included.

        cautious: one node's word is enough for more than ours; otherwise it takes two where there are as many, since
        pools differ and one that lies must not stop a wallet for ever. Never less than ours is told.
        """
        ...


class CoinSpender(Protocol):
    """What a spender of a family whose claims are coins tells besides."""

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        """Return the coins that an attempt's bytes spend, as (txid, vout). No network is used."""
        ...

    def waiting_spends(
        self,
        outpoints: Sequence[tuple[str, int]],
        *,
        block_hash: str | None,
        cautious: bool,
        up_s: int | None = None,
    ) -> frozenset[str]:
        """Return the transactions that spend some of these coins and wait for a block, as far as nodes know.

        block_hash: up to where the scan has come. Only whose newest block this is can say that nothing waits: another
        may have there, in a block, what his pool has no more. None: that is not in question. cautious: one node's word
        is enough that something waits, and that nothing does takes two where there are two; otherwise it is the other
        way round. up_s: only a node that has run for so long can say that nothing waits, or one that does not tell how
        long it has run: a pool may be lost when its node starts. None: that is not in question. Raises ProviderError
        where too few can tell.
        """
        ...


class TokenSpender(Protocol):
    """What a spender of a family that has tokens tells besides."""

    def refuses(self, intent: Intent) -> bool:
        """Return whether the chain would refuse a token's transfer, whatever it costs; nothing is signed by it.

        Either takes two providers' word where there are as many, and more than say otherwise: by the one a coin is
        frozen, by the other a payout fails. Raises ProviderError where too few tell it, InsufficientCoinError where the
        wallet holds less of the token.
        """
        ...


class Treasurer(Protocol):
    """One network, for the signer's treasury: how the gateway's own money moves. It judges no worth and sends nothing.

    Raises ProviderError, FeeTooHighError above the cap, SpendRefusedError where the chain says that it would revert,
    InsufficientCoinError and DisagreementError.
    """

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return the next step towards bringing home what lies at an address. cap_units: as Spender's."""
        ...

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return what helps a wallet of ours that has signed and cannot pay for a higher offer. No network is used.

        missing_units: of the gas coin, in base units, what it lacks for the offer and what it is to move.
        """
        ...


class CoinTreasurer(Protocol):
    """One network whose money lies in coins, for the signer's treasury: coins are spent where they lie."""

    def join(
        self, coins: Sequence[Coin], hot: KeyRef, *, cap_units: int, scanned: Scanned | None = None
    ) -> Sweep | Wait:
        """Return what makes one coin of many, at the hot wallet, where that is cheap now; else dear.

        coins: those that no spend holds, the most valuable first. It takes as many as fit into one transaction and are
        worth their fee, and has one output with what is left after that. Raises as Treasurer.
        """
        ...


class Screener(Protocol):
    """Whoever tells which addresses of one network are sanctioned."""

    def is_sanctioned(self, address: str) -> bool:
        """Return whether an address is listed. Raises ProviderError where that is not known."""
        ...


# What a family is ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wiring:
    """One network as this installation serves it: all that a family builds of. The same object each time."""

    network: Network
    # The coins that are offered on it.
    pairs: tuple[Pair, ...]
    # As core.settings.node_urls reads them, in the operator's order.
    urls: tuple[str, ...] = field(repr=False)
    timeout_s: float
    # What lists sanctioned addresses, where the operator has named it; what it is, the family says.
    sanctions_oracle: str | None
    # What the operator has set of the numbers that the family alone reads, by the end of each variable's name.
    options: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All that a family brings, as its module exports it; how it differs is data, in core.catalogue."""

    reader: Callable[[Wiring], Reader]
    spender: Callable[[Wiring], Spender]
    treasurer: Callable[[Wiring], Treasurer | CoinTreasurer]
    # None where nobody is named who could tell.
    screener: Callable[[Wiring], Screener | None]
    # Of the root secret's seed. Networks of a family have the same addresses.
    deriver: Callable[[bytes, Network], Deriver]
