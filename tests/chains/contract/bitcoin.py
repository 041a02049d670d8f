"""The rigs of the bitcoin family: a real bitcoind, and our own node, behind providers that lie over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar

from actors.signer import held_keys
from chains import registry
from chains.bitcoin.scripts import KEY_HASH, script_of
from chains.bitcoin.spends.terms import coin_offer
from chains.bitcoin.transactions import Tx, TxInput, TxOutput, read_hex
from chains.spending import Coin, Coins, Draft, Intent, KeyRef, Output
from core.settings.settings import load_settings
from devstack.bitcoin.buyer import new_address, unspents
from devstack.bitcoin.facade.blocks import make_block, subsidy_units
from models.db.base import rows
from tests.chains.contract.rig import PATIENCE_S, Fake, Payment, Rig
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, FEE_UNITS, MINER_ADDRESS, signed_by_buyer
from tests.peers.bitcoind.kept import KeptChain
from tests.peers.bitcoind.lying import LyingBitcoin
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN, HTML

COIN = 10**8
HOT_COINS = 12
# Of the hot wallet's coins, each.
HOT_UNITS = 45 * COIN
REWARD_DEPTH = 100
THEFT_FEE = 50_000
# Fees of a payment that no block includes soon, and of one that replaces another; and the rate of nodes then, for a
# thousand bytes: above the first fee, below all others.
LOW_FEE = 500
DEARER_FEE = 20_000
BUSY_RATE = "0.00010000"
CHAIN = "regtest"
FAILURES: Mapping[str, Raw | Refusal] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}


class BitcoinRig(Rig):
    """Bitcoin, where an invoice is paid in coins of its own."""

    code = "bitcoin"
    currency = "BTC"
    claim = "coins"
    flood = 250
    lacks: ClassVar = {
        "leave_hole": "every height of this chain has a block",
        "refuse": "a transaction has its effect as a whole",
        "outlive": "nothing ends by itself here",
        "gather": "coins are spent where they lie",
        "freeze": "nobody issues this coin, who could freeze a holder",
        "share": "an address is the hash of one key for good",
    }

    def __init__(self, database: str, chain: KeptChain, stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        # None while the node goes by its own clock.
        self._ahead_s: int | None = None
        self._ripening: list[tuple[str, int]] = []
        # Transactions that no block includes yet.
        self._withheld: set[str] = set()
        self.node = chain
        self.node.begin_anew()
        self.peers: list[LyingBitcoin] = []

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingBitcoin(self.node.url, key=f"provider-{number}"))
            for number in range(providers)
        ]
        return [peer.url for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        if self._ahead_s is not None:
            # A mock clock does not run by itself.
            self.pass_chain_time(0)
        if self._ripening:
            self._submit(self._ripening)
            self._ripening, blocks = [], blocks - 1
        if self._withheld:
            for number in range(blocks):
                self._generate(*([] if number else self._offered()))
        elif blocks:
            self.node.mine(blocks)

    def _offered(self) -> list[str]:
        """Return the waiting transactions that are not withheld, each after its parents."""
        waiting = self.node.ask("getrawmempool", True)
        waiting = {txid: shown for txid, shown in waiting.items() if txid not in self._withheld}
        return sorted(waiting, key=lambda txid: int(waiting[txid]["ancestorcount"]))

    def pay(self, to: str, units: int) -> Payment:
        raw = self.node.signed((to, units))
        return Payment(self.node.send(raw), raw)

    def pay_ripening(self, to: str, units: int) -> int:
        self._ripening.append((to, units))
        return REWARD_DEPTH

    def _submit(self, paid: Sequence[tuple[str, int]]) -> None:
        """Make a block whose reward pays these outputs, and the miner the rest."""
        height, parent = self.tip() + 1, self.node.ask("getbestblockhash")
        rest = subsidy_units(height) - sum(units for _, units in paid)
        rewards = [TxOutput(units=units, script=script_of(to, CHAIN)) for to, units in [*paid, (MINER_ADDRESS, rest)]]
        at = 1 + int(self.node.ask("getblockheader", parent)["time"])
        block = make_block(previous=parent, height=height, time=at, paid=rewards, txs=(), mark=b"reward")
        assert self.node.ask("submitblock", block.raw.hex()) is None
        assert self.tip() == height

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        self.node.reorg(depth, *((payment.again, place) for payment, place in again))

    def tip(self) -> int:
        return self.node.height()

    def pass_chain_time(self, seconds: int) -> None:
        self._ahead_s = (self._ahead_s or 0) + seconds
        self.node.ask("setmocktime", int(time.time()) + self._ahead_s)

    def enrich(self) -> None:
        for _ in range(HOT_COINS):
            self.pay(self.hot, HOT_UNITS)

    def stall(self) -> None:
        self.pass_time(PATIENCE_S)

    def units_at(self, address: str) -> int:
        return sum(coin.units for coin in unspents(self.node.rpc, address))

    def recipient(self) -> str:
        return new_address()

    def include(self, raw: bytes) -> None:
        self._generate(raw.hex())

    def _generate(self, *raws: str) -> None:
        """Make a block of these transactions alone; nodes would not relay some of them."""
        self.node.ask("generateblock", MINER_ADDRESS, list(raws))

    def forget_waiting(self) -> None:
        self.node.program.stop()
        for kept in self.node.program._folder.rglob("mempool.dat"):
            kept.unlink()
        self.node.program.start()
        self.pass_chain_time(0)

    def usurp(self, thief: str, units: int) -> bool:
        (txid,) = [one for one in self.node.waiting() if one not in self.node._paid]
        ours = read_hex(self.node.ask("getrawtransaction", txid))
        claim = Coins(coins=tuple(map(self._coin, sorted(ours.inputs, key=lambda one: one.outpoint))))
        rest = sum(coin.units for coin in claim.coins) - units - THEFT_FEE
        wallet = KeyRef(address=self.hot, ordinal=None)
        draft = Draft(
            intent=Intent(wallet=wallet, pair=None, outputs=(Output(recipient=thief, units=units),)),
            claim=claim,
            offer=coin_offer(fee_units=THEFT_FEE, change_units=rest, change_parts=1, lock_height=0, rate=1_000),
        )
        spender = registry.spender(self.network, load_settings(self.env))
        keys = held_keys.keys().deriver(self.network).keyring()
        self.include(spender.sign(draft, counter=None, keys=keys).raw)
        return True

    def _coin(self, spent: TxInput) -> Coin:
        shown = self.node.ask("gettxout", *spent.outpoint, False)
        address = shown["scriptPubKey"]["address"]
        stored = rows("SELECT ordinal FROM pool_addresses WHERE address = %s", (address,))
        key = KeyRef(address=address, ordinal=stored[0][0] if stored else None)
        return Coin(txid=spent.txid, vout=spent.vout, units=round(shown["value"] * COIN), key=key, depth=1)

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def say_dead(self, number: int) -> None:
        """Let a provider show a chain of its own, in which a thief spent the waiting transaction's coins."""
        height, ((raw,),) = self.tip() + 1, rows("SELECT raw FROM spend_attempts")
        ours = read_hex(bytes(raw).hex())
        stolen = replace(ours, outputs=(TxOutput(units=HOT_UNITS, script=script_of(MINER_ADDRESS, CHAIN)),))
        self.peers[number].forge(lambda at, txs: [*txs, stolen] if at == height else txs)
        self.mine(self.network.maturity)
        self.poll(3)

    def offer(self, to: str, units: int, *, is_soon: bool = True, instead_of: Payment | None = None) -> Payment:
        for peer in self.peers:
            peer.lies["estimatesmartfee"] = {"feerate": BUSY_RATE, "blocks": 6}
        if instead_of:
            self._withheld.discard(instead_of.txid)
            raw = self.node.instead(instead_of.txid, (to, units), fee_units=DEARER_FEE)
        else:
            raw = self.node.signed((to, units), fee_units=FEE_UNITS if is_soon else LOW_FEE)
        txid = self.node.send(raw)
        self._withheld.add(txid)
        return Payment(txid, raw)

    def take_in(self, payment: Payment) -> None:
        self._withheld.discard(payment.txid)

    def offer_again(self, payment: Payment) -> None:
        assert self.node.send(payment.again) == payment.txid

    def take_out(self, payment: Payment) -> None:
        self._withheld.add(payment.txid)
        self.node.take_back()

    def hide_waiting(self, number: int) -> None:
        self.peers[number].lies["getrawmempool"] = []
        self.peers[number].lies["getmempoolentry"] = Refusal(-5, "Transaction not in mempool")

    def pretend(self, number: int, to: str, units: int) -> None:
        invented = signed_by_buyer([("ff" * 32, 0, 2 * units)], [(to, units)])
        txid, raw = invented.txid().hex(), invented.serialize().hex()
        size = {"vsize": 110, "ancestorsize": 110, "ancestorcount": 1, "fees": {"base": 0.01, "ancestor": 0.01}}
        peer = self.peers[number]
        document = {"getrawtransaction": raw, "getmempoolentry": size}
        peer.asks_itself |= document.keys()
        peer.lies["getrawmempool"] = lambda truth, _params: [*truth, txid]
        for method, lie in document.items():
            peer.lies[method] = lambda truth, params, lie=lie: lie if params[0] == txid else truth

    def demand(self, *, is_absurd: bool) -> None:
        for peer in self.peers:
            if is_absurd:
                peer.lies["estimatesmartfee"] = {"feerate": 0.9, "blocks": 3}
            else:
                peer.lies.pop("estimatesmartfee")

    def lose_answers(self) -> None:
        for peer in self.peers:
            peer.lies["sendrawtransaction"] = lambda _truth, _params: DOWN

    def fakes(self) -> Mapping[str, Fake]:
        def include(*outputs: tuple[str | bytes, int]) -> None:
            self._generate(self.node.signed(*outputs))

        def other_form(to: str) -> None:
            key_hash = script_of(to, CHAIN)[len(KEY_HASH) :]
            older = bytes.fromhex("76a914") + key_hash + bytes.fromhex("88ac")
            wrapped = bytes.fromhex("a914") + key_hash + bytes.fromhex("87")
            include((older, self.price), (wrapped, self.price))

        def pay_other(to: str) -> None:
            include((bytes([0x6A, 22]) + script_of(to, CHAIN), 0))

        def replaced(to: str) -> None:
            coin = self.node.coins[0]
            self.node.pay((to, self.price))
            self.node.coins.pop()
            self.node.coins.insert(0, coin)
            self.node.pay((BUYER_ADDRESS, self.price), fee_units=100_000)

        return {
            "nothing at all": Fake(lambda to: include((to, 0))),
            "beside another's": Fake(lambda to: include((MINER_ADDRESS, self.price), (to, 7)), units=7),
            "two in one transaction": Fake(lambda to: include((to, 3), (MINER_ADDRESS, 5), (to, 3)), units=6),
            "another form of the same key": Fake(other_form),
            "named in a text": Fake(pay_other),
            "replaced": Fake(replaced),
        }

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def fail(name: str) -> Callable[[int, str], object]:
            return lambda number, _to: setattr(self.peers[number], "failure", FAILURES[name])

        def pays(to: str, tx: Tx) -> bool:
            return script_of(to, CHAIN) in {output.script for output in tx.outputs}

        def without(to: str) -> Callable[[int, Sequence[Tx]], Sequence[Tx]]:
            return lambda _height, txs: [tx for tx in txs if not pays(to, tx)]

        def doubled(to: str) -> Callable[[int, Sequence[Tx]], Sequence[Tx]]:
            def double(output: TxOutput) -> TxOutput:
                return replace(output, units=2 * output.units) if output.script == script_of(to, CHAIN) else output

            return lambda _height, txs: [replace(tx, outputs=tuple(map(double, tx.outputs))) for tx in txs]

        def invented(to: str) -> Callable[[int, Sequence[Tx]], Sequence[Tx]]:
            height = self.tip() + 1
            spent = TxInput(txid="ee" * 32, vout=0, sequence=0)
            output = TxOutput(units=self.price, script=script_of(to, CHAIN))
            tx = Tx(version=2, inputs=(spent,), outputs=(output,), lock_time=0)
            return lambda at, txs: [*txs, tx] if at == height else txs

        return {name: fail(name) for name in FAILURES} | {
            "hidden": lambda number, to: self.peers[number].forge(without(to)),
            "cut": lambda number, to: self.peers[number].cut(without(to)),
            "invented": lambda number, to: self.peers[number].forge(invented(to)),
            "altered": lambda number, to: self.peers[number].forge(doubled(to)),
            "stuck": lambda number, _to: self.peers[number].lag(1),
            "wrong chain": lambda number, _to: self.peers[number].lies.update(
                getblockhash=lambda truth, params: "ab" * 32 if params[0] == 0 else truth
            ),
        }

    def be_honest(self) -> None:
        for peer in self.peers:
            peer.lies.clear()
            peer.asks_itself.clear()
            peer.failure = None


class RealBitcoinRig(BitcoinRig):
    """Bitcoin on bitcoind, another project's node."""

    name = "bitcoind"
