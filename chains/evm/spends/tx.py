"""Builds and signs transfers of coin and tokens.

Used by chains.evm.spends.spender, and to send by the demonstration's buyer.
Calldata is encoded by hand: a token such as USDT on Ethereum returns no bool, which libraries refuse to decode.
"""

import sys
import threading
from dataclasses import dataclass
from typing import Any, Final

from chains.base import Attempt, Fee, ProviderError
from chains.evm.nodes import wire
from chains.evm.nodes.rpc import Rpc
from chains.evm.spends.fees import AbsurdFeeError, GasPrice, gas_price
from core.catalogue.addresses import checksum_evm

# First four bytes of keccak256("transfer(address,uint256)").
TRANSFER_SELECTOR: Final = "a9059cbb"
WORD_DIGITS: Final = 64

GAS_MAX: Final = 1_000_000
GAS_MARGIN_PERCENT: Final = 20

_loading = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What moves: value in wei to an address, with calldata where that is a contract."""

    to: str
    value_wei: int
    data: str = "0x"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSpend:
    """Bytes that can be sent any number of times and count once, and the id that they will have."""

    txid: str
    raw: str


def plan_spend(*, to: str, units: int, contract: str | None) -> Spend:
    """Return the spend that moves coin (contract None) or a token to an address."""
    if contract is None:
        return Spend(to=wire.address(to), value_wei=units)
    receiver = wire.address(to).removeprefix("0x").rjust(WORD_DIGITS, "0")
    return Spend(to=contract, value_wei=0, data=f"0x{TRANSFER_SELECTOR}{receiver}{units:064x}")


def sign_spend(spend: Spend, *, private_key: str, chain_id: int, nonce: int, gas: int, price: GasPrice) -> SignedSpend:
    """Sign with a price for gas; deterministic, so the same arguments give the same bytes."""
    fee = Fee(gas_limit=gas, price_units=price.max_wei, tip_units=price.tip_wei)
    signed = _sign(account().from_key(private_key), spend, chain_id=chain_id, nonce=nonce, fee=fee)
    return SignedSpend(txid=signed.txid, raw="0x" + signed.raw.hex())


def sign_fee(spend: Spend, *, sender: str, private_key: str, chain_id: int, nonce: int, fee: Fee) -> Attempt:
    """Sign with an offer; deterministic. ValueError where the key is not the sender's."""
    signer = account().from_key(private_key)
    if wire.address(signer.address) != sender:
        raise ValueError(f"this is not the key of {sender}")
    return _sign(signer, spend, chain_id=chain_id, nonce=nonce, fee=fee)


def account() -> Any:
    """Return eth_account's Account: half a second and 33 MB, for those who sign."""
    # What it imports lifts the interpreter's limit, which keeps hostile nesting from ending the process. One thread at
    # a time, or another would take the lifted limit for the right one.
    with _loading:
        limit = sys.getrecursionlimit()
        try:
            from eth_account import Account  # noqa: PLC0415
        finally:
            sys.setrecursionlimit(limit)
    return Account


def _sign(signer: Any, spend: Spend, *, chain_id: int, nonce: int, fee: Fee) -> Attempt:
    terms: dict[str, object] = {
        "chainId": chain_id,
        "nonce": nonce,
        "to": checksum_evm(spend.to),
        "value": spend.value_wei,
        "data": spend.data,
        "gas": fee.gas_limit,
    }
    if fee.tip_units == fee.price_units:
        # All tip: there is no base fee; see chains.evm.spends.gas.
        terms |= {"gasPrice": fee.price_units}
    else:
        terms |= {"type": 2, "maxFeePerGas": fee.price_units, "maxPriorityFeePerGas": fee.tip_units}
    signed = signer.sign_transaction(terms)
    return Attempt(txid="0x" + bytes(signed.hash).hex(), raw=bytes(signed.raw_transaction))


def send_transfer(node: Rpc, private_key: str, *, to: str, units: int, contract: str | None = None) -> str:
    """Send coin or tokens and return the transaction's id, without waiting for a block.

    The nonce is the node's count, so a key is used by one caller at a time. Raises ProviderError.
    """
    sender = str(account().from_key(private_key).address)
    spend = plan_spend(to=to, units=units, contract=contract)
    signed = sign_spend(
        spend,
        private_key=private_key,
        chain_id=wire.quantity(node.call("eth_chainId", [], str)),
        nonce=wire.quantity(node.call("eth_getTransactionCount", [sender, "pending"], str)),
        gas=_gas(node, sender, spend),
        price=gas_price(node),
    )
    if wire.block_or_tx_hash(node.call("eth_sendRawTransaction", [signed.raw], str)) != signed.txid:
        raise ProviderError("eth_sendRawTransaction: another transaction's id")
    return signed.txid


def _gas(node: Rpc, sender: str, spend: Spend) -> int:
    call = {"from": sender, "to": spend.to, "value": hex(spend.value_wei), "data": spend.data}
    estimate = wire.quantity(node.call("eth_estimateGas", [call], str))
    gas = estimate * (100 + GAS_MARGIN_PERCENT) // 100
    if gas > GAS_MAX:
        raise AbsurdFeeError(f"{gas} gas for one transfer")
    return gas
