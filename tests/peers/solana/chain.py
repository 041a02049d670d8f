"""A simulated Solana chain as a test wants it: a rich buyer, mints where the real ones are, blocks only when asked."""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from typing import Any, Final, Self

from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from core.catalogue.catalogue import load_catalogue
from devstack.solana.answers import answer
from devstack.solana.buyer import Buyer
from devstack.solana.faults import Fault
from devstack.solana.programs import TOKEN, TOKEN_2022, associated
from devstack.solana.server import Server
from devstack.solana.simulator import Simulator
from tests.peers.solana.forwarder import FORWARDER, forwarder_code

CATALOGUE: Final = load_catalogue("development")
NETWORK: Final = CATALOGUE.networks["solana"]
USDT: Final = str(CATALOGUE.pairs["USDT", "solana"].contract)
USDC: Final = str(CATALOGUE.pairs["USDC", "solana"].contract)
SOL: Final = 10**9
RICHES: Final = 10_000_000 * SOL
# A Token-2022 mint that takes a hundredth of each transfer, and one that has nothing but a name in common.
TAXED: Final = str(Keypair.from_seed(b"\xf0" * 32).pubkey())
NAMESAKE: Final = str(Keypair.from_seed(b"\xf1" * 32).pubkey())
TABLE: Final = str(Keypair.from_seed(b"\xf2" * 32).pubkey())
FEE_BPS: Final = 100
DECIMALS: Final = 6
BUYER: Final = Buyer("0b" * 32)


class Solana:
    """One chain; a context manager where it is to be reached over HTTP."""

    url = ""

    def __init__(self, *, finality_lag: int = 1, confirmation_lag: int | None = None, skip_every: int = 0) -> None:
        self.chain = Simulator(
            NETWORK.chain_identity, finality_lag=finality_lag, confirmation_lag=confirmation_lag, skip_every=skip_every
        )
        self.give(BUYER.address, RICHES)
        for mint in (USDT, USDC, NAMESAKE):
            self.act("mint", address=mint, decimals=DECIMALS)
        self.act("mint", address=TAXED, decimals=DECIMALS, program="token-2022", fee_bps=FEE_BPS)
        self.act("program", address=str(FORWARDER), code=forwarder_code())
        for mint in (USDT, USDC, NAMESAKE, TAXED):
            self.act("tokens", address=BUYER.address, mint=mint, units=RICHES)

    def __enter__(self) -> Self:
        self._server = Server(self.chain)
        self.url = self._server.url
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(self, method: str, *params: object) -> Any:
        """Return a node's answer. Raises Fault."""
        return answer(self.chain, method, params)

    def fault(self, method: str, *params: object) -> Fault:
        """Return a node's refusal of a question."""
        try:
            reply = self.ask(method, *params)
        except Fault as refused:
            return refused
        raise AssertionError(reply)

    def act(self, name: str, **arguments: object) -> None:
        self.chain.act(name, arguments)

    def give(self, address: str, units: int) -> None:
        self.act("coin", address=address, units=units)

    def give_tokens(self, address: str, units: int, mint: str = USDT) -> None:
        self.act("tokens", address=address, mint=mint, units=units)

    def mine(self, blocks: int = 1) -> int:
        return self.chain.mine(blocks)

    def settle(self) -> int:
        """Make blocks until all that waits is final; return the newest slot."""
        return self.mine(1 + self.chain.finality_lag)

    def table(self, *addresses: str) -> AddressLookupTableAccount:
        """Put addresses into a lookup table."""
        self.act("table", address=TABLE, addresses=list(addresses))
        keys = [Pubkey.from_string(address) for address in addresses]
        return AddressLookupTableAccount(Pubkey.from_string(TABLE), keys)

    def signed(
        self, calls: Sequence[Instruction], *, buyer: Buyer = BUYER, version: int | str = 0,
        tables: Sequence[AddressLookupTableAccount] = (), others: Sequence[Keypair] = (),
    ) -> bytes:  # fmt: skip
        """Return signed bytes that live from the newest block."""
        return buyer.sign(calls, self.chain.head.hash, version=version, tables=tables, others=others)

    def transfer(self, to: str, units: int, *, buyer: Buyer = BUYER, version: int | str = 0) -> bytes:
        """Return signed bytes that move SOL."""
        return self.signed([buyer.coin(to, units)], buyer=buyer, version=version)

    def token(self, to: str, units: int, *, mint: str = USDT, buyer: Buyer = BUYER) -> bytes:
        """Return signed bytes that move a token, and make the recipient's account."""
        return self.signed(self.token_calls(to, units, mint=mint, buyer=buyer), buyer=buyer)

    def token_calls(self, to: str, units: int, *, mint: str = USDT, buyer: Buyer = BUYER) -> list[Instruction]:
        return buyer.tokens(to, mint, units, decimals=DECIMALS, program=program_of(mint))

    def send(self, raw: bytes, **options: object) -> str:
        """Give a node signed bytes, which must be taken; returns the id."""
        options = {"encoding": "base64", "preflightCommitment": "processed", **options}
        return str(self.ask("sendTransaction", base64.b64encode(raw).decode(), options))

    def balance(self, address: str, commitment: str = "processed") -> int:
        return int(self.ask("getBalance", address, {"commitment": commitment})["value"])

    def token_balance(self, owner: str, mint: str = USDT, commitment: str = "processed") -> int:
        """Return the units in an owner's associated account; 0 without one."""
        options = {"commitment": commitment, "encoding": "base64"}
        place = holding(owner, mint)
        if self.ask("getAccountInfo", place, options)["value"] is None:
            return 0
        return int(self.ask("getTokenAccountBalance", place, options)["value"]["amount"])

    def block(self, slot: int, **options: object) -> Any:
        """Return a block as the gateway asks for it."""
        asked = {
            "encoding": "json", "transactionDetails": "accounts", "rewards": False,
            "maxSupportedTransactionVersion": 255, "commitment": "confirmed",
        }  # fmt: skip
        return self.ask("getBlock", slot, {**asked, **options})

    def included(self, signature: str) -> Any:
        """Return a transaction of a confirmed block, or None."""
        return self.ask(
            "getTransaction", signature,
            {"encoding": "json", "maxSupportedTransactionVersion": 255, "commitment": "confirmed"},
        )  # fmt: skip


def program_of(mint: str) -> Pubkey:
    return TOKEN_2022 if mint == TAXED else TOKEN


def holding(owner: str, mint: str = USDT) -> str:
    """Return the address of an owner's associated token account."""
    return str(associated(Pubkey.from_string(owner), Pubkey.from_string(mint), program_of(mint)))
