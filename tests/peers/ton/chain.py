"""A simulated TON chain as a test wants it: a rich buyer, USDT where the real one is, blocks only when asked."""

from __future__ import annotations

import threading
from typing import Any, Final, Self

from chains.ton import boc, messages
from chains.ton.cells import Cell
from core.catalogue.catalogue import load_catalogue
from devstack.ton import jettons
from devstack.ton.answers import Fault, answer
from devstack.ton.buyer import Buyer, seqno_in
from devstack.ton.sending import sent_by
from devstack.ton.server import Server
from devstack.ton.simulator import Simulator
from tests.chains.ton.running import shared_engine

CATALOGUE: Final = load_catalogue("development")
NETWORK: Final = CATALOGUE.networks["ton"]
USDT: Final = jettons.USDT
TON: Final = 10**9
RICHES: Final = 10_000_000 * TON
BUYER: Final = Buyer("0b" * 32)
# Blocks of each shard for one of the masterchain: enough that all that follows from a message comes with it.
BETWEEN: Final = 5


class Ton:
    """One chain; a context manager where it is to be reached over HTTP."""

    url = ""

    def __init__(self, *, between: int = BETWEEN) -> None:
        self.between = between
        self.chain = Simulator(shared_engine(), NETWORK.chain_identity)
        self.give(BUYER.address, RICHES)
        self.give_tokens(BUYER.address, RICHES)
        self.mine()

    def __enter__(self) -> Self:
        self._server = Server(self.chain)
        self.url = self._server.url
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(self, method: str, /, **asked: object) -> Any:
        """Return a node's answer. Raises Fault."""
        return answer(self.chain, method, dict(asked))

    def fault(self, method: str, /, **asked: object) -> Fault:
        """Return a node's refusal of a question."""
        try:
            reply = self.ask(method, **asked)
        except Fault as refused:
            return refused
        raise AssertionError(reply)

    def act(self, name: str, **arguments: object) -> None:
        self.chain.act(name, arguments)

    def give(self, address: str, units: int) -> None:
        """Bring coin from nowhere, in the next block."""
        self.act("coin", address=address, units=units)

    def give_tokens(self, address: str, units: int, sender: str = "") -> None:
        """Bring USDT from nowhere, as if from a sender's wallet, in the next block."""
        self.act("jettons", address=address, units=units, sender=sender)

    def lock(self, address: str, status: int = 3) -> None:
        """Let the issuer freeze an owner's USDT in the next block, or free it by 0."""
        self.act("lock", address=address, status=status)

    def deliver(self, sender: str, message: Cell) -> None:
        """Let any contract send a message, which the next block has."""
        self.act("message", boc=boc.write_base64(sent_by(sender, message)))

    def mine(self, blocks: int = 1) -> int:
        """Make blocks of the masterchain; return the newest seqno."""
        return self.chain.mine(blocks, between=self.between)

    def signed(self, *sent: Cell, buyer: Buyer = BUYER) -> Cell:
        """Return a message from outside that has a wallet send these."""
        account = self.ask("getAddressInformation", address=buyer.address)
        return buyer.sign(sent, seqno=seqno_in(account["data"]), now=self.chain.now())

    def transfer(self, to: str, units: int, *, buyer: Buyer = BUYER, **more: Any) -> Cell:
        """Return a message from outside that moves coin."""
        return self.signed(buyer.coin(to, units, **more), buyer=buyer)

    def token(self, to: str, units: int, *, buyer: Buyer = BUYER, **more: Any) -> Cell:
        """Return a message from outside that moves USDT."""
        return self.signed(buyer.jettons(to, units, **more), buyer=buyer)

    def send(self, message: Cell) -> str:
        """Give a node a message from outside, which must be taken; returns its id."""
        self.ask("sendBoc", boc=boc.write_base64(message))
        return messages.read(message).normalized_hash.hex()

    def balance(self, address: str) -> int:
        return int(self.ask("getAddressInformation", address=address)["balance"])

    def token_balance(self, owner: str) -> int:
        """Return what an owner's wallet of USDT has; 0 without one."""
        answered = self.ask("runGetMethod", address=jettons.wallet(owner), method="get_wallet_data", stack=[])
        return int(answered["stack"][0][1], 16) if answered["exit_code"] == 0 else 0

    def arrivals(self, address: str) -> list[str]:
        """Return the ids of an account's transactions, the newest first."""
        return [each.transaction.hash.hex() for each in reversed(self.chain.ran.get(address, []))]
