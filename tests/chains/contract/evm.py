"""The rig of the EVM family: a real anvil, behind providers that lie over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar
from uuid import uuid4

from actors.signer import held_keys
from chains.evm.spends.tx import plan_spend, sign_spend
from chains.spending import KeyRef
from core.addresses.evm import keccak256
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code
from tests.actors.scan.world import ETHER, FEE, FORWARDER, World
from tests.chains.conftest import FORGER
from tests.chains.contract.rig import PATIENCE_S, Fake, Payment, Rig
from tests.models.builders import CATALOGUE
from tests.peers.anvil import BUYER, calldata
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN, HTML, LyingRpc

TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
TOKEN = str(CATALOGUE.pairs["USDT", "ethereum"].contract).lower()
FAILURES: Mapping[str, Raw | Refusal] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}


class EvmRig(Rig):
    """Ethereum, where an invoice is paid in USDT."""

    code = "ethereum"
    currency = "USDT"
    claim = "counter"
    lacks: ClassVar = {
        "pay_ripening": "whoever makes a block is paid by no transfer that anybody could be paid with",
        "leave_hole": "every height of these chains has a block",
        "outlive": "nothing ends by itself here",
        "offer": "nobody is told what waits here",
        "pretend": "nobody is told what waits here",
        "refuse": "a spend has one output",
        "share": "nothing but its key ever signs for an account here",
    }

    def __init__(self, database: str, anvil: Callable[..., Anvil], stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        self.world = World(database, anvil)
        self.node = self.world.node
        self.peers: list[LyingRpc] = []

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingRpc(self.node.url, key=f"provider-{number}")) for number in range(providers)
        ]
        return [peer.url for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        # The first block includes the waiting transactions.
        self.node.mine()
        if blocks > 1:
            self.node.ask("anvil_mine", hex(blocks - 1))

    def pay(self, to: str, units: int) -> Payment:
        txid, raw = self.world.signed(to, units)
        assert self.node.ask("eth_sendRawTransaction", raw) == txid
        return Payment(txid, raw)

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        self.world.reorg(depth, *((payment.again, offset) for payment, offset in again))

    def tip(self) -> int:
        return self.node.height()

    def pass_chain_time(self, seconds: int) -> None:
        self.node.ask("evm_increaseTime", hex(seconds))

    def enrich(self) -> None:
        _, raw = self.world.signed(self.hot, 5 * ETHER, currency="ETH")
        self.node.ask("eth_sendRawTransaction", raw)
        self.pay(self.hot, 1_000 * self.price)

    def stall(self) -> None:
        self.pass_time(PATIENCE_S)

    def gather(self) -> None:
        self.keep_and_follow()

    def units_at(self, address: str) -> int:
        data = calldata("balanceOf(address)", address)
        return int(self.node.ask("eth_call", {"to": TOKEN, "data": data}, "latest"), 16)

    def recipient(self) -> str:
        return "0x" + uuid4().hex + "00000000"

    def include(self, raw: bytes) -> None:
        self.forget_waiting()
        self.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
        self.mine()

    def forget_waiting(self) -> None:
        self.node.ask("anvil_dropAllTransactions")

    def usurp(self, thief: str, units: int) -> bool:
        keys, wallet = held_keys.keys().deriver(self.network).keyring(), KeyRef(address=self.hot, ordinal=None)
        rival = sign_spend(
            plan_spend(to=thief, units=units, contract=TOKEN),
            lambda message: keys.sign(wallet, message),
            chain_id=int(self.network.chain_identity),
            nonce=int(self.node.ask("eth_getTransactionCount", self.hot, "latest"), 16),
            offer=FEE,
        )
        self.include(rival.raw)
        return True

    def demand(self, *, is_absurd: bool) -> None:
        self.node.ask("anvil_setNextBlockBaseFeePerGas", hex(10**13 if is_absurd else 10**9))
        self.mine()

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def say_dead(self, number: int) -> None:
        self.peers[number].lies["eth_getTransactionCount"] = lambda truth, _params: hex(int(truth, 16) + 1)

    def freeze(self, address: str) -> None:
        install_code(self.node.rpc, TOKEN, "token_frozen")
        self.world._nonce += 1
        self.node.send(TOKEN, data=calldata("freeze(address)", address))
        self.mine()

    def melt(self, *, is_paused: bool = False) -> None:
        install_code(self.node.rpc, TOKEN, "token_false" if is_paused else "token")

    def refuse_transfers(self, number: int) -> None:
        self.peers[number].lies["eth_estimateGas"] = Refusal(3, "execution reverted: frozen")

    def lose_answers(self) -> None:
        for peer in self.peers:
            peer.lies["eth_sendRawTransaction"] = lambda _truth, _params: DOWN

    def fakes(self) -> Mapping[str, Fake]:
        def send(to: str | None, signature: str = "", *words: str | int, **more: Any) -> str:
            self.world._nonce += 1
            return self.node.send(to, data=calldata(signature, *words) if signature else "0x", **more)

        def reverted(to: str) -> None:
            self.pay(FORWARDER, self.price)
            send(FORWARDER, "pay_and_revert(address,address,uint256)", TOKEN, to, self.price)

        def twice(to: str) -> None:
            self.pay(FORWARDER, 6)
            send(FORWARDER, "pay_twice(address,address,uint256,uint256)", TOKEN, to, 3, 3)

        def silent(to: str) -> None:
            install_code(self.node.rpc, TOKEN, "token_false")
            send(TOKEN, "transfer(address,uint256)", to, self.price)
            self.node.mine()
            install_code(self.node.rpc, TOKEN, "token")

        def look_alike(to: str) -> None:
            install_code(self.node.rpc, FORGER, "forger")
            for shape in ("erc20", "erc721", "unindexed"):
                send(FORGER, f"{shape}(address,uint256)", to, self.price)

        def replaced(to: str) -> None:
            call = {"from": BUYER, "gas": hex(100_000), "nonce": hex(self.world._nonce), "to": TOKEN}
            for recipient, price in ((to, 50), ("0x" + "b2" * 20, 100)):
                data = calldata("transfer(address,uint256)", recipient, self.price)
                self.node.ask("eth_sendTransaction", call | {"data": data, "gasPrice": hex(price * 10**9)})
            self.world._nonce += 1

        return {
            "reverted": Fake(reverted),
            "nothing at all": Fake(lambda to: self.pay(to, 0)),
            "look-alikes": Fake(look_alike),
            "a token that answers false": Fake(silent),
            "another coin": Fake(lambda to: send(to, value=10**16)),
            "passed on and undone": Fake(lambda to: send(FORWARDER, "forward_and_revert(address)", to, value=10**16)),
            "two in one transaction": Fake(twice, units=6),
            "replaced": Fake(replaced),
        }

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def fail(name: str) -> Callable[[int, str], object]:
            return lambda number, _to: setattr(self.peers[number], "failure", FAILURES[name])

        def hide(number: int, _to: str) -> None:
            self.peers[number].hide_logs()
            self.peers[number].hide_transactions()

        return {name: fail(name) for name in FAILURES} | {
            "hidden": hide,
            "cut": lambda number, _to: self.peers[number].lies.update(eth_getLogs=[]),
            "invented": self._invent,
            "altered": lambda number, _to: self.peers[number].alter_amounts(2),
            "stuck": lambda number, _to: self.peers[number].lag(1),
            "wrong chain": lambda number, _to: self.peers[number].lies.update(eth_chainId=hex(7)),
        }

    def _invent(self, number: int, to: str) -> None:
        height = self.node.mine()
        block_hash = self.node.ask("eth_getBlockByNumber", hex(height), False)["hash"]
        log = {
            "address": TOKEN,
            "topics": [TRANSFER, "0x" + "0" * 24 + "b2" * 20, "0x" + "0" * 24 + to[2:]],
            "data": f"0x{self.price:064x}",
            "blockHash": block_hash, "blockNumber": hex(height), "transactionHash": "0x" + "ee" * 32,
            "logIndex": "0x0", "removed": False,
        }  # fmt: skip
        receipt = {
            "transactionHash": log["transactionHash"], "blockHash": block_hash, "blockNumber": hex(height),
            "status": "0x1", "logs": [log],
        }  # fmt: skip
        self.peers[number].invent(height, log, receipt)

    def be_honest(self) -> None:
        for peer in self.peers:
            peer.lies.clear()
            peer.failure = None
