"""The rigs of the toy family: one for each kind of claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar
from uuid import uuid4

from actors.signer import held_keys
from chains.base import ProviderError
from chains.spending import KeyRef
from models.db.base import app_now
from models.invoices.rows import InvoiceRow
from tests.chains.contract.rig import PATIENCE_S, Fake, Payment, Rig, stored
from tests.chains.toy.chain import MINER, NATIVE, REWARD_DEPTH, WINDOW, Claim, ToyBlock, ToyChain, Tx
from tests.chains.toy.nodes import NODES, ToyNode
from tests.chains.toy.other_claims import LIFE_S
from tests.chains.toy.plug import BLOCK_TIMES_MS, TOKEN, TRAITS
from tests.chains.toy.reader import SOON_FEE

USUAL_FEE = 1_000
SOMEBODY = "toy" + "b2" * 20


class ToyRig(Rig):
    """A toy network. Every provider is a node of the same chain."""

    claim: ClassVar[Claim]  # type: ignore[assignment]
    hole_every: ClassVar[int] = 0
    first: ClassVar[int] = 1

    def __init__(self, database: str) -> None:
        super().__init__(database)
        traits = TRAITS[self.code]
        self.chain = ToyChain(
            claim=self.claim, outputs_max=traits.outputs_max, hole_every=self.hole_every, first=self.first,
            began=app_now(), name=f"{self.code}-1", block_s=BLOCK_TIMES_MS.get(self.code, 1_000) / 1_000,
        )  # fmt: skip
        self.nodes: list[ToyNode] = []

    def urls(self, providers: int) -> list[str]:
        made = {f"http://{self.code}.test/{number}": ToyNode(self.chain) for number in range(providers)}
        self.nodes = list(made.values())
        NODES.update(made)
        return list(made)

    def mine(self, blocks: int = 1) -> None:
        self.chain.mine(blocks)

    def pay(self, to: str, units: int) -> Payment:
        txid = self.chain.faucet(to, units)
        return Payment(txid, self.chain.pool[txid])

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        self.chain.reorg(depth, keeps=False)
        for offset in range(depth):
            self.chain.pool |= {payment.txid: payment.again for payment, place in again if place == offset}
            self.chain.mine()

    def tip(self) -> int:
        return self.chain.head.height

    def pass_chain_time(self, seconds: int) -> None:
        self.chain.pass_time(seconds)

    def fakes(self) -> Mapping[str, Fake]:
        def give(*outputs: tuple[str, str, int]) -> object:
            return self.chain.give(*outputs)

        def drop(to: str) -> object:
            return self.chain.pool.pop(self.chain.faucet(to, self.price))

        document = {
            "nothing at all": Fake(lambda to: give((to, NATIVE, 0))),
            "a coin of the same name": Fake(lambda to: give((to, f"{TOKEN}s", self.price))),
            "beside another's": Fake(lambda to: give((SOMEBODY, NATIVE, self.price), (to, NATIVE, 7)), units=7),
            "two in one transaction": Fake(
                lambda to: give((to, NATIVE, 3), (SOMEBODY, NATIVE, 5), (to, NATIVE, 3)), units=6
            ),
            "waits in no block": Fake(drop),
        }
        if self.claim != "coins":
            document["without effect"] = Fake(self._fail)
            document["another coin"] = Fake(lambda to: give((to, TOKEN, self.price)))
        return document

    def _fail(self, to: str) -> None:
        self.chain.deaf.add(to)
        self.chain.faucet(to, self.price)

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def forge(number: int, change: Callable[[ToyBlock], ToyBlock], *, is_sealed: bool) -> None:
            self.nodes[number].forge(change, is_sealed=is_sealed)

        def without(to: str) -> Callable[[ToyBlock], ToyBlock]:
            return lambda block: replace(
                block, txs=tuple(tx for tx in block.txs if to not in {output[0] for output in tx.outputs})
            )

        def invented(to: str) -> Callable[[ToyBlock], ToyBlock]:
            height = self.tip() + 1
            tx = Tx("faucet", ((to, NATIVE, self.price),), 0, counter=-7)
            return lambda block: replace(block, txs=(*block.txs, tx)) if block.height == height else block

        def altered(to: str) -> Callable[[ToyBlock], ToyBlock]:
            def double(tx: Tx) -> Tx:
                return replace(tx, outputs=tuple((r, c, u * (2 if r == to else 1)) for r, c, u in tx.outputs))

            return lambda block: replace(block, txs=tuple(double(tx) for tx in block.txs))

        return {
            "hidden": lambda number, to: forge(number, without(to), is_sealed=True),
            "cut": lambda number, to: forge(number, without(to), is_sealed=False),
            "invented": lambda number, to: forge(number, invented(to), is_sealed=True),
            "altered": lambda number, to: forge(number, altered(to), is_sealed=True),
            "stuck": lambda number, _to: self.nodes[number].lag(1),
            "silent": lambda number, _to: self._fails(number, "nobody answers"),
            "429": lambda number, _to: self._fails(number, "too many requests"),
            "garbage": lambda number, _to: self._fails(number, "garbage"),
            "wrong chain": lambda number, _to: self.nodes[number].lies.update(identity=lambda _truth: "elsewhere"),
        }

    def _fails(self, number: int, failure: str) -> None:
        self.nodes[number].failure = failure

    def be_honest(self) -> None:
        for node in self.nodes:
            node.honest()

    def enrich(self) -> None:
        self.chain.faucet(self.hot, 1_000 * self.price)

    def units_at(self, address: str) -> int:
        return self.chain.units_at(address)

    def recipient(self) -> str:
        return "toy" + uuid4().hex + "00000000"

    def include(self, raw: bytes) -> None:
        self.chain.force(raw)
        self.mine()

    def forget_waiting(self) -> None:
        self.chain.pool.clear()

    def usurp(self, thief: str, units: int) -> bool:
        ours = next(tx for tx in self.chain.pool.values() if not tx.is_from_outside)
        unsigned = self._rival(ours, thief, units)
        keys, wallet = held_keys.keys().deriver(self.network).keyring(), KeyRef(address=self.hot, ordinal=None)
        signature = (keys.public(wallet).hex(), keys.sign(wallet, unsigned.body()).hex())
        self.include(replace(unsigned, signatures=(signature,)).raw)
        return self.claim != "window"

    def _rival(self, ours: Tx, thief: str, units: int) -> Tx:
        return replace(ours, outputs=((thief, NATIVE, units),), fee=self.chain.fee + 1, signatures=())

    def demand(self, *, is_absurd: bool) -> None:
        self.chain.fee = 10**9 if is_absurd else USUAL_FEE

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def lose_answers(self) -> None:
        def cut(_truth: str, _raw: bytes) -> str:
            raise ProviderError("the connection was lost")

        for node in self.nodes:
            node.lies["send"] = cut


class HolesRig(ToyRig):
    """A chain that skips heights."""

    def leave_hole(self) -> None:
        while (self.tip() + 1) % self.hole_every:
            self.mine()

    def gather(self) -> None:
        self.keep_and_follow()


class NumbersRig(HolesRig):
    """Accounts that count, with several outputs in a transaction."""

    currency = "TON"
    claim = "counter"
    hole_every = 5

    def refuse(self, address: str) -> None:
        self.chain.deaf.add(address)

    def say_dead(self, number: int) -> None:
        self.nodes[number].lies["counter"] = lambda truth, *_: truth + 1


class CounterRig(NumbersRig):
    """Numbers without an end."""

    code = "toycounter"
    lacks: ClassVar = {
        "pay_ripening": "nobody is paid for making blocks here",
        "freeze": "nobody issues this coin, who could freeze a holder",
        "share": "an address is one key's for good",
        "offer": "nobody is told what waits here",
        "pretend": "nobody is told what waits here",
        "outlive": "nothing ends by itself here",
    }

    def stall(self) -> None:
        self.pass_time(PATIENCE_S)


class SeqnoRig(NumbersRig):
    """Numbers that end, one spend at a time, and addresses that are charged for receiving."""

    code = "toyseqno"
    lacks: ClassVar = {
        "pay_ripening": "nobody is paid for making blocks here",
        "freeze": "nobody issues this coin, who could freeze a holder",
        "share": "an address is one key's for good",
        "offer": "nobody is told what waits here",
        "pretend": "nobody is told what waits here",
        "stall": "what ends is signed again, and nothing is offered more for",
    }

    def invoice(self) -> InvoiceRow:
        made = super().invoice()
        self.chain.charged |= {self.hot, stored(made)}
        return made

    def outlive(self) -> None:
        self.chain.pool.clear()
        self.pass_time(LIFE_S + 1)
        self.mine()


class WindowRig(HolesRig):
    """Accounts whose transactions end with a window."""

    code = "toywindow"
    currency = "SOL"
    claim = "window"
    hole_every = 3
    # Windows are counted in blocks, which are far fewer than the heights.
    first = 5_000_000
    lacks: ClassVar = {
        "pay_ripening": "nobody is paid for making blocks here",
        "freeze": "nobody issues this coin, who could freeze a holder",
        "share": "an address is one key's for good",
        "offer": "nobody is told what waits here",
        "pretend": "nobody is told what waits here",
        "refuse": "a spend has one output",
        "stall": "what expires is signed anew, and nothing is offered more for",
    }

    def outlive(self) -> None:
        self.chain.pool.clear()
        self.mine(WINDOW)

    def say_dead(self, number: int) -> None:
        self.nodes[number].lies["count"] = lambda truth: truth + 10 * WINDOW


class CoinsRig(ToyRig):
    """Coins, without a sender."""

    code = "toycoins"
    currency = "BTC"
    claim = "coins"
    lacks: ClassVar = {
        "leave_hole": "every height of this chain has a block",
        "refuse": "a transaction has its effect as a whole",
        "outlive": "nothing ends by itself here",
        "gather": "coins are spent where they lie",
        "freeze": "nobody issues this coin, who could freeze a holder",
        "share": "an address is one key's for good",
        "say_dead": "who spent a coin the scan alone tells, of blocks that their hashes prove",
    }

    def stall(self) -> None:
        self.pass_time(PATIENCE_S)

    def pay_ripening(self, to: str, units: int) -> int:
        self.chain.give((to, NATIVE, units), sender=MINER)
        return REWARD_DEPTH

    def stolen(self, ours: Tx, coin: tuple[str, int]) -> Tx:
        """Return a transaction by which a thief with the hot wallet's key gives one of its coins away."""
        units = self.chain.state.coins[coin][1] - self.chain.fee
        unsigned = replace(
            ours, outputs=((SOMEBODY, NATIVE, units),), fee=self.chain.fee, coins=(coin,), signatures=()
        )  # fmt: skip
        keys, wallet = held_keys.keys().deriver(self.network).keyring(), KeyRef(address=self.hot, ordinal=None)
        return replace(unsigned, signatures=((keys.public(wallet).hex(), keys.sign(wallet, unsigned.body()).hex()),))

    def offer(self, to: str, units: int, *, is_soon: bool = True, instead_of: Payment | None = None) -> Payment:
        coins = self.chain.pool.pop(instead_of.txid).coins if instead_of else ((uuid4().hex * 2, 0),)
        txid = self.chain.give((to, NATIVE, units), fee=SOON_FEE if is_soon else 0, coins=coins)
        self.chain.withheld.add(txid)
        return Payment(txid, self.chain.pool[txid])

    def take_in(self, payment: Payment) -> None:
        self.chain.withheld.discard(payment.txid)

    def offer_again(self, payment: Payment) -> None:
        self.chain.pool[payment.txid] = payment.again

    def take_out(self, payment: Payment) -> None:
        self.chain.withheld.add(payment.txid)
        self.reorg(1)
        self.offer_again(payment)

    def hide_waiting(self, number: int) -> None:
        self.nodes[number].lies["pool"] = lambda _truth: {}

    def pretend(self, number: int, to: str, units: int) -> None:
        tx = Tx("faucet", ((to, NATIVE, units),), SOON_FEE, counter=-9, coins=(("ff" * 32, 0),))
        self.nodes[number].lies["pool"] = lambda truth: {**truth, tx.txid: tx}

    def _rival(self, ours: Tx, thief: str, units: int) -> Tx:
        rest = sum(self.chain.state.coins[coin][1] for coin in ours.coins) - units - self.chain.fee - 1
        changed = super()._rival(ours, thief, units)
        return replace(changed, outputs=(*changed.outputs, (self.hot, NATIVE, rest)))
