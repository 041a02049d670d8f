"""Applies transactions to the world: their effects, their costs, their refusals. Called by simulator.

Codes and messages are those of TRON's nodes; clients learn from them the outcome of a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from devstack.tron.machine import OUT_OF_ENERGY, REVERT, SUCCESS, Call, Moment, Run
from devstack.tron.wire import ASSET, TRANSFER, Signed
from devstack.tron.world import FREE_NET, Account, Permission, World

NET_PRICE: Final = 1_000
CREATE_NET_FEE: Final = 100_000
CREATE_FEE: Final = 1_000_000
# A result is stored with each transaction, and takes room in its block.
RESULT_BYTES: Final = 64
EXPIRATION_MAX_MS: Final = 86_400_000
FEE_LIMIT_MAX: Final = 15_000_000_000
SIGNATURE_BYTES: Final = 65
FAILURES: Final = {REVERT: "REVERT opcode executed", OUT_OF_ENERGY: "Not enough energy for operation executing"}


class RefusedError(Exception):
    """A node's refusal of a transaction, with a code and a reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The effect of a transaction, as its block shows it. Fees are in sun."""

    result: str = SUCCESS
    net_usage: int = 0
    net_fee: int = 0
    # The fee for creating an account, in addition.
    system_fee: int = 0
    energy_staked: int = 0
    energy_fee: int = 0
    # For calls only.
    run: Run | None = None

    @property
    def fee(self) -> int:
        """Return the sum of all fees."""
        return self.net_fee + self.system_fee + self.energy_fee


