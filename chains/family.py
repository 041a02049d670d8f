"""Declares the interfaces that every family of chains implements. Used by actors.

Each family implements them once; chains.registry finds them. What only one family needs is not declared here.
The values are those of chains.base and chains.spending.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from chains.base import (
    Agreement,
    Balance,
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
    Total,
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
    """Reads one network. Every method may raise ProviderError, and BudgetSpentError inside a budget.

    Each is bounded in time and safe to call from threads.
    """

    @property
    def providers(self) -> int:
        """Return the number of different providers. With a single one no second opinion is possible."""
        ...

    @property
    def answering(self) -> int:
        """Return the number of providers that reported their head within the last minute."""
        ...

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Limit the requests and the seconds of a `with` block; past the limit every call raises BudgetSpentError."""
        ...

    def identify(self) -> Sequence[str | ProviderError]:
        """Return the chain that each provider reports to serve, as the catalogue names it, in the providers' order."""
        ...

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the features that each provider lacks, a line for each, in the providers' order; empty if complete."""
        ...

    def head(self) -> int:
        """Return the newest height. On chains that skip heights it may be a skipped one."""
        ...

    def block(self, height: int) -> Block | Skipped | None:
        """Return the header at a height, SKIPPED if the chain skipped it, or None if the chain is not there yet."""
        ...

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the blocks above a height with their transfers to us, in order; empty at the head.

        Returns the next block, or many while the head is far away; skipped heights are passed over. The reader asks
        `ours` about every recipient of an offered asset, once for each provider that it tries. A block may be left out
        if it holds nothing for us and is too deep to be replaced.
        whole: leave out no block.
        upon: the hash of the block at `after`. If the next block names another parent, it is accepted only if its
        provider has that parent below it; otherwise the reader asks the next provider.
        """
        ...

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | Skipped | None:
        """Return a block as scan() does, read by another method and, if possible, from another provider.

        but_by: the mark of the provider that returned it first; it is not asked again if there are others. Returns None
        if none of the others has the block yet.
        """
        ...

    def final_height(self) -> int | None:
        """Return the newest height that the chain itself calls final; None if the chain declares none."""
        ...

    def locate(self, txid: str) -> int | None:
        """Return the height of the block that includes a transaction, or None if no block is known."""
        ...

    def second_opinion(self, recorded: Recorded) -> Agreement:
        """Count the providers that confirm a recorded deposit; each is asked for the transaction itself."""
        ...

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Count the providers that have this block. Lagging ones are left out; those in the minority are asked last."""
        ...

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return the balances of places after the named block, or after a newer one if no node keeps old balances.

        witnesses: how many providers have to report each balance, if there are that many. Raises DisagreementError if
        too few report it, or if as many report another.
        """
        ...

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of a payout and of a sweep, for each coin of this network.

        cap_units: the highest fee ever offered, in the family's own measure.
        """
        ...


class HiddenReader(Reader, Protocol):
    """Reads a network on which coin may arrive by calls that no block lists. For families with has_hidden_transfers."""

    def reread(
        self, height: int, ours: Ours, *, but_by: str = "", last: str = "", block_hash: str = ""
    ) -> BlockScan | Skipped | None:
        """Return a block as Reader.reread() does.

        last: the mark of a provider to ask only if no other answers. block_hash: of the only block that is wanted; a
        provider that shows another one contradicts it, and the next one is asked.
        """
        ...

    def balance(self, address: str, block_hash: str, *, last: str = "") -> Balance:
        """Return an address's balance of the network's own coin after a block, as one provider shows it.

        last: the mark of a provider to ask only if no other answers.
        """
        ...

    def internal_transfers(self, block: Block, recipient: str) -> tuple[Transfer, ...]:
        """Return the coin that contracts passed on to an address in a block; empty if no provider traces calls."""
        ...

    def coverage(self, total: Total) -> Agreement:
        """Count the providers whose balance covers a total, and those whose balance or block contradicts it."""
        ...

    def listing(self, recorded: Recorded) -> Agreement:
        """Count the providers that have a deposit's block with that payment of coin, and those that have it without.

        Those that have another block, or cannot answer, are left out. A transaction with another recipient or amount,
        or that failed, is no such payment.
        """
        ...


