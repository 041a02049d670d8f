"""The rig of the bitcoin family: a node on regtest, behind providers that lie over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar

from actors.signer import spend as spending
from chains import registry
from chains.base import Coin, Coins, Draft, Intent, KeyRef, Output
from chains.bitcoin.scripts import KEY_HASH, script_of
from chains.bitcoin.spends.terms import coin_offer
from chains.bitcoin.transactions import Tx, TxInput, TxOutput, read_hex
from cli.embedded.bitcoin.buyer import new_address, unspents
from cli.embedded.bitcoin.facade.blocks import make_block, subsidy_units
from cli.embedded.bitcoin.node import BitcoinNode
from core.settings.settings import load_settings
from models.db.base import rows
from tests.chains.contract.rig import PATIENCE_S, Fake, Payment, Rig
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, MINER_ADDRESS, HandMined
from tests.peers.bitcoind.lying import LyingBitcoin
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN, HTML

COIN = 10**8
# Rewards, of which each pays once.
COINS = 60
HOT_COINS = 12
# Of the hot wallet's coins, each.
HOT_UNITS = 45 * COIN
REWARD_DEPTH = 100
THEFT_FEE = 50_000
CHAIN = "regtest"
FAILURES: Mapping[str, Raw | Refusal] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}


class BitcoinRig(Rig):
    """Bitcoin, where an invoice is paid in coins of its own."""

    code = "bitcoin"
    currency = "BTC"
    lacks: ClassVar = {
        "leave_hole": "every height of this chain has a block",
        "refuse": "a transaction has its effect as a whole",
        "outlive": "nothing ends by itself here",
        "gather": "coins are spent where they lie",
        "write_off": "a coin that somebody took is a row's, and no amount that could be given up without it",
        "offer": "a block of this rig takes all that waits",
        "pretend": "what one pool alone shows is asked where pools are read",
        "say_dead": "who spent a coin the scan alone tells, of blocks that their hashes prove",
    }

    def __init__(self, database: str, start: Callable[[], BitcoinNode], stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        self._ahead_s = 0
        self._ripening: list[tuple[str, int]] = []
        self.program = start()
        self.node = HandMined(self.program.url, coins=COINS)
        self.peers: list[LyingBitcoin] = []

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingBitcoin(self.node.url, key=f"provider-{number}"))
            for number in range(providers)
        ]
        return [peer.url for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        if self._ripening:
            self._submit(self._ripening)
            self._ripening, blocks = [], blocks - 1
        if blocks:
            self.node.mine(blocks)

    def pay(self, to: str, units: int) -> Payment:
        raw = self.node.signed((to, units))
        return Payment(self.node.send(raw), raw)

    def pay_ripening(self, to: str, units: int) -> int:
        self._ripening.append((to, units))
        return REWARD_DEPTH

    def _submit(self, paid: Sequence[tuple[str, int]]) -> None:
        """Make a block whose reward pays somebody so, and the miner the rest."""
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
        self._ahead_s += seconds
        self.node.ask("setmocktime", int(time.time()) + self._ahead_s)

    def enrich(self) -> None:
        for _ in range(HOT_COINS):
            self.pay(self.hot, HOT_UNITS)

    def stall(self) -> None:
        self.pass_time(PATIENCE_S)

    def held(self, address: str) -> int:
        return sum(coin.units for coin in unspents(self.node.rpc, address))

    def recipient(self) -> str:
        return new_address()

    def include(self, raw: bytes) -> None:
        self._generate(raw.hex())

    def _generate(self, *raws: str) -> None:
        """Make a block of these alone, of which nobody would pass some on."""
        self.node.ask("generateblock", MINER_ADDRESS, list(raws))

    def forget_waiting(self) -> None:
        self.program.stop()
        for kept in self.program._folder.rglob("mempool.dat"):
            kept.unlink()
        self.program.start()

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
        keys = spending.keys().deriver(self.network).keyring()
        self.include(spender.sign(draft, counter=None, keys=keys).raw)
        return True

    def _coin(self, spent: TxInput) -> Coin:
        shown = self.node.ask("gettxout", *spent.outpoint, False)
        address = shown["scriptPubKey"]["address"]
        found = rows("SELECT ordinal FROM pool_addresses WHERE address = %s", (address,))
        key = KeyRef(address=address, ordinal=found[0][0] if found else None)
        return Coin(txid=spent.txid, vout=spent.vout, units=round(shown["value"] * COIN), key=key, depth=1)

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

        def told(to: str) -> None:
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
            "named in a text": Fake(told),
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
