"""A toy chain in memory, honest and whole: blocks, holes, accounts or coins, several outputs, windows, a pool, reorgs.

It keeps the rules of its family by itself, so that a gateway that breaks one is refused as a real chain would: a claim
is used once, nothing is spent that is not there, a signature fits its key, a window ends. Nothing happens by itself; a
test mines. It ships nowhere.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Claim = Literal["counter", "coins", "window"]
Outpoint = tuple[str, int]

GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
BLOCK_S = 1
# Blocks after its reference in which a transaction of the window kind may be included.
WINDOW = 6
NATIVE = "TOY"
# The price of receiving, for an address that is charged.
RECEIVING = 3
# The coin in an account of a token, which goes to who pays for closing it.
RENT = 5_000
# Names without keys: the source of outside money, and the miner that is paid for a block.
FAUCET, MINER = "faucet", "miner"
# Blocks, its own included, until a miner's coin may be spent.
REWARD_DEPTH = 6


class RefusedError(Exception):
    """The chain does not take a transaction; the word is what its nodes answer."""


@dataclass(frozen=True)
class Tx:
    """A transaction: who pays what to whom. `coins` name what is spent where the chain has coins."""

    sender: str
    outputs: tuple[tuple[str, str, int], ...]  # recipient, currency, units
    fee: int
    counter: int = -1
    coins: tuple[Outpoint, ...] = ()
    reference: int = -1
    signatures: tuple[tuple[str, str], ...] = ()  # public key, signature; in hex
    # Who signs too, pays the fee, and gets the rent of an account of a token that is emptied; '' for the sender.
    payer: str = ""
    # The last second at which a block includes it, since 1970; 0 for no end.
    until: int = 0

    def body(self) -> bytes:
        """Return what is signed, and what the id is the hash of."""
        return json.dumps(
            [self.sender, self.outputs, self.fee, self.counter, self.coins, self.reference, self.payer, self.until],
            separators=(",", ":"),
        ).encode()

    @property
    def cost(self) -> int:
        """Return what its payer loses by it: the fee, less the rent of the account that it closes."""
        closes = self.payer and any(currency != NATIVE for _, currency, _ in self.outputs)
        return self.fee - RENT if closes else self.fee

    @property
    def is_from_outside(self) -> bool:
        return self.sender in {FAUCET, MINER}

    @property
    def txid(self) -> str:
        return hashlib.sha256(self.body()).hexdigest()

    @property
    def mark(self) -> str:
        """Return by what its transfers are known where they have ids of their own."""
        return hashlib.sha256(b"mark" + self.body()).hexdigest()

    @property
    def raw(self) -> bytes:
        return json.dumps([self.body().decode(), self.signatures]).encode()

    @classmethod
    def read(cls, raw: bytes) -> Tx:
        body, signatures = json.loads(raw)
        sender, outputs, fee, counter, coins, reference, payer, until = json.loads(body)
        return cls(
            sender=sender, outputs=tuple((r, c, u) for r, c, u in outputs), fee=fee, counter=counter,
            coins=tuple((t, v) for t, v in coins), reference=reference,
            signatures=tuple((k, s) for k, s in signatures), payer=payer, until=until,
        )  # fmt: skip


def address_of(public: bytes) -> str:
    """Return the address of a key."""
    return "toy" + hashlib.sha256(public).hexdigest()[:40]


def signers_of(tx: Tx) -> set[str]:
    """Return the addresses whose keys signed a transaction. Raises RefusedError for what none of them signed."""
    collected = set()
    for key, signature in tx.signatures:
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), tx.body())
        except InvalidSignature:
            raise RefusedError("bad signature") from None
        collected.add(address_of(bytes.fromhex(key)))
    return collected


@dataclass(frozen=True)
class ToyBlock:
    """A block; `failed` names the outputs that had no effect, as (txid, place)."""

    height: int
    hash: str
    parent_height: int
    parent_hash: str
    time: datetime
    # The number of blocks up to it: heights have holes.
    count: int
    txs: tuple[Tx, ...] = ()
    failed: frozenset[tuple[str, int]] = frozenset()
    branch: int = 0
    # The coin that it took from recipients, (txid, address, units).
    charged: tuple[tuple[str, str, int], ...] = ()

    def seal(self) -> str:
        """Return the hash that a block of this content has: it names every transaction and what had no effect."""
        facts = (
            self.height, self.parent_height, self.parent_hash, self.time.isoformat(), self.count, self.branch,
            self.charged,
        )  # fmt: skip
        return hashlib.sha256(f"{facts} {[tx.txid for tx in self.txs]} {sorted(self.failed)}".encode()).hexdigest()

    def sealed(self) -> ToyBlock:
        """Return the block with the hash of its content."""
        return replace(self, hash=self.seal())


@dataclass
class State:
    """The state of the chain after its last block."""

    balances: dict[tuple[str, str], int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    coins: dict[Outpoint, tuple[str, int, int]] = field(default_factory=dict)  # address, units, height
    included: dict[str, int] = field(default_factory=dict)
    # Of miners: in which block each was given.
    rewards: dict[str, int] = field(default_factory=dict)

    def copy(self) -> State:
        return State(
            dict(self.balances), dict(self.counters), dict(self.coins), dict(self.included), dict(self.rewards)
        )


class ToyChain:
    """One network. hole_every: every height that it divides never gets a block. first: the height of the first."""

    def __init__(
        self, *, claim: Claim, outputs_max: int = 1, hole_every: int = 0, first: int = 1,
        began: datetime = GENESIS, name: str = "toy", block_s: float = BLOCK_S,
    ) -> None:  # fmt: skip
        self.claim, self.outputs_max, self._hole_every = claim, outputs_max, hole_every
        self._block_s = block_s
        self.name, self._began = name, began
        self.fee = 1_000
        self.blocks = [ToyBlock(first, "", first - 1, "", began, 1).sealed()]
        self.states = [State()]
        self.pool: dict[str, Tx] = {}
        # Of what waits, what no block takes yet.
        self.withheld: set[str] = set()
        # Recipients of whom an output has no effect, though the others of its transaction have.
        self.deaf: set[str] = set()
        # Recipients that pay RECEIVING for whatever they get.
        self.charged: set[str] = set()
        self.branch = 0
        self.lock = threading.RLock()
        # The height that the chain itself calls final, if it has finality.
        self.final_height: int | None = None
        self._faucets = 0

    # For tests ----------------------------------------------------------------------------------------------

    def mine(self, count: int = 1) -> int:
        """Mine blocks with what the pool holds and the rules allow; return the height of the last."""
        with self.lock:
            for _ in range(count):
                self._mine()
            return self.blocks[-1].height

    def reorg(self, depth: int, *, keeps: bool = True) -> None:
        """Remove the last blocks. keeps: their transactions wait again; else all nodes forget them."""
        with self.lock:
            gone = self.blocks[-depth:]
            del self.blocks[-depth:], self.states[-depth:]
            self.branch += 1
            for block in gone if keeps else ():
                self.pool |= {tx.txid: tx for tx in block.txs}

    def pass_time(self, seconds: int) -> None:
        """Let the next blocks be later by this time."""
        self._began += timedelta(seconds=seconds)

    def faucet(self, recipient: str, units: int, currency: str = NATIVE) -> str:
        """Let money come from outside in the next block."""
        return self.give((recipient, currency, units))

    def give(
        self, *outputs: tuple[str, str, int], sender: str = FAUCET, fee: int = 0, coins: tuple[Outpoint, ...] = ()
    ) -> str:
        """Pay outside money to several recipients in one transaction of the next block.

        coins: foreign coins that it spends; this chain keeps no account of them.
        """
        self._faucets += 1
        tx = Tx(sender, outputs, fee, counter=self._faucets, coins=coins)
        self.pool[tx.txid] = tx
        return tx.txid

    # For nodes ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.states[-1]

    @property
    def head(self) -> ToyBlock:
        return self.blocks[-1]

    def at(self, height: int) -> ToyBlock | None:
        """Return the block of a height; None for a hole, and above the head."""
        return next((block for block in reversed(self.blocks) if block.height == height), None)

    def is_hole(self, height: int) -> bool:
        return self.at(height) is None and height < self.head.height

    def counter(self, sender: str, height: int | None = None) -> int:
        """Return how many transactions of a sender are included, up to a height."""
        states_by_block = zip(self.blocks, self.states, strict=True)
        after = [state for block, state in states_by_block if height is None or block.height <= height]
        return after[-1].counters.get(sender, 0) if after else 0

    def units_at(self, address: str, currency: str = NATIVE) -> int:
        """Return what an address holds after the last block."""
        if self.claim == "coins":
            return sum(units for owner, units, _ in self.state.coins.values() if owner == address)
        return self.state.balances.get((address, currency), 0)

    def send(self, raw: bytes) -> str:
        """Take a transaction into the pool and return its id. Raises RefusedError with the chain's word."""
        tx = Tx.read(raw)
        with self.lock:
            if tx.txid in self.state.included:
                raise RefusedError("already included")
            if tx.txid in self.pool:
                return tx.txid
            self._check(tx, self.state, self.head)
            rivals = [other for other in self.pool.values() if self._share(tx, other)]
            if any(tx.fee <= other.fee for other in rivals):
                raise RefusedError("underpriced")
            for other in rivals:
                del self.pool[other.txid]
            self.pool[tx.txid] = tx
            return tx.txid

    def force(self, raw: bytes) -> None:
        """Take a transaction in place of whatever waits with its claim, as who makes a block is free to do."""
        tx = Tx.read(raw)
        with self.lock:
            self.pool = {txid: other for txid, other in self.pool.items() if not self._share(tx, other)}
            self.pool[tx.txid] = tx

    # Within -------------------------------------------------------------------------------------------------

    def _share(self, a: Tx, b: Tx) -> bool:
        """Return whether two transactions have a claim in common, so that one of them at most is included."""
        if not {FAUCET, MINER}.isdisjoint((a.sender, b.sender)):
            return False
        if self.claim == "coins":
            return not set(a.coins).isdisjoint(b.coins)
        return self.claim == "counter" and (a.sender, a.counter) == (b.sender, b.counter)

    def _check(self, tx: Tx, state: State, upon: ToyBlock) -> None:
        """Refuse what breaks the rules, whether it waits or is to be included upon a block."""
        if tx.is_from_outside:
            return
        if not 1 <= len(tx.outputs) <= self.outputs_max + (self.claim == "coins"):
            raise RefusedError("too many outputs")
        if any(units < 0 for _, _, units in tx.outputs) or tx.fee < self.fee:
            raise RefusedError("fee too low" if tx.fee < self.fee else "negative")
        signers = signers_of(tx)
        if self.claim == "coins":
            self._check_coins(tx, state, signers, upon.height + 1)
            return
        if signers != {tx.sender, tx.payer} - {""}:
            raise RefusedError("bad signature")
        if self.claim == "counter" and tx.counter < state.counters.get(tx.sender, 0):
            raise RefusedError("counter used")
        if self.claim == "window" and not 0 <= upon.count - tx.reference < WINDOW:
            raise RefusedError("expired")
        if tx.until and self._time_after(upon).timestamp() > tx.until:
            raise RefusedError("expired")
        if any(state.balances.get(key, 0) < units for key, units in _taken(tx).items()):
            raise RefusedError("unfunded")

    def _check_coins(self, tx: Tx, state: State, signers: set[str], height: int) -> None:
        if not tx.coins or len(set(tx.coins)) != len(tx.coins):
            raise RefusedError("no coins")
        if any(coin not in state.coins for coin in tx.coins):
            raise RefusedError("coin spent or unknown")
        if any(height - state.rewards.get(txid, -REWARD_DEPTH) < REWARD_DEPTH for txid, _ in tx.coins):
            raise RefusedError("immature")
        if {state.coins[coin][0] for coin in tx.coins} != signers:
            raise RefusedError("bad signature")
        brought = sum(state.coins[coin][1] for coin in tx.coins)
        if brought != sum(units for _, _, units in tx.outputs) + tx.fee:
            raise RefusedError("sums differ")

    def _time_after(self, block: ToyBlock) -> datetime:
        """Return the time of the next block upon one."""
        return self._began + timedelta(seconds=self._block_s * (block.count + 1))

    def _mine(self) -> None:
        last, state = self.head, self.state.copy()
        height = last.height + 1
        if self._hole_every and height % self._hole_every == 0:
            height += 1
        taken: list[Tx] = []
        failed: set[tuple[str, int]] = set()
        charged: list[tuple[str, str, int]] = []
        for tx in sorted(self.pool.values(), key=lambda tx: (tx.counter, tx.txid)):
            if tx.txid in self.withheld:
                continue
            if self.claim == "counter" and not tx.is_from_outside and tx.counter > state.counters.get(tx.sender, 0):
                continue
            try:
                self._check(tx, state, last)
            except RefusedError:
                del self.pool[tx.txid]
                continue
            failed |= self._apply(tx, state, height)
            charged += self._charge(tx, state, failed)
            taken.append(tx)
            del self.pool[tx.txid]
        self.states.append(state)
        self.blocks.append(
            ToyBlock(
                height, "", last.height, last.hash, self._time_after(last),
                last.count + 1, tuple(taken), frozenset(failed), self.branch, tuple(charged),
            ).sealed()
        )  # fmt: skip

    def _apply(self, tx: Tx, state: State, height: int) -> set[tuple[str, int]]:
        failed: set[tuple[str, int]] = set()
        state.included[tx.txid] = height
        if tx.sender == MINER:
            state.rewards[tx.txid] = height
        for coin in () if tx.is_from_outside else tx.coins:
            del state.coins[coin]
        if not tx.is_from_outside and self.claim != "coins":
            state.counters[tx.sender] = state.counters.get(tx.sender, 0) + 1
            _add(state, tx.payer or tx.sender, NATIVE, -tx.cost)
        for place, (recipient, currency, units) in enumerate(tx.outputs):
            if self.claim == "coins":
                state.coins[tx.txid, place] = (recipient, units, height)
            elif recipient in self.deaf:
                failed.add((tx.txid, place))
            else:
                if not tx.is_from_outside:
                    _add(state, tx.sender, currency, -units)
                _add(state, recipient, currency, units)
        return failed

    def _charge(self, tx: Tx, state: State, failed: set[tuple[str, int]]) -> list[tuple[str, str, int]]:
        """Take from recipients what receiving costs them, as far as they have it."""
        came = dict.fromkeys(
            recipient for at, (recipient, _, _) in enumerate(tx.outputs) if (tx.txid, at) not in failed
        )
        charged = []
        for recipient in came:
            units = min(RECEIVING, state.balances.get((recipient, NATIVE), 0)) if recipient in self.charged else 0
            if units:
                _add(state, recipient, NATIVE, -units)
                charged.append((tx.txid, recipient, units))
        return charged


def _taken(tx: Tx) -> dict[tuple[str, str], int]:
    document = {(tx.payer or tx.sender, NATIVE): tx.fee}
    for _, currency, units in tx.outputs:
        document[tx.sender, currency] = document.get((tx.sender, currency), 0) + units
    return document


def _add(state: State, address: str, currency: str, units: int) -> None:
    state.balances[address, currency] = state.balances.get((address, currency), 0) + units
