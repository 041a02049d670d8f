"""Names Solana's programs, derives token accounts and writes instructions. Used by the reader and by the spends.

Instructions are written here alone, so that a message that was read back can be rebuilt and compared byte by byte.
"""

from functools import lru_cache
from typing import Final

from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price, set_loaded_accounts_data_size_limit
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer

SYSTEM: Final = "11111111111111111111111111111111"
TOKEN: Final = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"  # noqa: S105 - an address
TOKEN_2022: Final = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"  # noqa: S105 - as above
ASSOCIATED: Final = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL"
MEMO: Final = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
BUDGET: Final = "ComputeBudget111111111111111111111111111111"

KEY_BYTES: Final = 32
# The data of a mint and of a token account of the first token program. A token account's begins with mint and owner.
MINT_BYTES: Final = 82
HOLDING_BYTES: Final = 165
# Microlamports in a lamport: a compute unit's price is in them.
MICRO: Final = 10**6
LAMPORTS_PER_SIGNATURE: Final = 5_000

CREATE_IDEMPOTENT: Final = 1
TRANSFER_CHECKED: Final = 12
CLOSE_ACCOUNT: Final = 9
# The addresses kept by associated(): a scan asks for the same ones in every block.
_KNOWN_MAX: Final = 8_192


def program_of(mint: str) -> str:
    """Return the token program that an offered mint belongs to: the first one, for all of them."""
    del mint
    return TOKEN


@lru_cache(maxsize=_KNOWN_MAX)
def associated(owner: str, mint: str, program: str = TOKEN) -> str:
    """Return the address of an owner's associated token account. The token program is part of it."""
    seeds = [bytes(_key(owner)), bytes(_key(program)), bytes(_key(mint))]
    return str(Pubkey.find_program_address(seeds, _key(ASSOCIATED))[0])


def is_on_curve(address: str) -> bool:
    """Return True if the address is a public key. Only then can anyone sign for it."""
    return _key(address).is_on_curve()


def key_bytes(address: str) -> bytes:
    """Return the 32 bytes of a stored address."""
    return bytes(_key(address))


def limit_units(units: int) -> Instruction:
    """Limit the compute units of a transaction."""
    return set_compute_unit_limit(units)


def price_unit(micro: int) -> Instruction:
    """Offer a price for a compute unit, in microlamports."""
    return set_compute_unit_price(micro)


def limit_loaded(size: int) -> Instruction:
    """Limit the bytes of the accounts that a transaction loads."""
    return set_loaded_accounts_data_size_limit(size)


def move_coin(sender: str, recipient: str, lamports: int) -> Instruction:
    """Move SOL."""
    return transfer(TransferParams(from_pubkey=_key(sender), to_pubkey=_key(recipient), lamports=lamports))


def create_associated(payer: str, owner: str, mint: str) -> Instruction:
    """Make an owner's token account, unless it exists."""
    program = program_of(mint)
    keys = [
        _signer(payer, is_writable=True),
        _account(associated(owner, mint, program), is_writable=True),
        *(_account(each) for each in (owner, mint, SYSTEM, program)),
    ]
    return Instruction(_key(ASSOCIATED), bytes([CREATE_IDEMPOTENT]), keys)


def move_token(sender: str, recipient: str, mint: str, *, units: int, decimals: int) -> Instruction:
    """Move a token between the associated accounts of two owners; the chain checks mint and decimals."""
    program = program_of(mint)
    keys = [
        _account(associated(sender, mint, program), is_writable=True),
        _account(mint),
        _account(associated(recipient, mint, program), is_writable=True),
        _signer(sender),
    ]
    data = bytes([TRANSFER_CHECKED]) + units.to_bytes(8, "little") + bytes([decimals])
    return Instruction(_key(program), data, keys)


def close_account(owner: str, mint: str, heir: str) -> Instruction:
    """Close an owner's empty associated account; its rent goes to the heir."""
    program = program_of(mint)
    keys = [
        _account(associated(owner, mint, program), is_writable=True),
        _account(heir, is_writable=True),
        _signer(owner),
    ]
    return Instruction(_key(program), bytes([CLOSE_ACCOUNT]), keys)


def write_memo(text: str) -> Instruction:
    """Attach a text. The program refuses bytes that are not UTF-8."""
    return Instruction(_key(MEMO), text.encode(), [])


def fee_units(signatures: int, *, limit: int, price: int) -> int:
    """Return the fee that the chain takes of a transaction, in lamports; price in microlamports for a compute unit."""
    return signatures * LAMPORTS_PER_SIGNATURE + -(-limit * price // MICRO)


def _key(address: str) -> Pubkey:
    return Pubkey.from_string(address)


def _account(address: str, *, is_writable: bool = False) -> AccountMeta:
    return AccountMeta(_key(address), is_signer=False, is_writable=is_writable)


def _signer(address: str, *, is_writable: bool = False) -> AccountMeta:
    return AccountMeta(_key(address), is_signer=True, is_writable=is_writable)
