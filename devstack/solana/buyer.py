"""Pays from a key like any wallet: builds, signs and sends transactions. Used by devstack.solana.chain and tests."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.hash import Hash
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.message import Message, MessageV0, MessageV1, TransactionConfig, VersionedMessage
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from chains.net.json_rpc import Rpc
from core.catalogue.catalogue import Pair
from devstack.solana.programs import TOKEN, associated, create_associated, move_tokens
from devstack.solana.transactions import LEGACY

# The state after the newest block, for a buyer waits for nothing.
NEWEST: Final = {"commitment": "processed"}


class Buyer:
    """A wallet of one key in hex."""

    def __init__(self, key: str) -> None:
        self.keypair = Keypair.from_seed(bytes.fromhex(key.removeprefix("0x")))
        self.key = self.keypair.pubkey()
        self.address = str(self.key)

    def pay(self, node: Rpc, pair: Pair, *, to: str, units: int) -> str:
        """Send SOL or a token, and return the transaction's id. Raises ProviderError."""
        if pair.contract is None:
            calls = [self.coin(to, units)]
        else:
            calls = self.tokens(to, pair.contract, units, decimals=pair.decimals)
        latest = node.call("getLatestBlockhash", [NEWEST], dict[str, Any])
        return send(node, self.sign(calls, str(latest["value"]["blockhash"])))

    def coin(self, to: str, units: int) -> Instruction:
        """Return the instruction that moves SOL."""
        return transfer(TransferParams(from_pubkey=self.key, to_pubkey=Pubkey.from_string(to), lamports=units))

    def tokens(self, to: str, mint: str, units: int, *, decimals: int, program: Pubkey = TOKEN) -> list[Instruction]:
        """Return the instructions that move tokens to an owner's account, and make it first where it is missing."""
        owner, minted = Pubkey.from_string(to), Pubkey.from_string(mint)
        source, target = associated(self.key, minted, program), associated(owner, minted, program)
        return [
            create_associated(self.key, owner, minted, program),
            move_tokens(source, minted, target, self.key, units=units, decimals=decimals, program=program),
        ]

    def sign(
        self,
        calls: Sequence[Instruction],
        blockhash: str,
        *,
        version: int | str = 0,
        tables: Sequence[AddressLookupTableAccount] = (),
        others: Sequence[Keypair] = (),
    ) -> bytes:
        """Return a signed transaction. others: further keys that have to sign."""
        message = compiled(self.key, calls, Hash.from_string(blockhash), version=version, tables=tables)
        return bytes(VersionedTransaction(message, [self.keypair, *others]))


def compiled(
    payer: Pubkey,
    calls: Sequence[Instruction],
    blockhash: Hash,
    *,
    version: int | str = 0,
    tables: Sequence[AddressLookupTableAccount] = (),
) -> VersionedMessage:
    """Return a message of a version."""
    if version == LEGACY:
        return Message.new_with_blockhash(calls, payer, blockhash)
    if version == 0:
        return MessageV0.try_compile(payer, calls, tables, blockhash)
    return MessageV1.try_compile(payer, calls, blockhash, TransactionConfig(compute_unit_limit=400_000))


def send(node: Rpc, raw: bytes) -> str:
    """Give a node signed bytes and return the transaction's id. Raises ProviderError."""
    options = {"encoding": "base64", "preflightCommitment": "processed"}
    return node.call("sendTransaction", [base64.b64encode(raw).decode(), options], str)


def new_address() -> str:
    """Return a new address whose key is discarded: receiving needs none."""
    return str(Keypair().pubkey())