class MempoolReader(Reader, Protocol):
    """Reads a network that publishes transactions before a block includes them. For families with has_mempool."""

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        """Return transfers to us that are in no block, a bounded portion, and the known ones that are gone.

        known: the recorded sightings, by transaction, each with its recorded `is_soon`. The reader returns sightings
        that are not known, and known ones whose `is_soon` has changed. A sighting is returned again until the caller
        passes it as known, so that none is lost if the caller fails to record it.
        """
        ...


class DepartureReader(Reader, Protocol):
    """Reads transactions that left our addresses without a row. Every family's reader is one."""

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction in a block that spent from our addresses; None if nothing proves who signed it.

        The reader checks that the bytes hash to the id and, if they name a sender, that they carry his signature.
        sender: our address that signed it, where several may sign: its loss counts. '' if unknown.
        Raises ProviderError if no node has it in this block, and DisownedError if the node that reported it may have
        invented it.
        """
        ...


class InclusionReader(DepartureReader, Protocol):
    """Judges inclusions on a network where time ends spends. For families whose spends expire."""

    def inclusions(self, block: Block, txids: Collection[str]) -> Mapping[str, Agreement]:
        """Count the providers that have this block with each transaction, and those that have it without.

        Providers that have another block, or cannot answer, are left out.
        """
        ...


class CounterReader(DepartureReader, Protocol):
    """Reads a network whose senders number their transactions. For families that note departures by counter."""

    def distrust(self, read_by: str, problem: str) -> None:
        """Pause the provider with this mark, because others contradict a block that it returned."""
        ...

    def used_counters(self, sender: str, height: int) -> int:
        """Return how many counters one of our addresses used up to a block; it starts a search.

        The median of the providers' answers, the lower of two.
        """
        ...

    def counter_heights(self, sender: str, counter: int, low: int, high: int) -> Sequence[int]:
        """Return the blocks above `low`, at most `high`, in which providers say that a counter was used.

        Each block once, the median first; the block itself confirms it. Raises ProviderError also if no node keeps the
        state of old blocks.
        """
        ...


# Keys ----------------------------------------------------------------------------------------------------------------

# BIP-44 accounts. Deposit addresses and the hot wallet have separate ones, so that they never share an address.
DEPOSITS: Final = 0
HOT: Final = 1


def place_of(key: KeyRef) -> tuple[int, int]:
    """Return the account and the index of a key."""
    return (HOT, 0) if key.ordinal is None else (DEPOSITS, key.ordinal)


class Keyring(Protocol):
    """Signs for the addresses of one wallet. A private key is derived for one signature and never leaves."""

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign a message with one key, deterministically. Raises ValueError if the address is not that key's."""
        ...

    def public(self, key: KeyRef) -> bytes:
        """Return a public key. Raises ValueError if the address is not that key's."""
        ...


class Deriver(Protocol):
    """Derives all addresses of a wallet on a family's networks. Exists only in the signer and the command line."""

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form.

        account: DEPOSITS, where the index is the address's ordinal in the pool, or HOT, where it is always 0.
        """
        ...

    def keyring(self) -> Keyring:
        """Return the keyring that signs for these addresses."""
        ...


@runtime_checkable
class WatchedDeriver(Deriver, Protocol):
    """Derives addresses that a watcher can follow by a public key, without being able to sign."""

    def descriptors(self) -> Sequence[str]:
        """Return the descriptors for watchers: a line for the deposit addresses, and one for the hot wallet's."""
        ...


# Spending ------------------------------------------------------------------------------------------------------------


class Spender(Protocol):
    """Spends on one network, for its signer. Every method may raise ProviderError and is bounded in time."""

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft that can be signed for an intent now, if the wallet can pay for it.

        The wallet has to pay for it in addition to the spends that it has promised. cap_units: the highest fee for one
        unit of the family's own measure. Raises FeeTooHighError above it, SpendRefusedError if the chain says that the
        spend would have no effect, InsufficientCoinError if the wallet cannot pay, ValueError for more outputs than the
        family allows in one spend.
        """
        ...

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign a draft, without using the network. Deterministic: the same arguments give the same bytes.

        counter: the allotted number if the claim is a counter, else None. Raises ValueError if the wallet's key is
        another.
        """
        ...

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return a draft with the same claim that nodes accept in place of `before`; None if the family has none.

        If the claim is coins, the draft claims all coins of `before` and may claim further ones of the purse.

        Raises FeeTooHighError above the cap, and UnderfundedError with the missing amount if the wallet cannot pay.
        """
        ...

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every node. They count as taken if one node takes them."""
        ...

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts."""
        ...


class CounterSpender(Protocol):
    """Reads counters, for spenders of families with has_counters."""

    def next_counter(self, sender: str, *, ours: int) -> int:
        """Return the first number that no included transaction has used (EVM: the nonce of the latest block).

        ours: the first number that we have not used ourselves. A result above it takes the word of two providers, where
        there are two, else ProviderError is raised: a number that follows an invented one can never be included. A
        result below it is usual.
        """
        ...

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the first number that no transaction known to the nodes has; waiting transactions count.

        cautious: one node's word is enough for a number above ours. Otherwise it takes two nodes, where there are two,
        since pools differ and a lying node must not stop a wallet for ever. The result is never below ours.
        """
        ...


