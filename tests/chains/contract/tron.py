"""The rig of the TRON family: a simulated chain in this process, behind providers that lie over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from actors.signer import held_keys
from chains.spending import KeyRef
from devstack.tron import wire
from devstack.tron.buyer import new_address
from devstack.tron.machine import EMPTY
from devstack.tron.node import SOLIDITY_LAG
from devstack.tron.shapes import signed_json
from tests.chains.contract.rig import Fake, Payment, Rig
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN, HTML
from tests.peers.tron.chain import BUSY_PCT, BUYER, FORGER, FORWARDER, TRX, USDT, Tron, calldata
from tests.peers.tron.lying import LyingRest

TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TRANSFER_SELECTOR = "a9059cbb"
FAILURES: Mapping[str, Raw] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}
SILENT_TOKEN = wire.shown(b"\xf2" * 20)
USUAL_PRICE = 100
ABSURD_PRICE = 100_000
# Longer than any of our transactions lives.
LIFE_S = 660
HOT_TRX = 100_000 * TRX


class TronRig(Rig):
    """TRON, where an invoice is paid in USDT."""

    code = "tron"
    currency = "USDT"
    claim = "window"
    lacks: ClassVar = {
        "pay_ripening": "whoever makes a block is paid by no transfer that anybody could be paid with",
        "leave_hole": "every height of these chains has a block",
        "stall": "what expires is signed anew, and nothing is offered more for",
        "refuse": "a spend has one output",
        "offer": "nobody is told what waits here",
        "pretend": "nobody is told what waits here",
    }

    def __init__(self, database: str, stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        self.tron = Tron(solidity_lag=SOLIDITY_LAG)
        self.peers: list[LyingRest] = []

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingRest(self.tron.chain, key=f"provider-{number}"))
            for number in range(providers)
        ]
        return [peer.url.removesuffix("/") for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        self.tron.mine(blocks)

    def pay(self, to: str, units: int) -> Payment:
        whole = self.tron.token(to, units)
        return Payment(self.tron.send(whole), whole)

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        self.tron.chain.reorg(depth, [(payment.again.hex(), offset) for payment, offset in again])

    def tip(self) -> int:
        return self.tron.chain.head.height

    def pass_chain_time(self, seconds: int) -> None:
        self.tron.chain.advance(seconds)

    def enrich(self) -> None:
        self.tron.send(self.tron.transfer(self.hot, HOT_TRX))
        self.pay(self.hot, 1_000 * self.price)

    def gather(self) -> None:
        self.keep_and_follow()

    def outlive(self) -> None:
        self.forget_waiting()
        self.pass_time(LIFE_S)
        self.mine()

    def units_at(self, address: str) -> int:
        return self.tron.token_balance(address)

    def recipient(self) -> str:
        return new_address()

    def include(self, raw: bytes) -> None:
        self.forget_waiting()
        self.tron.send(raw)
        self.mine()

    def forget_waiting(self) -> None:
        self.tron.chain.forget_waiting()

    def usurp(self, thief: str, units: int) -> bool:
        data = calldata("transfer(address,uint256)", thief, units)
        made = wire.call(wire.raw_of(self.hot), wire.raw_of(USDT), data)
        self.tron.send(self._signed_by_hot(self.tron.raw(made, fee_limit=50 * TRX)))
        self.mine()
        # It takes nothing that what waits would need.
        return False

    def _signed_by_hot(self, raw: bytes) -> bytes:
        keys, wallet = held_keys.keys().deriver(self.network).keyring(), KeyRef(address=self.hot, ordinal=None)
        signature = keys.sign(wallet, bytes.fromhex(wire.read_raw(raw).txid))
        return wire.field(1, raw) + wire.field(2, signature)

    def move_namesake(self) -> None:
        """Let a thief with the hot wallet's key send a token that we do not know."""
        self.tron.act("asset", address=self.hot, asset="USDT", units=2)
        made = wire.asset_transfer(wire.raw_of(self.hot), BUYER.raw, 1, asset="USDT")
        self.tron.send(self._signed_by_hot(self.tron.raw(made)))
        self.mine()

    def demand(self, *, is_absurd: bool) -> None:
        self.tron.act("price", energy_price=ABSURD_PRICE if is_absurd else USUAL_PRICE)

    def say_dead(self, number: int) -> None:
        def later(truth: Any, _question: object) -> object:
            truth["block_header"]["raw_data"]["timestamp"] += 2 * LIFE_S * 1_000
            return truth

        self.peers[number].lies["walletsolidity/getnowblock"] = later

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def freeze(self, address: str) -> None:
        self.tron.act("code", address=USDT, code="token_frozen", penalty_pct=BUSY_PCT)
        self.tron.send(self.tron.called(USDT, "freeze(address)", address))
        self.mine()

    def melt(self, *, is_paused: bool = False) -> None:
        self.tron.act("code", address=USDT, code="token_false" if is_paused else "token", penalty_pct=BUSY_PCT)
        self.mine()

    def refuse_transfers(self, number: int) -> None:
        def refused(truth: Any, question: Mapping[str, Any]) -> object:
            is_transfer = str(question["data"]).startswith(TRANSFER_SELECTOR)
            return truth | {"transaction": {"ret": [{"ret": "FAILED"}]}} if is_transfer else truth

        self.peers[number].lies["wallet/triggerconstantcontract"] = refused

    def share(self, address: str, *, is_shared: bool = True) -> None:
        signers = [address, BUYER.address] if is_shared else [address]
        self.tron.act("permission", address=address, threshold=1, keys=signers, which="active")

    def lose_answers(self) -> None:
        for peer in self.peers:
            peer.lies["wallet/broadcasthex"] = lambda _truth, _question: DOWN

    def fakes(self) -> Mapping[str, Fake]:
        tron = self.tron
        tron.act("code", address=FORWARDER, code="forwarder")
        tron.act("code", address=FORGER, code="forger")
        tron.act("token", address=SILENT_TOKEN, code="token_false", symbol="USDT", decimals=6, balances={})
        tron.act("asset", address=BUYER.address, asset="USDT", units=10 * self.price)

        def send(contract: str, signature: str, *words: str | int, **more: int) -> str:
            return tron.send(tron.called(contract, signature, *words, **more))

        def reverted(to: str) -> None:
            self.pay(FORWARDER, self.price)
            send(FORWARDER, "pay_and_revert(address,address,uint256)", USDT, to, self.price)

        def twice(to: str) -> None:
            self.pay(FORWARDER, 6)
            send(FORWARDER, "pay_twice(address,address,uint256,uint256)", USDT, to, 3, 3)

        def look_alike(to: str) -> None:
            for shape in ("erc20", "erc721", "unindexed"):
                send(FORGER, f"{shape}(address,uint256)", to, self.price)

        def gone(to: str) -> None:
            self.pay(to, self.price)
            self.mine()
            self.poll(2)
            self.reorg(1)

        def namesake(to: str) -> None:
            made = wire.asset_transfer(BUYER.raw, wire.raw_of(to), self.price, asset="USDT")
            tron.send(BUYER.sign(tron.raw(made)))

        return {
            "reverted": Fake(reverted),
            "out of energy": Fake(lambda to: tron.send(tron.token(to, self.price, fee_limit=TRX))),
            "nothing at all": Fake(lambda to: self.pay(to, 0)),
            "look-alikes": Fake(look_alike),
            "a token that answers false": Fake(
                lambda to: send(SILENT_TOKEN, "transfer(address,uint256)", to, self.price)
            ),
            "a namesake": Fake(namesake),
            "another coin": Fake(lambda to: tron.send(tron.transfer(to, 10 * TRX))),
            "passed on and undone": Fake(
                lambda to: send(FORWARDER, "forward_and_revert(address)", to, units=self.price)
            ),
            "gone before it was solid": Fake(gone),
            "two in one transaction": Fake(twice, units=6),
        }

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def fail(name: str) -> Callable[[int, str], object]:
            return lambda number, _to: setattr(self.peers[number], "failure", FAILURES[name])

        def elsewhere(truth: Any, question: Mapping[str, Any]) -> object:
            return truth | {"blockID": "00" * 8 + "ee" * 24} if int(question["num"]) == 0 else truth

        def cut(number: int, _to: str) -> None:
            self.peers[number].lies["wallet/gettransactioninfobyblocknum"] = []

        return {name: fail(name) for name in FAILURES} | {
            "hidden": lambda number, to: self.peers[number].hide(wire.raw_of(to).hex()),
            "cut": cut,
            "invented": self._invent,
            "altered": lambda number, _to: self.peers[number].alter_amounts(2),
            "stuck": lambda number, _to: self.peers[number].lag(1),
            "wrong chain": lambda number, _to: self.peers[number].lies.update({"wallet/getblockbynum": elsewhere}),
        }

    def _invent(self, number: int, to: str) -> None:
        height = self.tron.mine()
        signed = wire.read_transaction(self.tron.token(to, self.price))
        log = {
            "address": wire.raw_of(USDT).hex(),
            "topics": [TRANSFER, BUYER.raw.hex().rjust(64, "0"), wire.raw_of(to).hex().rjust(64, "0")],
            "data": f"{self.price:064x}",
        }  # fmt: skip
        info = {
            "id": signed.txid, "blockNumber": height, "blockTimeStamp": self.tron.chain.head.time_ms, "log": [log],
            "fee": 1, "contract_address": "41" + wire.raw_of(USDT).hex(), "contractResult": [EMPTY.hex()],
            "receipt": {"result": "SUCCESS", "energy_usage_total": 1},
        }  # fmt: skip
        self.peers[number].invent(height, {"ret": [{"contractRet": "SUCCESS"}], **signed_json(signed)}, info)

    def invent_theft(self, number: int) -> None:
        """Let a provider show, in a block that all have, a transfer from the hot wallet that was never signed."""
        height = self.tron.mine()
        raw = self.tron.raw(wire.transfer(wire.raw_of(self.hot), wire.raw_of(new_address()), 5 * TRX))
        signed = wire.read_raw(raw, (b"\1" * 65,))
        info = {"id": signed.txid, "blockNumber": height, "blockTimeStamp": self.tron.chain.head.time_ms}
        self.peers[number].invent(height, {"ret": [{"contractRet": "SUCCESS"}], **signed_json(signed)}, info)

    def be_honest(self) -> None:
        for peer in self.peers:
            peer.lies.clear()
            peer.failure = None
