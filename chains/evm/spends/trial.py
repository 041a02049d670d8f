"""Tries a spend on a node without sending it: is it funded, would it have its effect, what gas does it take.

Called by chains.evm.spends.spender, which asks every provider: what one alone says neither fails a payout nor sends
one.
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

# No transaction takes less.
INTRINSIC_GAS: Final = 21_000
GAS_MARGIN_PERCENT: Final = 20
# What no recipient decides may take this many times the catalogue's figure: a token that was changed, which only its
# issuer can do, and transfers that are nobody's payout.
GAS_FACTOR_MAX: Final = 2
# What a call may use at most that is only to tell whether it would have its effect.
CALL_FACTOR_MAX: Final = 4
# Where what is offered depends on the gas that the trial finds: for spends between our own addresses alone.
UNPRICED: Final = Bid(price_wei=0, tip_wei=0)
REVERTED: Final = 3
# What nodes call a transaction that would fail; most, not all, also use the code above.
REVERT_TEXTS: Final = (
    "revert", "invalid opcode", "vm exception", "vm execution error", "bad instruction", "out of gas",
    "gas required exceeds", "invalidfeopcode",
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
    """Return a holder's tokens, in token units. at: a height, a tag, or {"blockHash": …}."""
    return check_units(ask_contract(node, contract, calldata("balanceOf(address)", spelled(holder)), at))


def gas_figure(intent: Intent, network: Network) -> int:
    """Return the gas that the catalogue reckons with for such a transfer."""
    parameters = evm_parameters(network)
    return parameters.coin_gas if intent.pair is None else parameters.transfer_gas[intent.pair.currency]


def gas_max(intent: Intent, gas_figure: int) -> int:
    """Return the gas that a transfer may take at most.

    A recipient of coin may burn all that he is given: in a payout that is what its fee was charged for.
    """
    is_recipients_choice = intent.pair is not None and intent.pair.contract is None
    return gas_figure if is_recipients_choice else GAS_FACTOR_MAX * gas_figure


def gas_limit(intent: Intent, gas: int, *, gas_figure: int, margin_percent: int) -> int:
    """Return what to sign for a transfer that takes so much gas in a trial, and no more than gas_max.

    The margin ends at what the fee was charged for, where the trial itself did not go beyond it.
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
    """Ask one node. Balances come first, so that a shortage is never taken for a refusal.

    It is tried as it will be signed, at the price that is offered: a contract may do another thing for a call that
    costs nothing. margin_percent: what is added to the gas that it takes.
    """
    native_wei = eth(node).get_balance(spelled(intent.wallet.address), "latest")
    if native_wei < spend.value_wei + INTRINSIC_GAS * bid.price_wei:
        return Trial(native_wei=native_wei, shortage=f"{intent.wallet.address} holds {native_wei} wei")
    if intent.pair is not None and intent.pair.contract is not None:
        held = token_balance(node, intent.pair.contract, intent.wallet.address, "latest")
        if held < intent.units:
            return Trial(
                native_wei=native_wei, shortage=f"{intent.wallet.address} holds {held} units of {intent.pair.currency}"
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
    """Return what holds of what the nodes say.

    Raises SpendRefusedError where all refuse it, InsufficientCoinError where as many find it short as find it good,
    LoneRefusalError where one alone refuses it and the others are silent.
    """
    good = _good(trials)
    if not good:
        if len(trials) < witnesses_needed(providers):
            raise LoneRefusalError(f"one provider alone refuses it: {trials[0].refusal}")
        raise SpendRefusedError(trials[0].refusal)
    # Of two the higher: too little gas would fail the payout, and none of them is more than was charged for or, of a
    # token, than its code makes use of.
    return Trial(
        gas=median_high(trial.gas for trial in good), native_wei=median_low(trial.native_wei for trial in trials)
    )


def is_refused(trials: Sequence[Trial], providers: int) -> bool:
    """Return whether a transfer would be refused; see chains.one_transfer. Raises InsufficientCoinError as judge()."""
    passed = len(_good(trials))
    return one_transfer.is_refused(
        refused=sum(bool(trial.refusal) for trial in trials), passed=passed, providers=providers
    )


def _good(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that went well. Raises InsufficientCoinError if no more did than found the wallet short."""
    good = [trial for trial in trials if not trial.refusal and not trial.shortage]
    short = [trial for trial in trials if trial.shortage]
    if short and len(short) >= len(good):
        raise InsufficientCoinError(short[0].shortage)
    return good


def _failed(error: RpcError, native_wei: int, *, is_short: bool) -> Trial:
    """Tell a refusal from a shortage. is_short: with more coin for gas it might have gone well."""
    text = error.text.lower()
    # A token may name a shortage as its reason; but there is enough of it, as was seen before.
    if error.code == REVERTED or any(known in text for known in REVERT_TEXTS):
        refusal, shortage = ("", error.text) if is_short else (error.text, "")
        return Trial(native_wei=native_wei, refusal=refusal, shortage=shortage)
    if any(known in text for known in SHORTAGE_TEXTS):
        return Trial(native_wei=native_wei, shortage=error.text)
    raise error


def _run(node: JsonRpc, intent: Intent, spend: Spend, bid: Bid, *, call_gas: int) -> int | None:
    """Return the gas that it takes, or None if it would answer false. RpcError if it would revert."""
    sender, to = spelled(intent.wallet.address), spelled(spend.to)
    call: Any = {"from": sender, "to": to, "value": spend.value_wei, "data": spend.data} | _priced(bid)
    if spend.data != "0x":
        # Without a limit of its own, nodes ask whether the sender could pay for as much as they ever allow.
        answer = eth(node).call(call | {"gas": call_gas}, "latest")
        # Some tokens (USDT on Ethereum) answer nothing and mean yes.
        if answer and not any(answer):
            return None
    gas = eth(node).estimate_gas(call)
    if gas < INTRINSIC_GAS:
        # Signed with so little it could never be included, nor could anything behind it.
        raise ProviderError(f"eth_estimateGas: no transaction takes {gas} gas")
    return gas


def _priced(bid: Bid) -> dict[str, int]:
    """Return the price as it will be signed: see chains.evm.spends.gas about the legacy one."""
    if bid == UNPRICED:
        return {}
    if bid.tip_wei == bid.price_wei:
        return {"gasPrice": bid.price_wei}
    return {"maxFeePerGas": bid.price_wei, "maxPriorityFeePerGas": bid.tip_wei}