class CoinSpender(Protocol):
    """Reads spent coins, for spenders of families with spends_coins."""

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        """Return the coins that an attempt's bytes spend, as (txid, vout), without using the network."""
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

        block_hash: the last scanned block. Only a node whose newest block this is counts for "nothing waits": on any
        other node the transaction may have left the pool for a block. None: do not check.
        cautious: one node is enough for "something waits", and "nothing waits" takes two, where there are two.
        Otherwise it is the other way round.
        up_s: only a node that has run for this many seconds, or that does not report its uptime, counts for "nothing
        waits": a node may lose its pool when it starts. None: do not check.
        Raises ProviderError if too few nodes count.
        """
        ...


class TokenSpender(Protocol):
    """Tries token transfers, for spenders of families that have tokens."""

    def refuses(self, intent: Intent) -> bool:
        """Return whether the chain would refuse a token's transfer at any fee. Nothing is signed.

        Both answers take two providers, where there are two, and more than contradict them: the answer decides whether
        a coin is frozen or a payout fails. Raises ProviderError if too few answer, InsufficientCoinError if the wallet
        holds less of the token.
        """
        ...


class Treasurer(Protocol):
    """Plans how the gateway's own money moves on one network, for the signer. Judges no worth and sends nothing.

    Raises ChainError, FeeTooHighError above the cap, SpendRefusedError if the chain says that the step would revert,
    InsufficientCoinError and DisagreementError.
    """

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return the next step of a sweep from a deposit address. cap_units: as in Spender.draft."""
        ...

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return the step that lets one of our wallets pay for a higher offer, without using the network.

        The wallet has signed an attempt and lacks coin for the next. missing_units: the gas coin that it lacks for the
        offer and for the amount to move, in base units.
        """
        ...


class CoinTreasurer(Protocol):
    """Plans joins on a network whose money lies in coins, for the signer. Coins are spent where they lie."""

    def join(
        self, coins: Sequence[Coin], hot: KeyRef, *, cap_units: int, scanned: Scanned | None = None
    ) -> Sweep | Wait:
        """Return a join of many coins into one at the hot wallet if fees are low now, else a Wait for "dear".

        coins: those that no spend holds, the most valuable first. The join takes as many as fit into one transaction
        and are worth their fee, and has one output with their sum less the fee. Raises as Treasurer does.
        """
        ...


class Screener(Protocol):
    """Reads which addresses of one network are sanctioned."""

    def is_sanctioned(self, address: str) -> bool:
        """Return whether an address is listed. Raises ProviderError if that cannot be known now."""
        ...


# Families ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wiring:
    """Describes one network as this installation serves it; families build from it. The same object each time."""

    network: Network
    # The coins offered on the network.
    pairs: tuple[Pair, ...]
    # As core.settings.node_urls reads them, in the operator's order.
    urls: tuple[str, ...] = field(repr=False)
    timeout_s: float
    # The list of sanctioned addresses that the operator configured, if any. Its form is the family's own.
    sanctions_oracle: str | None
    # The operator's settings that only the family reads, by the end of each variable's name.
    options: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Holds the constructors that a family's module exports. Its traits are data, in core.catalogue."""

    reader: Callable[[Wiring], Reader]
    spender: Callable[[Wiring], Spender]
    treasurer: Callable[[Wiring], Treasurer | CoinTreasurer]
    # Returns None if the operator has configured no list.
    screener: Callable[[Wiring], Screener | None]
    # From the root secret's seed. Networks of a family have the same addresses.
    deriver: Callable[[bytes, Network], Deriver]
