"""Tries a spend on one node without sending it, and compares the nodes' views.

Called by chains.tron.spends.drafts, which asks every provider: one provider alone neither refuses a payout nor sends
one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_high, median_low

from chains import one_transfer
from chains.base import Block, ForeignKeyError, ProviderError, witnesses_needed
from chains.net.rest import RestNode
from chains.one_transfer import only_output
from chains.spending import InsufficientCoinError, Intent, LoneRefusalError, SpendRefusedError
from chains.tron import accounts, nodes, scan, transactions, wire
from chains.tron.accounts import Call, Prices
from chains.tron.nodes import TronProviders
from chains.tron.spends.fees import agreed_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One node's view of a spend."""

    prices: Prices
    solid: Block
    is_foreign: bool
    # The sender's sun, units of the token (0 for TRX), and free allowances.
    sun: int
    token_units: int
    staked_energy: int
    free_bytes: int
    # Whether the recipient's account does not exist yet.
    is_new: bool
    energy: int
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The values agreed from all views."""

    prices: Prices
    solid: Block
    sun: int
    token_units: int
    staked_energy: int
    free_bytes: int
    is_new: bool
    energy: int


def look(node: RestNode, intent: Intent) -> View:
    """Return a node's view of a spend."""
    sender, output = intent.wallet.address, only_output(intent)
    own, prices = accounts.account(node, sender), accounts.prices(node)
    token = None if intent.pair is None else intent.pair.contract
    resource = accounts.resource(node, sender)
    if token is None:
        to = accounts.account(node, output.recipient)
        token_units, tried, is_new = 0, Call(), not to.address
        refusal = "a contract takes no TRX by a transfer" if to.is_contract else ""
        if output.recipient == sender:
            refusal = "nobody sends TRX to himself"
    else:
        token_units, is_new = accounts.balance(node, sender, intent.pair), False
        tried = accounts.call(node, sender, token, transactions.calldata(output).hex())
        refusal = _refusal(tried, intent)
    return View(
        prices=prices,
        solid=nodes.solid(node),
        is_foreign=own.is_foreign(sender),
        sun=own.balance,
        token_units=token_units,
        staked_energy=resource.energy,
        # An account that does not exist yet will have the free bytes by the time that it signs.
        free_bytes=resource.bytes if own.address else prices.free_bytes,
        is_new=is_new,
        # Includes the extra energy of a busy contract.
        energy=tried.energy_used,
        refusal=refusal,
    )


def judge(views: Sequence[View], intent: Intent, providers: TronProviders) -> Verdict:
    """Return the verdict on a spend from all nodes' views.

    Raises ForeignKeyError if others may sign for the wallet, SpendRefusedError if most nodes refuse the spend,
    InsufficientCoinError if the wallet holds too little of the token, LoneRefusalError if one node alone refuses it,
    and ProviderError if one node alone says that others may sign.
    """
    foreign = sum(view.is_foreign for view in views)
    if foreign >= witnesses_needed(providers.count):
        raise ForeignKeyError(f"others than its own key may sign for {intent.wallet.address}")
    if 2 * foreign >= len(views):
        raise ProviderError(f"one provider alone says that others may sign for {intent.wallet.address}")
    token_units = _check_held(views, intent)
    good = [view for view in views if not view.refusal]
    refusals = [view.refusal for view in views if view.refusal]
    if len(refusals) > len(good):
        if len(refusals) < witnesses_needed(providers.count):
            raise LoneRefusalError(f"one provider alone refuses it: {refusals[0]}")
        raise SpendRefusedError(refusals[0])
    # The higher of two: a transaction with too little energy fails and still burns it.
    energy = median_high(view.energy for view in good)
    if _is_token(intent) and energy <= 0:
        raise ProviderError("no call of a token takes no energy")
    return Verdict(
        prices=agreed_prices(providers, [view.prices for view in good]),
        solid=_solid([view.solid for view in good]),
        sun=median_low(view.sun for view in views),
        token_units=token_units,
        staked_energy=median_low(view.staked_energy for view in good),
        free_bytes=median_low(view.free_bytes for view in good),
        is_new=any(view.is_new for view in good),
        energy=energy,
    )


def is_refused(views: Sequence[View], intent: Intent, providers: int) -> bool:
    """Return True if a token's transfer would be refused; see chains.one_transfer.

    Raises InsufficientCoinError if the sender holds too little of the token.
    """
    _check_held(views, intent)
    refused = sum(bool(view.refusal) for view in views)
    return one_transfer.is_refused(refused=refused, passed=len(views) - refused, providers=providers)


def _check_held(views: Sequence[View], intent: Intent) -> int:
    """Return the sender's units of the token. Raises InsufficientCoinError if they are too few."""
    token_units = median_low(view.token_units for view in views)
    if _is_token(intent) and token_units < intent.units:
        raise InsufficientCoinError(f"{intent.wallet.address} holds {token_units} units of the token")
    return token_units


def _is_token(intent: Intent) -> bool:
    return intent.pair is not None and intent.pair.contract is not None


def _solid(blocks: Sequence[Block]) -> Block:
    """Return the irreversible block that most nodes report, else the middle one; of two, the lower.

    Its time is no later than the middle of all. A transaction that refers to an invented block is never included, and
    no node may choose how long the spend waits for that.
    """
    [(most, count)] = Counter(blocks).most_common(1)
    middle = sorted(blocks, key=lambda block: block.height)[(len(blocks) - 1) // 2]
    chosen = most if count > 1 else middle
    return replace(chosen, time=min(chosen.time, median_low(block.time for block in blocks)))


def _refusal(tried: Call, intent: Intent) -> str:
    """Return the reason why a token's transfer would have no effect; "" if it would have one.

    The best known token on TRON returns false and still makes the transfer, so the log decides if the node shows it.
    """
    output, token = only_output(intent), _contract(intent)
    if wire.asked(output.recipient)[2:] == token:
        return "a token is lost in its own contract"
    if tried.refusal or tried.logs is None:
        return tried.refusal
    moved = [scan.moved_by(log) for log in tried.logs if wire.contract(log.address) == token]
    if (intent.wallet.address, output.recipient, output.units) in moved:
        return ""
    return "the token does not make the transfer"


def _contract(intent: Intent) -> str:
    """Return a token's contract in the form of logs."""
    token = None if intent.pair is None else intent.pair.contract
    return "" if token is None else wire.asked(token)[2:]
