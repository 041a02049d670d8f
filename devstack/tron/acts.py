"""Changes a simulated world without a transaction, which only a development chain can. Called by simulator.

An act is a name with JSON values, so that the journal can repeat it. Addresses are in base58.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from devstack.contracts.code import contracts, token_storage
from devstack.tron.wire import raw_of
from devstack.tron.world import Contract, Permission, World


def give_coin(world: World, now_ms: int, *, address: str, units: int) -> None:
    """Add TRX to an address, from nowhere."""
    world.activate(raw_of(address), now_ms)
    world.add({raw_of(address): units})


def put_token(
    world: World,
    now_ms: int,
    *,
    address: str,
    code: str,
    symbol: str,
    decimals: int,
    balances: Mapping[str, int],
    penalty_pct: int = 0,
) -> None:
    """Put a token's contract at the real one's address; it may be a hostile one."""
    units_by_holder = {raw_of(holder): units for holder, units in balances.items()}
    put_code(world, now_ms, address=address, code=code, penalty_pct=penalty_pct)
    words = token_storage(code, symbol=symbol, decimals=decimals, balances=units_by_holder)
    world.root = world.machine.write(world.root, raw_of(address), b"", words)


def put_code(world: World, now_ms: int, *, address: str, code: str, penalty_pct: int = 0) -> None:
    """Put a contract at an address."""
    where = raw_of(address)
    runtime = bytes.fromhex(contracts()[code]["runtime"].removeprefix("0x"))
    world.root = world.machine.write(world.root, where, runtime, {})
    world.activate(where, now_ms)
    world.contracts[where] = Contract(name=code, penalty_pct=penalty_pct)


def set_permission(
    world: World, _now_ms: int, *, address: str, threshold: int, keys: Sequence[str], which: str = "owner"
) -> None:
    """Give other keys control of an account, as a thief of its key would."""
    permission = Permission(threshold=threshold, weights={raw_of(key): 1 for key in keys})
    world.change(raw_of(address), **{which: permission})


def stake(world: World, _now_ms: int, *, address: str, energy: int) -> None:
    """Give an account this energy for each day."""
    world.change(raw_of(address), energy_limit=energy)


def give_asset(world: World, _now_ms: int, *, address: str, asset: str, units: int) -> None:
    """Give an account a TRC-10 token."""
    assets = world.accounts[raw_of(address)].assets
    world.change(raw_of(address), assets={**assets, asset: assets.get(asset, 0) + units})


def set_price(world: World, _now_ms: int, *, energy_price: int) -> None:
    """Set the price of energy, in sun."""
    world.energy_price = energy_price


ACTS: Final[Mapping[str, Callable[..., Any]]] = {
    "coin": give_coin,
    "token": put_token,
    "code": put_code,
    "permission": set_permission,
    "stake": stake,
    "asset": give_asset,
    "price": set_price,
}