def check_form(signed: Signed, block_ids: Sequence[str], head_ms: int) -> None:
    """Check that it refers to a block of this chain and has not expired; block_ids: all blocks. Raises RefusedError."""
    number = int.from_bytes(signed.ref_bytes, "big")
    newest = len(block_ids) - 1
    height = newest - (newest - number) % 65_536
    if len(signed.ref_bytes) != 2 or height < 0 or block_ids[height][16:32] != signed.ref_hash.hex():  # noqa: PLR2004
        raise RefusedError("TAPOS_ERROR", "Tapos check error")
    if not head_ms < signed.expiration_ms <= head_ms + EXPIRATION_MAX_MS:
        raise RefusedError("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
    if signed.fee_limit > FEE_LIMIT_MAX:
        _invalid(f"feeLimit must be >= 0 and <= {FEE_LIMIT_MAX}")


def check_signatures(signed: Signed, world: World) -> None:
    """Check that the signatures fulfil the owner's permission. Raises RefusedError."""
    account = world.accounts.get(signed.owner)
    if account is None:
        _invalid("no OwnerAccount." if signed.kind == TRANSFER else "account does not exist")
    permission = permission_of(signed, account)
    signers = signers_of(signed)
    if len(set(signers)) < len(signers) or not set(signers) <= permission.weights.keys():
        raise RefusedError("SIGERROR", "Validate signature error: it is signed by somebody else, or twice")
    if sum(permission.weights[signer] for signer in signers) < permission.threshold:
        raise RefusedError("SIGERROR", "Validate signature error: the weights are too little")


def permission_of(signed: Signed, account: Account) -> Permission:
    """Return the permission that a transaction uses."""
    return account.active if signed.permission_id else account.owner


def signers_of(signed: Signed) -> list[bytes]:
    """Return the signers, as 20 bytes each. Raises RefusedError."""
    return [_signer(signature, bytes.fromhex(signed.txid)) for signature in signed.signatures]


def apply(world: World, signed: Signed, moment: Moment) -> Info:
    """Apply a transaction, and return its effect. Raises RefusedError; the world must then be discarded."""
    if signed.owner not in world.accounts:
        _invalid("no OwnerAccount.")
    if signed.kind == TRANSFER:
        return _apply_transfer(world, signed, moment)
    net = _take_net(world, signed, moment)
    if signed.kind == ASSET:
        _move_asset(world, signed, moment)
        return Info(net_usage=net.usage, net_fee=net.fee)
    return _apply_call(world, signed, moment, net)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Net:
    usage: int
    fee: int


def _apply_transfer(world: World, signed: Signed, moment: Moment) -> Info:
    if signed.to == signed.owner:
        _invalid("Validate TransferContract error, cannot transfer TRX to yourself.")
    if signed.units <= 0:
        _invalid("Validate TransferContract error, Amount must be greater than 0.")
    if signed.to in world.contracts:
        _invalid("Validate TransferContract error, Cannot transfer TRX to a smartContract.")
    is_new = signed.to not in world.accounts
    net = _take_net(world, signed, moment, is_new=is_new)
    fee = CREATE_FEE if is_new else 0
    if world.balance(signed.owner) < signed.units + fee:
        _invalid("Validate TransferContract error, balance is not sufficient.")
    world.add({signed.owner: -signed.units - fee, signed.to: signed.units})
    world.activate(signed.to, moment.time_ms)
    return Info(net_usage=net.usage, net_fee=net.fee, system_fee=fee)


def _move_asset(world: World, signed: Signed, moment: Moment) -> None:
    assets = world.accounts[signed.owner].assets
    if not 0 < signed.units <= assets.get(signed.asset, 0):
        _invalid("Validate TransferAssetContract error, assetBalance is not sufficient.")
    world.change(signed.owner, assets={**assets, signed.asset: assets[signed.asset] - signed.units})
    world.activate(signed.to, moment.time_ms)
    theirs = world.accounts[signed.to].assets
    world.change(signed.to, assets={**theirs, signed.asset: theirs.get(signed.asset, 0) + signed.units})


def _apply_call(world: World, signed: Signed, moment: Moment, net: _Net) -> Info:
    contract = world.contracts.get(signed.to)
    if contract is None:
        _invalid("No contract or not a smart contract")
    balance = world.balance(signed.owner)
    if balance < signed.units:
        _invalid("Validate InternalTransfer error, balance is not sufficient.")
    account = world.accounts[signed.owner]
    staked = max(0, account.energy_limit - account.energy.left(moment.time_ms))
    bought = min(signed.fee_limit, balance - signed.units) // world.energy_price
    call = Call(
        sender=signed.owner, to=signed.to, units=signed.units, data=signed.data,
        energy_max=staked + bought, penalty_pct=contract.penalty_pct,
    )  # fmt: skip
    run, world.root = world.machine.execute(world.root, call, moment)
    for internal in run.internals:
        if internal.units and not internal.is_rejected:
            world.activate(internal.to, moment.time_ms)
    of_stake = min(staked, run.energy)
    fee = (run.energy - of_stake) * world.energy_price
    world.change(signed.owner, energy=account.energy.more(of_stake, moment.time_ms))
    world.add({signed.owner: -fee})
    return Info(
        result=run.result, net_usage=net.usage, net_fee=net.fee, energy_staked=of_stake, energy_fee=fee, run=run
    )


def _take_net(world: World, signed: Signed, moment: Moment, *, is_new: bool = False) -> _Net:
    """Pay for the bytes in a block: from the day's free bytes if they are enough for all, else with TRX."""
    size = len(signed.whole) + RESULT_BYTES
    used = world.accounts[signed.owner].net
    if not is_new and used.left(moment.time_ms) + size <= FREE_NET:
        world.change(signed.owner, net=used.more(size, moment.time_ms))
        return _Net(usage=size, fee=0)
    fee = CREATE_NET_FEE if is_new else size * NET_PRICE
    if world.balance(signed.owner) < fee:
        raise RefusedError("BANDWITH_ERROR", "Account resource insufficient error.")
    world.add({signed.owner: -fee})
    return _Net(usage=0, fee=fee)


def _signer(signature: bytes, digest: bytes) -> bytes:
    if len(signature) != SIGNATURE_BYTES:
        raise RefusedError("SIGERROR", f"Validate signature error: its size is {len(signature)}")
    recovery = signature[64] - 27 if signature[64] >= 27 else signature[64]  # noqa: PLR2004  as Ethereum writes it
    try:
        key = Signature(signature[:64] + bytes([recovery])).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError) as error:
        raise RefusedError("SIGERROR", "Validate signature error: nobody's") from error
    return key.to_canonical_address()


def _invalid(problem: str) -> NoReturn:
    raise RefusedError("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {problem}")
