"""Tries a spend on a node without sending it: whether it is funded and has its effect, and its gas.

Called by chains.evm.spends.spender, which asks every provider: one provider alone neither fails a payout nor sends one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from typing import Any, Final

from chains import one_transfer
from chains.base import ProviderError, check_units, witnesses_needed
from chains.evm.spends.gas import AbsurdFeeError, Bid
from chains.evm.spends.library import ask_contract, calldata, eth, spelled
from chains.evm.spends.tx import Spend
from chains.net.json_rpc import JsonRpc, RpcError
from chains.spending import InsufficientCoinError, Intent, LoneRefusalError, SpendRefusedError
from core.catalogue.catalogue import Network
from core.catalogue.families import evm_parameters

# The least gas of any transaction.
INTRINSIC_GAS: Final = 21_000
GAS_MARGIN_PERCENT: Final = 20
# A transfer whose gas its recipient cannot influence may take this many times the catalogue's figure: token transfers,
# since only the issuer can change a token, and transfers between our own addresses.
GAS_FACTOR_MAX: Final = 2
# The most gas, as a multiple, for a call that only checks the effect.
CALL_FACTOR_MAX: Final = 4
# For spends between our own addresses, whose offer depends on the gas that the trial finds.
UNPRICED: Final = Bid(price_wei=0, tip_wei=0)
REVERTED: Final = 3
# Nodes' messages for a transaction that would fail. Most nodes, but not all, also use the code above.
REVERT_TEXTS: Final = (
    "revert", "invalid opcode", "vm exception", "vm execution error", "bad instruction", "out of gas",
    "gas required exceeds", "invalidfeopcode",
)  # fmt: skip
SHORTAGE_TEXTS: Final = ("insufficient funds", "insufficient balance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One node's result. The gas counts only if both texts are empty."""

    native_wei: int
    gas: int = 0
    refusal: str = ""
    shortage: str = ""


def token_balance(node: JsonRpc, contract: str, holder: str, at: object) -> int:
    """Return a holder's balance of a token, in token units. at: a height, a tag, or {"blockHash": …}."""
    return check_units(ask_contract(node, contract, calldata("balanceOf(address)", spelled(holder)), at))


def gas_figure(intent: Intent, network: Network) -> int:
    """Return the catalogue's gas figure for a transfer."""
    parameters = evm_parameters(network)
    return parameters.coin_gas if intent.pair is None else parameters.transfer_gas[intent.pair.currency]


def gas_max(intent: Intent, gas_figure: int) -> int:
    """Return the most gas that a transfer may take.

    A recipient of coin may burn all the gas of the transfer, so a payout gets only the gas that its fee paid for.
    """
    is_recipients_choice = intent.pair is not None and intent.pair.contract is None
    return gas_figure if is_recipients_choice else GAS_FACTOR_MAX * gas_figure


