"""Builds, signs and sends EIP-1559 transfers of coin and tokens. Used by the demonstration's buyer and by tests.

Calldata is encoded by hand: a token such as USDT on Ethereum returns no bool, which libraries refuse to decode.
"""

from dataclasses import dataclass
from typing import Final

from chains import evm_wire as wire
from chains.base import ProviderError
from chains.evm_fees import AbsurdFeeError, GasPrice, gas_price
from chains.rpc import Rpc
from core.addresses import checksum_evm

# First four bytes of keccak256("transfer(address,uint256)").
TRANSFER_SELECTOR: Final = "a9059cbb"
WORD_DIGITS: Final = 64

GAS_MAX: Final = 1_000_000
GAS_MARGIN_PERCENT: Final = 20


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
    """Sign; deterministic, so the same arguments give the same bytes."""
    from eth_account import Account  # noqa: PLC0415 - half a second and 33 MB, for those who sign

    signed = Account.sign_transaction(
        {
            "type": 2,
            "chainId": chain_id,
            "nonce": nonce,
            "to": checksum_evm(spend.to),
            "value": spend.value_wei,
            "data": spend.data,
            "gas": gas,
            "maxFeePerGas": price.max_wei,
            "maxPriorityFeePerGas": price.tip_wei,
        },
        private_key,
    )
    return SignedSpend(txid="0x" + bytes(signed.hash).hex(), raw="0x" + bytes(signed.raw_transaction).hex())


def send_transfer(node: Rpc, private_key: str, *, to: str, units: int, contract: str | None = None) -> str:
    """Send coin or tokens and return the transaction's id, without waiting for a block.

    The nonce is the node's count, so a key is used by one caller at a time. Raises ProviderError.
    """
    from eth_account import Account  # noqa: PLC0415

    sender = str(Account.from_key(private_key).address)
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
