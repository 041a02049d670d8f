"""Writes and reads the bytes of Solana's programs: token accounts, mints, lookup tables, instructions.

Used by acts, engine and the buyer. Shares nothing with the gateway's own code, which it judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from solders.account import Account
from solders.compute_budget import ID as COMPUTE_BUDGET
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

SYSTEM: Final = Pubkey.default()
TOKEN: Final = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
TOKEN_2022: Final = Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
ASSOCIATED: Final = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
MEMO: Final = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
TABLES: Final = Pubkey.from_string("AddressLookupTab1e1111111111111111111111111")
PROGRAMS: Final = {"token": TOKEN, "token-2022": TOKEN_2022}

KEY_BYTES: Final = 32
MINT_BYTES: Final = 82
HOLDING_BYTES: Final = 165
DECIMALS_AT: Final = 44
UNITS_AT: Final = 64
STATE_AT: Final = 108
TABLE_HEAD_BYTES: Final = 56
NORMAL: Final = 1
FROZEN: Final = 2
# The byte behind the first 165 that a Token-2022 account with extensions has: of a mint, of a holding.
EXTENDED_MINT: Final = 1
EXTENDED_HOLDING: Final = 2
FEE_CONFIG: Final = 1
FEE_AMOUNT: Final = 2
IMMUTABLE_OWNER: Final = 7
NO_KEY: Final = bytes(4 + KEY_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A token account."""

    program: Pubkey
    mint: Pubkey
    owner: Pubkey
    units: int
    is_frozen: bool


def read_holding(account: Account | None) -> Holding | None:
    """Return a token account, None for an account of another kind."""
    if account is None or not _is_holding(account):
        return None
    data = bytes(account.data)
    return Holding(
        program=account.owner,
        mint=Pubkey.from_bytes(data[:KEY_BYTES]),
        owner=Pubkey.from_bytes(data[KEY_BYTES : 2 * KEY_BYTES]),
        units=int.from_bytes(data[UNITS_AT : UNITS_AT + 8], "little"),
        is_frozen=data[STATE_AT] == FROZEN,
    )


def holding_bytes(mint: Pubkey, owner: Pubkey, units: int, *, is_frozen: bool = False, has_fee: bool = False) -> bytes:
    """Return a token account's data; has_fee: its mint takes a fee from each transfer."""
    state = bytes([FROZEN if is_frozen else NORMAL])
    data = bytes(mint) + bytes(owner) + _u64(units) + NO_KEY + state + bytes(12 + 8) + NO_KEY
    if not has_fee:
        return data
    return data + bytes([EXTENDED_HOLDING]) + _extension(FEE_AMOUNT, bytes(8)) + _extension(IMMUTABLE_OWNER, b"")


def mint_bytes(authority: Pubkey, *, decimals: int, supply: int, fee_bps: int = 0) -> bytes:
    """Return a mint's data, with a fee in hundredths of a percent where it takes one."""
    key = b"\1\0\0\0" + bytes(authority)
    data = key + _u64(supply) + bytes([decimals, 1]) + key
    if not fee_bps:
        return data
    fee = _u64(0) + _u64(2**64 - 1) + fee_bps.to_bytes(2, "little")
    config = bytes(authority) * 2 + _u64(0) + fee + fee
    return data.ljust(HOLDING_BYTES, b"\0") + bytes([EXTENDED_MINT]) + _extension(FEE_CONFIG, config)


def decimals_of(mint: Account) -> int:
    """Return a mint's decimals."""
    return bytes(mint.data)[DECIMALS_AT]


def table_bytes(addresses: Sequence[Pubkey]) -> bytes:
    """Return an address lookup table's data: active, extended long ago, without an authority."""
    head = (1).to_bytes(4, "little") + _u64(2**64 - 1) + _u64(0)
    return head.ljust(TABLE_HEAD_BYTES, b"\0") + b"".join(bytes(address) for address in addresses)


def read_table(data: bytes) -> list[Pubkey]:
    """Return the addresses of a lookup table."""
    places = range(TABLE_HEAD_BYTES, len(data), KEY_BYTES)
    return [Pubkey.from_bytes(data[place : place + KEY_BYTES]) for place in places]


def associated(owner: Pubkey, mint: Pubkey, program: Pubkey = TOKEN) -> Pubkey:
    """Return the address of an owner's associated token account."""
    return Pubkey.find_program_address([bytes(owner), bytes(program), bytes(mint)], ASSOCIATED)[0]


def create_associated(payer: Pubkey, owner: Pubkey, mint: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Return the instruction that makes an owner's account unless it is there."""
    keys = [
        AccountMeta(payer, is_signer=True, is_writable=True),
        AccountMeta(associated(owner, mint, program), is_signer=False, is_writable=True),
        *(AccountMeta(key, is_signer=False, is_writable=False) for key in (owner, mint, SYSTEM, program)),
    ]
    return Instruction(ASSOCIATED, b"\1", keys)


def move_tokens(
    source: Pubkey, mint: Pubkey, target: Pubkey, owner: Pubkey, *, units: int, decimals: int, program: Pubkey = TOKEN
) -> Instruction:
    """Return the instruction that moves tokens between two token accounts, checked against the mint."""
    data = bytes([12]) + _u64(units) + bytes([decimals])
    keys = [
        AccountMeta(source, is_signer=False, is_writable=True),
        AccountMeta(mint, is_signer=False, is_writable=False),
        AccountMeta(target, is_signer=False, is_writable=True),
        AccountMeta(owner, is_signer=True, is_writable=False),
    ]
    return Instruction(program, data, keys)


def close_holding(source: Pubkey, target: Pubkey, owner: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Return the instruction that closes an empty token account, and gives its rent to an address."""
    keys = [
        AccountMeta(source, is_signer=False, is_writable=True),
        AccountMeta(target, is_signer=False, is_writable=True),
        AccountMeta(owner, is_signer=True, is_writable=False),
    ]
    return Instruction(program, b"\x09", keys)


def give_away(holding: Pubkey, new_owner: Pubkey, owner: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Return the instruction that makes another key the owner of a token account."""
    keys = [
        AccountMeta(holding, is_signer=False, is_writable=True),
        AccountMeta(owner, is_signer=True, is_writable=False),
    ]
    return Instruction(program, b"\x06\x02\x01" + bytes(new_owner), keys)


def write_memo(text: str, signer: Pubkey) -> Instruction:
    """Return the instruction that carries a memo."""
    return Instruction(MEMO, text.encode(), [AccountMeta(signer, is_signer=True, is_writable=False)])


def price_of(program: Pubkey, data: bytes) -> int | None:
    """Return the price of a compute unit that an instruction offers, in millionths of a lamport; else None."""
    is_price = program == COMPUTE_BUDGET and data[:1] == b"\3"
    return int.from_bytes(data[1:9], "little") if is_price else None


def _is_holding(account: Account) -> bool:
    size = len(account.data)
    if account.owner == TOKEN or size == HOLDING_BYTES:
        return account.owner in {TOKEN, TOKEN_2022} and size == HOLDING_BYTES
    return account.owner == TOKEN_2022 and size > HOLDING_BYTES and account.data[HOLDING_BYTES] == EXTENDED_HOLDING


def _extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "little") + len(data).to_bytes(2, "little") + data


def _u64(value: int) -> bytes:
    return value.to_bytes(8, "little")
