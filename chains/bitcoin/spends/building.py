"""Builds and signs a draft's transaction. Called by chains.bitcoin.spends.spender.

A transaction depends only on its intent, the coins in their order and the offer's terms, so that it can be rebuilt from
rows. The outputs of the intent come first, in its order, so that an output's position is known.
"""

import struct
from dataclasses import replace
from typing import Final

from chains.bitcoin.scripts import KEY_HASH, KEY_HASH_BYTES, script_of
from chains.bitcoin.spends.terms import change_of
from chains.bitcoin.transactions import Tx, TxInput, TxOutput, double_sha256, id_bytes, sized
from chains.family import Keyring
from chains.spending import Attempt, Coin, Coins, Draft

# Lets another transaction that pays more replace it (BIP-125), and enables its lock.
REPLACEABLE: Final = 0xFFFFFFFD
# Locks from here on are times instead of heights.
LOCK_MAX: Final = 500_000_000
# The signature covers all inputs and all outputs.
_SIGHASH_ALL: Final = 1
# OP_DUP OP_HASH160 <20> … OP_EQUALVERIFY OP_CHECKSIG: the script of a key's hash (BIP-143).
_KEY_SCRIPT: Final = (bytes.fromhex("76a914"), bytes.fromhex("88ac"))


def unsigned(draft: Draft, chain: str) -> Tx:
    """Return a draft's transaction. Raises ValueError if it does not pay exactly the draft's outputs and fee."""
    coins, terms = claimed(draft), draft.offer.terms
    intent = draft.intent
    change = [(intent.wallet.address, units) for units in change_of(terms)]
    paid = [(output.recipient, output.units) for output in intent.outputs] + change
    fee = sum(coin.units for coin in coins) - sum(units for _, units in paid)
    if not 0 < fee == terms["fee_units"] <= draft.offer.ceiling_units:
        raise ValueError(f"a fee of {fee} units, where {terms['fee_units']} were meant")
    if not 0 <= terms["lock_height"] < LOCK_MAX or min(units for _, units in paid) <= 0:
        raise ValueError("a lock that is no height, or an output of nothing")
    return Tx(
        version=terms["version"],
        inputs=tuple(TxInput(txid=coin.txid, vout=coin.vout, sequence=REPLACEABLE) for coin in coins),
        outputs=tuple(TxOutput(units=units, script=script_of(address, chain)) for address, units in paid),
        lock_time=terms["lock_height"],
    )


def claimed(draft: Draft) -> tuple[Coin, ...]:
    """Return the coins that a draft spends, each once, in the order of its inputs. ValueError for another claim."""
    if not isinstance(draft.claim, Coins):
        raise ValueError("a bitcoin transaction spends coins")  # noqa: TRY004 - what is wrong is the row
    coins = tuple(sorted(draft.claim.coins, key=lambda coin: (coin.txid, coin.vout)))
    if len({(coin.txid, coin.vout) for coin in coins}) < len(coins) or not coins:
        raise ValueError("a coin twice, or none")
    return coins


def signed(draft: Draft, chain: str, keys: Keyring) -> Attempt:
    """Return the signed bytes. Raises ValueError if a coin's key does not match its address."""
    tx, coins = unsigned(draft, chain), claimed(draft)
    frames = _frames(tx)
    inputs = tuple(
        replace(one, witness=_witness(one, coin, frames, script_of(coin.key.address, chain), keys))
        for one, coin in zip(tx.inputs, coins, strict=True)
    )
    made = replace(tx, inputs=inputs)
    return Attempt(txid=made.txid, raw=made.raw)


def _frames(tx: Tx) -> tuple[bytes, bytes]:
    """Return the common parts that every input signs, before and after its own part (BIP-143)."""
    places = b"".join(map(_place, tx.inputs))
    sequences = b"".join(struct.pack("<I", one.sequence) for one in tx.inputs)
    outputs = b"".join(struct.pack("<q", one.units) + sized(one.script) for one in tx.outputs)
    before = struct.pack("<i", tx.version) + double_sha256(places) + double_sha256(sequences)
    return before, double_sha256(outputs) + struct.pack("<II", tx.lock_time, _SIGHASH_ALL)


def _witness(one: TxInput, coin: Coin, frames: tuple[bytes, bytes], script: bytes, keys: Keyring) -> tuple[bytes, ...]:
    """Return the signature and the key for a coin that pays a key's hash, our only kind of address."""
    if not script.startswith(KEY_HASH) or len(script) != KEY_HASH_BYTES:
        raise ValueError(f"{coin.key.address} is no address of a key of ours")
    code = sized(_KEY_SCRIPT[0] + script[len(KEY_HASH) :] + _KEY_SCRIPT[1])
    own = _place(one) + code + struct.pack("<qI", coin.units, one.sequence)
    message = double_sha256(frames[0] + own + frames[1])
    return keys.sign(coin.key, message) + bytes([_SIGHASH_ALL]), keys.public(coin.key)


def _place(one: TxInput) -> bytes:
    return id_bytes(one.txid) + struct.pack("<I", one.vout)
