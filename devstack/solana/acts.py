"""Changes a simulated world without a transaction, which only a development chain can. Called by simulator.

An act is a name with JSON values, so that the journal can repeat it. It returns the accounts to set.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from solders.account import Account
from solders.pubkey import Pubkey

from devstack.solana.engine import Accounts, Engine
from devstack.solana.programs import (
    FROZEN,
    MINT_BYTES,
    NORMAL,
    PROGRAMS,
    STATE_AT,
    SYSTEM,
    TABLES,
    UNITS_AT,
    associated,
    holding_bytes,
    mint_bytes,
    table_bytes,
)

NOBODY: Final = Pubkey.from_string("1nc1nerator11111111111111111111111111111111")


class World(Protocol):
    """The parts of the simulator that acts may change."""

    engine: Engine
    floor: dict[str, int]


def give_coin(world: World, *, address: str, units: int) -> Accounts:
    """Add SOL to an address, from nowhere."""
    key = Pubkey.from_string(address)
    account = world.engine.account(key) or Account(0, b"", SYSTEM)
    return {key: _account(account, lamports=account.lamports + units)}


def put_mint(
    world: World, *, address: str, decimals: int, program: str = "token", fee_bps: int = 0, authority: str = ""
) -> Accounts:
    """Put a mint at an address, the real one's or another."""
    key = Pubkey.from_string(authority) if authority else NOBODY
    data = mint_bytes(key, decimals=decimals, supply=0, fee_bps=fee_bps)
    return {Pubkey.from_string(address): Account(world.engine.rent(len(data)), data, PROGRAMS[program])}


def give_tokens(world: World, *, address: str, mint: str, units: int) -> Accounts:
    """Add tokens to an owner's associated account, from nowhere."""
    owner, minted = Pubkey.from_string(address), Pubkey.from_string(mint)
    source = _present(world, minted)
    key = associated(owner, minted, source.owner)
    there = world.engine.account(key)
    data = bytes(there.data) if there else holding_bytes(minted, owner, 0, has_fee=len(source.data) > MINT_BYTES)
    kept = there or Account(world.engine.rent(len(data)), data, source.owner)
    supplied = _with_units(bytes(source.data), 36, units)
    return {key: _account(kept, data=_with_units(data, UNITS_AT, units)), minted: _account(source, data=supplied)}


def freeze(world: World, *, address: str, is_frozen: bool = True) -> Accounts:
    """Freeze a token account, as the mint's owner may, or melt it."""
    key = Pubkey.from_string(address)
    account = _present(world, key)
    data = bytearray(account.data)
    data[STATE_AT] = FROZEN if is_frozen else NORMAL
    return {key: _account(account, data=bytes(data))}


def put_table(world: World, *, address: str, addresses: Sequence[str]) -> Accounts:
    """Put an address lookup table at an address."""
    data = table_bytes([Pubkey.from_string(one) for one in addresses])
    return {Pubkey.from_string(address): Account(world.engine.rent(len(data)), data, TABLES)}


def put_account(_world: World, *, address: str, lamports: int, owner: str, data: str = "") -> Accounts:
    """Put any account at an address; data is in base64."""
    return {Pubkey.from_string(address): Account(lamports, base64.b64decode(data), Pubkey.from_string(owner))}


def put_program(world: World, *, address: str, code: str) -> Accounts:
    """Install a program, given in base64."""
    world.engine.add_program(Pubkey.from_string(address), base64.b64decode(code))
    return {}


def set_price(world: World, *, floor: int, accounts: Sequence[str] = ("",)) -> Accounts:
    """Let blocks take no transaction below a price of its compute units, by account that it writes or for all."""
    world.floor |= dict.fromkeys(accounts, floor)
    return {}


ACTS: Final[Mapping[str, Callable[..., Accounts]]] = {
    "coin": give_coin,
    "mint": put_mint,
    "tokens": give_tokens,
    "freeze": freeze,
    "table": put_table,
    "account": put_account,
    "program": put_program,
    "price": set_price,
}


def _present(world: World, key: Pubkey) -> Account:
    account = world.engine.account(key)
    if account is None:
        raise LookupError(f"there is no account {key}")
    return account


def _account(account: Account, *, lamports: int | None = None, data: bytes | None = None) -> Account:
    """Return an account with other values."""
    return Account(
        account.lamports if lamports is None else lamports,
        bytes(account.data) if data is None else data,
        account.owner,
        account.executable,
        account.rent_epoch,
    )


def _with_units(data: bytes, place: int, more: int) -> bytes:
    units = int.from_bytes(data[place : place + 8], "little") + more
    return data[:place] + units.to_bytes(8, "little") + data[place + 8 :]
