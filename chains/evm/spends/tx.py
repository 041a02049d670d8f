"""Builds and signs transfers of coin and tokens, gives them to nodes and reads their answers.

Used by chains.evm.spends.spender, and to send by the demonstration's buyer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from chains.base import ProviderError
from chains.evm import wire
from chains.evm.spends.gas import AbsurdFeeError, gas_price
from chains.evm.spends.library import account, calldata, eth, hash_signature, rlp_list, spelled
from chains.evm.spends.terms import gas_offer
from chains.net.json_rpc import Rpc, RpcError
from chains.one_transfer import only_output
from chains.spending import Attempt, Intent, Offer, Sending
from core.addresses.evm import keccak256

TRANSFER: Final = "transfer(address,uint256)"
GAS_MAX: Final = 1_000_000
GAS_MARGIN_PERCENT: Final = 20
# The kind of a transaction with a tip; the others have none in front, and the chain's id within v.
FEE_MARKET: Final = b"\x02"
EIP155_V: Final = 35
# The first row that fits counts. Collected from geth, erigon, nethermind, besu, reth, anvil, nitro and bor.
ANSWERS: Final[Mapping[Sending, tuple[str, ...]]] = MappingProxyType({
    Sending.TAKEN: ("already known", "alreadyknown", "already_exists", "already exists", "already imported",
                    "known transaction"),
    Sending.CLAIM_USED: ("nonce too low", "nonce is too low", "nonce_too_low", "oldnonce",
                         "nonce has already been used", "nonce already used", "ownnoncealreadyused"),
    Sending.UNDERPRICED: ("underpriced", "less than block base fee", "fee too low", "feetoolow", "gas price too low",
                          "gas price below configured minimum", "price is too low", "replacementnotallowed"),
    Sending.UNFUNDED: ("insufficient funds", "insufficientfunds", "insufficient balance",
                       "upfront cost exceeds account balance"),
})  # fmt: skip

Sign = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """A transfer: value in wei to an address, with calldata if that is a contract."""

    to: str
    value_wei: int
    data: str = "0x"


def plan_spend(*, to: str, units: int, contract: str | None) -> Spend:
    """Return the spend that moves coin (contract None) or a token to an address."""
    if contract is None:
        return Spend(to=wire.address(to), value_wei=units)
    return Spend(to=contract, value_wei=0, data=calldata(TRANSFER, spelled(to), units))


def spend_of(intent: Intent) -> Spend:
    """Return the spend that an intent is. ValueError for an intent of none or several outputs."""
    output = only_output(intent)
    contract = None if intent.pair is None else intent.pair.contract
    return plan_spend(to=output.recipient, units=output.units, contract=contract)


def signing_with(private_key: str) -> Sign:
    """Return what signs hashes with a key that is no wallet's of a gateway: a buyer's."""
    return lambda message: hash_signature(message, private_key)


def sign_spend(spend: Spend, sign: Sign, *, chain_id: int, nonce: int, offer: Offer) -> Attempt:
    """Sign with an offer; deterministic, so the same arguments give the same bytes.

    sign: a hash, into r, s and the recovery id.
    """
    offered = offer.terms
    moved = [offered["gas_limit"], bytes.fromhex(wire.address(spend.to)[2:]), spend.value_wei, wire.data(spend.data)]
    if offered["tip_units"] == offered["price_units"]:
        # All tip: there is no base fee; see chains.evm.spends.gas. With the chain's id, by EIP-155.
        terms = [nonce, offered["price_units"], *moved]
        *point, parity = _signed(sign, rlp_list([*terms, chain_id, 0, 0]))
        raw = rlp_list([*terms, EIP155_V + 2 * chain_id + parity, *point])
    else:
        terms = [chain_id, nonce, offered["tip_units"], offered["price_units"], *moved, []]
        *point, parity = _signed(sign, FEE_MARKET + rlp_list(terms))
        raw = FEE_MARKET + rlp_list([*terms, parity, *point])
    return Attempt(txid="0x" + keccak256(raw).hex(), raw=raw)


def _signed(sign: Sign, message: bytes) -> tuple[int, int, int]:
    """Return r, s and the recovery id."""
    signature = sign(keccak256(message))
    return int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64]


def give(node: Rpc, raw: bytes, txid: str) -> Sending:
    """Give bytes to one node. Raises ProviderError if it is not known the outcome of them."""
    try:
        answer = eth(node).send_raw_transaction(raw)
    except RpcError as error:
        # Who does not know a kind of transaction has not taken it.
        text = error.text.lower().replace("unknown transaction", "")
        for sending, known in ANSWERS.items():
            if any(part in text for part in known):
                return sending
        raise
    if answer != bytes.fromhex(txid[2:]):
        raise ProviderError("eth_sendRawTransaction: another transaction's id")
    return Sending.TAKEN


def outcome(sendings: list[Sending]) -> Sending:
    """Return what holds of what nodes answered: taken by one is taken, then the order of Sending."""
    return next(sending for sending in Sending if sending in sendings)


def send_transfer(node: Rpc, private_key: str, *, to: str, units: int, contract: str | None = None) -> str:
    """Send coin or tokens and return the transaction's id, without waiting for a block.

    The nonce is the node's count, so a key is used by one caller at a time. Raises ChainError.
    """
    chain, sender = eth(node), account().from_key(private_key).address
    spend = plan_spend(to=to, units=units, contract=contract)
    call: Any = {"from": sender, "to": spelled(spend.to), "value": spend.value_wei, "data": spend.data}
    gas = chain.estimate_gas(call) * (100 + GAS_MARGIN_PERCENT) // 100
    if gas > GAS_MAX:
        raise AbsurdFeeError(f"{gas} gas for one transfer")
    price, nonce = gas_price(node), chain.get_transaction_count(sender, "pending")
    offer = gas_offer(gas_limit=gas, price_units=price.max_wei, tip_units=price.tip_wei)
    signed = sign_spend(spend, signing_with(private_key), chain_id=chain.chain_id, nonce=nonce, offer=offer)
    if chain.send_raw_transaction(signed.raw).to_0x_hex() != signed.txid:
        raise ProviderError("eth_sendRawTransaction: another transaction's id")
    return signed.txid
