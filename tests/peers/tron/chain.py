"""A simulated TRON chain as a test wants it: a rich buyer, the token where the real one is, blocks only when asked."""

from __future__ import annotations

import threading
from typing import Any, Final, Self

from eth_keys import keys

from core.addresses.evm import keccak256
from core.catalogue.catalogue import load_catalogue
from devstack.contracts.code import PLAIN
from devstack.tron import wire
from devstack.tron.answers import answer
from devstack.tron.server import Server
from devstack.tron.simulator import SOLIDITY_LAG, Simulator

NETWORK: Final = load_catalogue("development").networks["tron"]
USDT: Final = str(load_catalogue("development").pairs["USDT", "tron"].contract)
TRX: Final = 10**6
# Contracts of no coin, which forward or pretend.
FORWARDER: Final = wire.shown(b"\xf0" * 20)
FORGER: Final = wire.shown(b"\xf1" * 20)
LIFE_MS: Final = 600_000
FEE_LIMIT: Final = 100 * TRX
# As busy as the real one, so that a transfer takes what it takes there.
BUSY_PCT: Final = 340
RICHES: Final = 10_000_000 * TRX


class Key:
    """A signer with one key."""

    def __init__(self, secret: int) -> None:
        self._key = keys.PrivateKey(secret.to_bytes(32, "big"))
        self.coordinates = self._key.public_key.to_bytes()
        self.raw = self._key.public_key.to_canonical_address()
        self.address = wire.shown(self.raw)

    def sign(self, raw: bytes) -> bytes:
        """Return a whole transaction of what is signed."""
        return wire.field(1, raw) + wire.field(2, self.signature(bytes.fromhex(wire.read_raw(raw).txid)))

    def signature(self, digest: bytes) -> bytes:
        return bytes(self._key.sign_msg_hash(digest).to_bytes())


BUYER: Final = Key(0xB0B)


class Tron:
    """One chain; a context manager where it is to be reached over HTTP."""

    url = ""
    _made = 0

    def __init__(self, *, solidity_lag: int = SOLIDITY_LAG, code: str = PLAIN) -> None:
        self.chain = Simulator(NETWORK.chain_identity, solidity_lag=solidity_lag)
        self.give(BUYER.address, RICHES)
        self.act(
            "token", address=USDT, code=code, symbol="USDT", decimals=6, balances={BUYER.address: RICHES},
            penalty_pct=BUSY_PCT,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._server = Server(self.chain)
        self.url = self._server.url
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(self, path: str, **asked: object) -> Any:
        return answer(self.chain, path, {"visible": True, **asked})

    def act(self, name: str, **arguments: object) -> None:
        self.chain.act(name, arguments)

    def give(self, address: str, units: int) -> None:
        self.act("coin", address=address, units=units)

    def mine(self, blocks: int = 1) -> int:
        return self.chain.mine(blocks)

    def raw(self, contract: bytes, *, fee_limit: int = 0, life_ms: int = LIFE_MS) -> bytes:
        """Return what is to be signed, which refers to the newest solid block."""
        now_ms = self.chain.now_ms()
        # Two of the same moment are two all the same.
        self._made += 1
        return wire.raw_data(
            contract, block_id=self.chain.ids[self.chain.solid_height()], now_ms=now_ms,
            expiration_ms=now_ms + life_ms + self._made, fee_limit=fee_limit,
        )  # fmt: skip

    def transfer(self, to: str, units: int, *, key: Key = BUYER) -> bytes:
        """Return signed bytes that move TRX."""
        return key.sign(self.raw(wire.transfer(key.raw, wire.raw_of(to), units)))

    def token(self, to: str, units: int, *, key: Key = BUYER, fee_limit: int = FEE_LIMIT) -> bytes:
        """Return signed bytes that move the token."""
        return self.called(USDT, "transfer(address,uint256)", to, units, key=key, fee_limit=fee_limit)

    def called(
        self, contract: str, signature: str = "", *words: str | int, key: Key = BUYER, units: int = 0,
        fee_limit: int = FEE_LIMIT,
    ) -> bytes:  # fmt: skip
        """Return signed bytes that call a contract."""
        data = calldata(signature, *words) if signature else b""
        made = wire.call(key.raw, wire.raw_of(contract), data, units=units)
        return key.sign(self.raw(made, fee_limit=fee_limit))

    def send(self, whole: bytes) -> str:
        """Give a node signed bytes, which must be taken; returns the id."""
        return self.chain.broadcast(whole)

    def balance(self, address: str) -> int:
        return int(self.ask("wallet/getaccount", address=address).get("balance", 0))

    def token_balance(self, address: str, contract: str = USDT) -> int:
        """Return what the contract says that an address holds of its token."""
        asked = {"owner_address": address, "contract_address": contract}
        data = calldata("balanceOf(address)", address).hex()
        return int(self.ask("wallet/triggerconstantcontract", data=data, **asked)["constant_result"][0], 16)

    def info(self, txid: str) -> Any:
        return self.ask("wallet/gettransactioninfobyid", value=txid)


def calldata(signature: str, *words: str | int) -> bytes:
    """Encode a call whose arguments are all one word: addresses in base58, and numbers."""
    encoded = (
        wire.raw_of(word).rjust(32, b"\0") if isinstance(word, str) else word.to_bytes(32, "big") for word in words
    )
    return keccak256(signature.encode())[:4] + b"".join(encoded)
