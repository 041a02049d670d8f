"""Tries a spend on a node without sending it: is it funded, would it have its effect, what gas does it take.

Called by chains.evm_spend, which asks every provider: what one alone says neither fails a payout nor sends one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chains import evm_wire as wire
from chains.base import InsufficientCoinError, Intent, ProviderError, SpendRefusedError
from chains.evm_fees import AbsurdFeeError
from chains.evm_tx import Spend
from chains.providers import middle
from chains.rpc import JsonRpc, RpcError
from core.catalogue import Network

# balanceOf(address).
BALANCE_SELECTOR: Final = "70a08231"
# No transaction takes less.
INTRINSIC_GAS: Final = 21_000
GAS_MARGIN_PERCENT: Final = 20
# More than so many times the catalogue's figure is no transfer any more.
GAS_FACTOR_MAX: Final = 5
REVERTED: Final = 3
# What nodes call a transaction that would fail; most, not all, also use the code above.
REVERT_TEXTS: Final = (
    "revert", "invalid opcode", "vm exception", "vm execution error", "bad instruction", "out of gas",
    "gas required exceeds",
)  # fmt: skip
SHORTAGE_TEXTS: Final = ("insufficient funds", "insufficient balance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one node says. Either texts are empty, or the gas means nothing."""

    native_wei: int
    gas: int = 0
    refusal: str = ""
    shortage: str = ""


def token_balance(node: JsonRpc, contract: str, holder: str, at: object) -> int:
    """Return a holder's tokens, in token units. at: a height in hex, a tag, or {"blockHash": …}."""
    data = f"0x{BALANCE_SELECTOR}{wire.address(holder).removeprefix('0x'):0>64}"
    return wire.word(node.call("eth_call", [{"to": contract, "data": data}, at], str))


def gas_figure(intent: Intent, network: Network) -> int:
    """Return the gas that the catalogue reckons with for such a transfer."""
    found = network.coin_gas if intent.pair is None else intent.pair.transfer_gas
    if found is None:
        raise ValueError(f"{network.code} has no gas figures")
    return found


def attempt(
    node: JsonRpc,
    intent: Intent,
    spend: Spend,
    *,
    gas_figure: int,
    price_wei: int,
    margin_percent: int = GAS_MARGIN_PERCENT,
) -> Trial:
    """Ask one node. Balances come first, so that a shortage is never taken for a refusal.

    margin_percent: what is added to the gas that it takes.
    """
    native_wei = wire.quantity(node.call("eth_getBalance", [intent.sender, "latest"], str))
    if native_wei < spend.value_wei + INTRINSIC_GAS * price_wei:
        return Trial(native_wei=native_wei, shortage=f"{intent.sender} holds {native_wei} wei")
    if intent.pair is not None and intent.pair.contract is not None:
        held = token_balance(node, intent.pair.contract, intent.sender, "latest")
        if held < intent.units:
            return Trial(
                native_wei=native_wei, shortage=f"{intent.sender} holds {held} units of {intent.pair.currency}"
            )
    try:
        gas = _run(node, intent, spend)
    except RpcError as error:
        return _failed(error, native_wei)
    if gas is None:
        return Trial(native_wei=native_wei, refusal="the token answers that it does not make the transfer")
    gas_max = GAS_FACTOR_MAX * gas_figure
    if gas <= gas_max:
        return Trial(native_wei=native_wei, gas=min(gas * (100 + margin_percent) // 100, gas_max))
    if spend.data != "0x":
        raise AbsurdFeeError(f"{gas} gas for one transfer")
    # The recipient is a contract that does as it likes; we do not pay for that.
    return Trial(native_wei=native_wei, refusal=f"the recipient's contract takes {gas} gas")


def judge(trials: Sequence[Trial]) -> Trial:
    """Return what holds of what the nodes say.

    Raises SpendRefusedError where all refuse it, InsufficientCoinError where as many find it short as find it good.
    """
    good = [trial for trial in trials if not trial.refusal and not trial.shortage]
    short = [trial for trial in trials if trial.shortage]
    if short and len(short) >= len(good):
        raise InsufficientCoinError(short[0].shortage)
    if not good:
        raise SpendRefusedError(trials[0].refusal)
    # Gas that is not used costs nothing; too little of it would fail the payout.
    return Trial(gas=max(trial.gas for trial in good), native_wei=middle([trial.native_wei for trial in trials]))


def _failed(error: RpcError, native_wei: int) -> Trial:
    text = error.text.lower()
    # A token may name a shortage as its reason; but there is enough of it, as was seen before.
    if error.code == REVERTED or any(known in text for known in REVERT_TEXTS):
        return Trial(native_wei=native_wei, refusal=error.text)
    if any(known in text for known in SHORTAGE_TEXTS):
        return Trial(native_wei=native_wei, shortage=error.text)
    raise error


def _run(node: JsonRpc, intent: Intent, spend: Spend) -> int | None:
    """Return the gas that it takes, or None where it would answer false. RpcError where it would revert."""
    call = {"from": intent.sender, "to": spend.to, "value": hex(spend.value_wei), "data": spend.data}
    if spend.data != "0x":
        answer = wire.data(node.call("eth_call", [call, "latest"], str))
        # Some tokens (USDT on Ethereum) answer nothing and mean yes.
        if answer and not any(answer):
            return None
    gas = wire.quantity(node.call("eth_estimateGas", [call], str))
    if gas < INTRINSIC_GAS:
        # Signed with so little it could never be included, nor could anything behind it.
        raise ProviderError(f"eth_estimateGas: no transaction takes {gas} gas")
    return gas
