"""One EVM chain in Python, for machines without anvil: py-evm with a pool, a clock and a file. No reorgs.

Served by cli.embedded.eth_tester_rpc.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from eth.chains.base import MiningChain
from eth.constants import POST_MERGE_DIFFICULTY, POST_MERGE_MIX_HASH, POST_MERGE_NONCE
from eth.db.atomic import AtomicDB
from eth.exceptions import CanonicalHeadNotFound, HeaderNotFound, TransactionNotFound
from eth.vm.forks.cancun import CancunVM
from eth.vm.spoof import SpoofTransaction
from eth_typing import Address, BlockNumber
from eth_utils.exceptions import ValidationError
from rlp.exceptions import RLPException  # type: ignore[import-untyped]

from cli.embedded.pyevm_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eth.abc import BlockHeaderAPI
    from eth.typing import HeaderParams

GAS_LIMIT: Final = 30_000_000
ZERO_ADDRESS: Final = bytes(20)
POOL_MAX: Final = 1_000


class RefusedError(Exception):
    """A transaction that this chain does not take."""


class PyEvmChain:
    """Safe to share between threads: everything holds the lock."""

    def __init__(self, path: Path, *, chain_id: int) -> None:
        self.lock = threading.RLock()
        self._store = FileStore(path)
        self._ahead_s = 0
        self._pool: dict[bytes, Any] = {}
        self._chain = _open(self._store, chain_id)
        self.chain_id = chain_id

    def close(self) -> None:
        """Let the file go."""
        self._store.close()

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return int(self._chain.header.block_number) - 1

    @property
    def base_fee(self) -> int:
        """What the next block's gas costs at least, in wei."""
        return int(self._chain.header.base_fee_per_gas)

    def block(self, height: int) -> Any | None:
        """Return a mined block."""
        if not 0 <= height <= self.height:
            return None
        return self._chain.get_canonical_block_by_number(height)

    def block_by_hash(self, block_hash: bytes) -> Any | None:
        """Return a mined block."""
        try:
            return self._chain.get_block_by_hash(block_hash)
        except HeaderNotFound:
            return None

    def receipts(self, block: Any) -> list[Any]:
        """Return the receipts of a block's transactions, in order."""
        return list(block.get_receipts(self._chain.chaindb))

    def find(self, txid: bytes) -> tuple[Any, int] | None:
        """Return a mined transaction's block and its place there."""
        try:
            height, index = self._chain.get_canonical_transaction_index(txid)
        except TransactionNotFound:
            return None
        block = self.block(height)
        return None if block is None else (block, index)

    def pooled(self, txid: bytes) -> Any | None:
        """Return a transaction that waits for its block."""
        return self._pool.get(txid)

    def state(self, height: int | None = None) -> Any:
        """Return the accounts as a block left them, or as they are now."""
        return self._chain.get_vm(self._header(height)).state

    def pending_nonce(self, sender: bytes) -> int:
        """Return the nonce of an account's next transaction, those in the pool counted."""
        waiting = [transaction for transaction in self._pool.values() if transaction.sender == sender]
        return int(self.state().get_nonce(sender)) + len(waiting)

    def send(self, raw: bytes) -> bytes:
        """Take a signed transaction into the pool and return its id. Raises RefusedError."""
        try:
            transaction = self._chain.get_vm().get_transaction_builder().decode(raw)
            transaction.validate()
        except (ValidationError, RLPException, ValueError, TypeError) as error:
            raise RefusedError(f"invalid transaction: {error}") from error
        self._check(transaction)
        self._pool[transaction.hash] = transaction
        return bytes(transaction.hash)

    def mine(self) -> None:
        """Put what waits into a block; what cannot be executed yet keeps waiting."""
        with self.lock:
            earliest = int(self._chain.get_canonical_head().timestamp) + 1
            self._chain.set_header_timestamp(max(int(time.time()) + self._ahead_s, earliest))
            for txid, transaction in sorted(self._pool.items(), key=lambda item: item[1].nonce):
                self._apply(txid, transaction)
            self._chain.mine_block(coinbase=ZERO_ADDRESS)
            self._store.commit()

    def advance(self, seconds: int) -> None:
        """Move the clock of the blocks to come."""
        self._ahead_s += seconds

    def call(self, *, sender: bytes, to: bytes, value: int, data: bytes, height: int | None = None) -> bytes:
        """Return what a contract answers after a block, or now."""
        spoofed = self._spoof(sender=sender, to=to, value=value, data=data)
        return bytes(self._chain.get_transaction_result(spoofed, self._header(height)))

    def estimate(self, *, sender: bytes, to: bytes, value: int, data: bytes) -> int:
        """Return the gas that a transaction needs."""
        spoofed = self._spoof(sender=sender, to=to, value=value, data=data)
        return int(self._chain.estimate_gas(spoofed, self._chain.header))

    def change(self, change: Callable[[Any], None]) -> None:
        """Change accounts out of thin air; the next block keeps it."""
        vm = self._chain.get_vm()
        change(vm.state)
        vm.state.lock_changes()
        vm.state.persist()
        self._chain.header = self._chain.header.copy(state_root=vm.state.state_root)

    def _header(self, height: int | None) -> Any:
        block = None if height is None or height >= self.height else self.block(height)
        return self._chain.header if block is None else block.header

    def _check(self, transaction: Any) -> None:
        if transaction.hash in self._pool or self.find(transaction.hash):
            raise RefusedError("already known")
        if transaction.chain_id != self.chain_id:
            raise RefusedError("invalid chain id for signer")
        if transaction.nonce < self.state().get_nonce(transaction.sender):
            raise RefusedError("nonce too low")
        if len(self._pool) >= POOL_MAX:
            raise RefusedError("txpool is full")
        price = getattr(transaction, "max_fee_per_gas", None) or transaction.gas_price
        if transaction.value + transaction.gas * price > self.state().get_balance(transaction.sender):
            raise RefusedError("insufficient funds for gas * price + value")

    def _apply(self, txid: bytes, transaction: Any) -> None:
        if transaction.nonce > self.state().get_nonce(transaction.sender):
            return
        del self._pool[txid]
        try:
            self._chain.apply_transaction(transaction)
        except ValidationError:
            # Replaced by one with the same nonce, or too cheap for this block: it is gone, as on a real node.
            return

    def _spoof(self, *, sender: bytes, to: bytes, value: int, data: bytes) -> Any:
        unsigned = self._chain.get_vm().create_unsigned_transaction(
            nonce=self.state().get_nonce(sender), gas_price=self.base_fee, gas=GAS_LIMIT, to=to, value=value, data=data
        )
        return SpoofTransaction(unsigned, from_=sender)


def _open(store: FileStore, number: int) -> Any:
    class DevelopmentChain(MiningChain):
        chain_id = number
        vm_configuration = ((BlockNumber(0), CancunVM),)

        def create_header_from_parent(
            self, parent_header: BlockHeaderAPI, **header_params: HeaderParams
        ) -> BlockHeaderAPI:
            """Keep the gas limit: nobody votes here."""
            kept = {**header_params, "gas_limit": parent_header.gas_limit}
            return super().create_header_from_parent(parent_header, **kept)

    database = AtomicDB(store)
    try:
        return DevelopmentChain(database)
    except CanonicalHeadNotFound:
        genesis: dict[str, HeaderParams] = {
            "difficulty": POST_MERGE_DIFFICULTY,
            "mix_hash": POST_MERGE_MIX_HASH,
            "nonce": POST_MERGE_NONCE,
            "gas_limit": GAS_LIMIT,
            "coinbase": Address(ZERO_ADDRESS),
            "timestamp": int(time.time()) - 1,
            "extra_data": b"",
        }
        chain = DevelopmentChain.from_genesis(database, genesis, {})
        store.commit()
        return chain