def gas_limit(intent: Intent, gas: int, *, gas_figure: int, margin_percent: int) -> int:
    """Return the gas limit to sign for a transfer that took this gas in a trial, at most gas_max.

    The margin ends at the gas that the fee paid for, unless the trial itself took more.
    """
    is_covered = intent.pair is not None and gas <= gas_figure
    return min(gas * (100 + margin_percent) // 100, gas_figure if is_covered else gas_max(intent, gas_figure))


def attempt(
    node: JsonRpc,
    intent: Intent,
    spend: Spend,
    *,
    gas_figure: int,
    bid: Bid,
    margin_percent: int = GAS_MARGIN_PERCENT,
) -> Trial:
    """Try a spend on one node. Balances come first, so that a shortage is never taken for a refusal.

    The spend is tried as it will be signed, at the offered price: a contract may act differently in a call without a
    price. margin_percent: the margin added to the gas of the trial.
    """
    native_wei = eth(node).get_balance(spelled(intent.wallet.address), "latest")
    if native_wei < spend.value_wei + INTRINSIC_GAS * bid.price_wei:
        return Trial(native_wei=native_wei, shortage=f"{intent.wallet.address} holds {native_wei} wei")
    if intent.pair is not None and intent.pair.contract is not None:
        balance = token_balance(node, intent.pair.contract, intent.wallet.address, "latest")
        if balance < intent.units:
            return Trial(
                native_wei=native_wei,
                shortage=f"{intent.wallet.address} holds {balance} units of {intent.pair.currency}",
            )
    most = gas_max(intent, gas_figure)
    affordable_gas = (native_wei - spend.value_wei) // bid.price_wei if bid.price_wei else CALL_FACTOR_MAX * most
    try:
        gas = _run(node, intent, spend, bid, call_gas=min(affordable_gas, CALL_FACTOR_MAX * most))
    except RpcError as error:
        return _failed(error, native_wei, is_short=affordable_gas < most)
    if gas is None:
        return Trial(native_wei=native_wei, refusal="the token answers that it does not make the transfer")
    if gas <= most:
        limit = gas_limit(intent, gas, gas_figure=gas_figure, margin_percent=margin_percent)
        return Trial(native_wei=native_wei, gas=limit)
    if spend.data != "0x":
        raise AbsurdFeeError(f"{gas} gas for one transfer")
    # The recipient is a contract that does as it likes; we do not pay for that.
    return Trial(native_wei=native_wei, refusal=f"the recipient's contract takes {gas} gas")


def judge(trials: Sequence[Trial], providers: int) -> Trial:
    """Return the agreed trial of all nodes.

    Raises SpendRefusedError if all nodes refuse the spend, InsufficientCoinError if at least as many find it short as
    find it good, LoneRefusalError if one node refuses it and the others are silent.
    """
    good = _good(trials)
    if not good:
        if len(trials) < witnesses_needed(providers):
            raise LoneRefusalError(f"one provider alone refuses it: {trials[0].refusal}")
        raise SpendRefusedError(trials[0].refusal)
    # The higher of two: too little gas would fail the payout. No answer exceeds the gas that was charged or, for a
    # token, the gas that its code can use.
    return Trial(
        gas=median_high(trial.gas for trial in good), native_wei=median_low(trial.native_wei for trial in trials)
    )


def is_refused(trials: Sequence[Trial], providers: int) -> bool:
    """Return True if a transfer would be refused; see chains.one_transfer. InsufficientCoinError as in judge()."""
    passed = len(_good(trials))
    return one_transfer.is_refused(
        refused=sum(bool(trial.refusal) for trial in trials), passed=passed, providers=providers
    )


def _good(trials: Sequence[Trial]) -> list[Trial]:
    """Return the successful trials. Raises InsufficientCoinError if at least as many found the wallet short."""
    good = [trial for trial in trials if not trial.refusal and not trial.shortage]
    short = [trial for trial in trials if trial.shortage]
    if short and len(short) >= len(good):
        raise InsufficientCoinError(short[0].shortage)
    return good


def _failed(error: RpcError, native_wei: int, *, is_short: bool) -> Trial:
    """Return a failed trial as a refusal or a shortage. is_short: it might succeed with more coin for gas."""
    text = error.text.lower()
    # A token may name a shortage as its reason, but the balance was checked before.
    if error.code == REVERTED or any(known in text for known in REVERT_TEXTS):
        refusal, shortage = ("", error.text) if is_short else (error.text, "")
        return Trial(native_wei=native_wei, refusal=refusal, shortage=shortage)
    if any(known in text for known in SHORTAGE_TEXTS):
        return Trial(native_wei=native_wei, shortage=error.text)
    raise error


def _run(node: JsonRpc, intent: Intent, spend: Spend, bid: Bid, *, call_gas: int) -> int | None:
    """Return the gas of a spend, or None if the token would return false. Raises RpcError if it would revert."""
    sender, to = spelled(intent.wallet.address), spelled(spend.to)
    call: Any = {"from": sender, "to": to, "value": spend.value_wei, "data": spend.data} | _priced(bid)
    if spend.data != "0x":
        # Without a gas limit, nodes require that the sender can pay for the highest one that they allow.
        answer = eth(node).call(call | {"gas": call_gas}, "latest")
        # Some tokens (USDT on Ethereum) return no data on success.
        if answer and not any(answer):
            return None
    gas = eth(node).estimate_gas(call)
    if gas < INTRINSIC_GAS:
        # With this gas limit it could never be included, nor could any transaction after it.
        raise ProviderError(f"eth_estimateGas: no transaction takes {gas} gas")
    return gas


def _priced(bid: Bid) -> dict[str, int]:
    """Return the price as it will be signed: see chains.evm.spends.gas about the legacy one."""
    if bid == UNPRICED:
        return {}
    if bid.tip_wei == bid.price_wei:
        return {"gasPrice": bid.price_wei}
    return {"maxFeePerGas": bid.price_wei, "maxPriorityFeePerGas": bid.tip_wei}
