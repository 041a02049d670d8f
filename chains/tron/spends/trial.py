"""Looks at a spend on one node without sending it, and holds the nodes' views of it against each other.

Called by chains.tron.spends.drafts, which asks every provider: what one alone says neither refuses a payout nor sends
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
    """What one node says of a spend."""

    prices: Prices
    solid: Block
    is_foreign: bool
    # Of the sender: sun, units of the token (0 where it is TRX), and what he may use for nothing.
    sun: int
    token_units: int
    staked_energy: int
    free_bytes: int
    # Of the recipient.
    is_new: bool
    energy: int
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What holds of all views."""

    prices: Prices
    solid: Block
    sun: int
    token_units: int
    staked_energy: int
    free_bytes: int
    is_new: bool
    energy: int


def look(node: RestNode, intent: Intent) -> View:
    """Return what a node says of a spend."""
    sender, output = intent.wallet.address, only_output(intent)
    own, prices = accounts.account(node, sender), accounts.prices(node)
    token = None if intent.pair is None else intent.pair.contract
    resource = accounts.resource(node, sender)
    if token is None:
        to = accounts.account(node, output.recipient)
        held, tried, is_new = 0, Call(), not to.address
        refusal = "a contract takes no TRX by a transfer" if to.is_contract else ""
        if output.recipient == sender:
            refusal = "nobody sends TRX to himself"
    else:
        held, is_new = accounts.held(node, sender, intent.pair), False
        tried = accounts.call(node, sender, token, transactions.calldata(output).hex())
        refusal = _refusal(tried, intent)
    return View(
        prices=prices,
        solid=nodes.solid(node),
        is_foreign=own.is_foreign(sender),
        sun=own.balance,
        token_units=held,
        staked_energy=resource.energy,
        # Whoever is there by the time that he signs has the free ones.
        free_bytes=resource.bytes if own.address else prices.free_bytes,
        is_new=is_new,
        # What a busy contract takes on top is in it.
        energy=tried.energy_used,
        refusal=refusal,
    )


def judge(views: Sequence[View], intent: Intent, providers: TronProviders) -> Verdict:
    """Return what holds of what the nodes say.

    Raises ForeignKeyError where others may sign for the wallet, SpendRefusedError where most refuse it,
    InsufficientCoinError where there is too little of the token, LoneRefusalError where one alone refuses it, and
    ProviderError where one alone says that others may sign.
    """
    foreign = sum(view.is_foreign for view in views)
    if foreign >= witnesses_needed(providers.count):
        raise ForeignKeyError(f"others than its own key may sign for {intent.wallet.address}")
    if 2 * foreign >= len(views):
        raise ProviderError(f"one provider alone says that others may sign for {intent.wallet.address}")
    held = _check_held(views, intent)
    good = [view for view in views if not view.refusal]
    refusals = [view.refusal for view in views if view.refusal]
    if len(refusals) > len(good):
        if len(refusals) < witnesses_needed(providers.count):
            raise LoneRefusalError(f"one provider alone refuses it: {refusals[0]}")
        raise SpendRefusedError(refusals[0])
    # Of two the higher: too little of it burns what it takes.
    energy = median_high(view.energy for view in good)
    if _is_token(intent) and energy <= 0:
        raise ProviderError("no call of a token takes no energy")
    return Verdict(
        prices=agreed_prices(providers, [view.prices for view in good]),
        solid=_solid([view.solid for view in good]),
        sun=median_low(view.sun for view in views),
        token_units=held,
        staked_energy=median_low(view.staked_energy for view in good),
        free_bytes=median_low(view.free_bytes for view in good),
        is_new=any(view.is_new for view in good),
        energy=energy,
    )


def is_refused(views: Sequence[View], intent: Intent, providers: int) -> bool:
    """Return whether a token's transfer would be refused; see chains.one_transfer.

    Raises InsufficientCoinError where there is too little of the token.
    """
    _check_held(views, intent)
    refused = sum(bool(view.refusal) for view in views)
    return one_transfer.is_refused(refused=refused, passed=len(views) - refused, providers=providers)


def _check_held(views: Sequence[View], intent: Intent) -> int:
    """Return what the sender holds of the token. Raises InsufficientCoinError where that is too little."""
    held = median_low(view.token_units for view in views)
    if _is_token(intent) and held < intent.units:
        raise InsufficientCoinError(f"{intent.wallet.address} holds {held} units of the token")
    return held


def _is_token(intent: Intent) -> bool:
    return intent.pair is not None and intent.pair.contract is not None


def _solid(told: Sequence[Block]) -> Block:
    """Return the irreversible block that most tell, else the middle one, of two the lower; no later than the middle.

    What refers to a block that is none can be in no block, and nobody may have it wait for that until a day of his own
    choice.
    """
    [(most, count)] = Counter(told).most_common(1)
    middle = sorted(told, key=lambda block: block.height)[(len(told) - 1) // 2]
    chosen = most if count > 1 else middle
    return replace(chosen, time=min(chosen.time, median_low(block.time for block in told)))


def _refusal(tried: Call, intent: Intent) -> str:
    """Return why a token's transfer would have no effect.

    The best known token here answers false and makes the transfer; what counts is the log, where the node tells it.
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
    """Return a token's contract as logs name it."""
    token = None if intent.pair is None else intent.pair.contract
    return "" if token is None else wire.asked(token)[2:]
