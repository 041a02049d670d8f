"""Tries a spend on one node without sending it, and compares the nodes' views.

Called by chains.solana.spends.drafts, which asks every provider: one provider alone neither refuses a payout nor sends
one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from typing import Any, Final

from chains import one_transfer
from chains.base import ProviderError, witnesses_needed
from chains.net.json_rpc import JsonRpc, Rpc
from chains.net.lone import FACTOR_MAX
from chains.net.providers import Providers
from chains.one_transfer import only_output
from chains.solana import programs, transactions
from chains.solana.spends import fees, outcomes, questions
from chains.solana.spends.fees import Rents
from chains.solana.spends.questions import Account
from chains.solana.transactions import Body
from chains.spending import InsufficientCoinError, Intent, LoneRefusalError, SpendRefusedError
from core.catalogue.families import TRAITS

# Whole outcomes by which an account lacks SOL.
SHORTAGES: Final = frozenset({"AccountNotFound", "InsufficientFundsForFee", "InsufficientFundsForRent"})
# The blocks after its own that take a transaction, and how far apart the providers may be.
LIFE_BLOCKS: Final = TRAITS["solana"].window_blocks
APART_MAX: Final = 150
OF_A_PROGRAM: Final = "the recipient is an account of a program, which has no key"
TO_ITSELF: Final = "a wallet pays nothing to itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One node's view of a spend."""

    # The newest finalized blockhash with its slot and the last block that takes it, and the chain's height in blocks.
    reference: str
    slot: int
    last_block: int
    height: int
    rents: Rents
    price: int
    # The payer's lamports; the sender's lamports, or units of the token.
    payer_units: int
    units: int
    # The lamports of the sender's token account.
    holding_units: int
    used: int
    # The reason for which it would have no effect, and the reason for which the payer cannot pay for it now.
    refusal: str
    shortage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The values agreed from all views."""

    reference: str
    last_block: int
    rents: Rents
    price: int
    payer_units: int
    units: int
    holding_units: int
    used: int


def contents(intent: Intent, *, closes: bool = False, **figures: Any) -> Body:
    """Return the contents of a message for an intent. Its wallet pays, unless the intent names a payer."""
    output, pair = only_output(intent), intent.pair
    token = None if pair is None else pair.contract
    return Body(
        payer=(intent.payer or intent.wallet).address,
        sender=intent.wallet.address,
        recipient=output.recipient,
        units=output.units,
        memo=output.memo,
        mint=token or "",
        decimals=0 if token is None or pair is None else pair.decimals,
        closes=closes,
        **figures,
    )


def look(node: Rpc, intent: Intent, *, closes: bool = False) -> View:
    """Return a node's view of a spend. closes: the sender's token account is closed, if it holds nothing more."""
    slot, latest = questions.latest(node)
    height, rents = questions.height(node), fees.rents(node)
    body = contents(intent, closes=closes, limit=questions.LIMIT_MAX, price=0, mark=0, reference=latest.blockhash)
    there = dict(zip(_names(body), questions.accounts(node, _names(body)), strict=True))
    refusal = _refusal(body, there[body.recipient], rents)
    used, shortage = 0, ""
    if not refusal:
        used, refusal, shortage = _tried(node, body)
    return View(
        reference=latest.blockhash,
        slot=slot,
        last_block=latest.last_block,
        height=height,
        rents=rents,
        price=fees.price(node, writable(body)),
        payer_units=_lamports(there[body.payer]),
        units=_units(body, there),
        holding_units=_lamports(there[programs.associated(body.sender, body.mint)]) if body.mint else 0,
        used=used,
        refusal=refusal,
        shortage=shortage,
    )


def judge(views: Sequence[View], intent: Intent, providers: Providers[JsonRpc]) -> Verdict:
    """Return the values agreed from all nodes' views.

    Raises SpendRefusedError if most nodes refuse the spend, InsufficientCoinError if the wallet holds too little,
    LoneRefusalError if one node alone refuses it, and ProviderError if the nodes are too far apart.
    """
    _check_units(views, intent)
    good = [view for view in views if not view.refusal and not view.shortage]
    refusals = [view.refusal for view in views if view.refusal]
    if len(refusals) > len(good):
        if len(refusals) < witnesses_needed(providers.count):
            raise LoneRefusalError(f"one provider alone refuses it: {refusals[0]}")
        raise SpendRefusedError(refusals[0])
    if not good:
        raise InsufficientCoinError(next(view.shortage for view in views if view.shortage))
    chosen = sorted(good, key=lambda view: view.slot)[(len(good) - 1) // 2]
    return Verdict(
        reference=chosen.reference,
        last_block=_last_block(views, chosen),
        rents=fees.agreed_rents([view.rents for view in good]),
        price=fees.agreed_price(providers, [view.price for view in good]),
        payer_units=median_low(view.payer_units for view in views),
        units=median_low(view.units for view in views),
        holding_units=median_high(view.holding_units for view in views),
        used=_agreed_units([view.used for view in good]),
    )


def _agreed_units(used: Sequence[int]) -> int:
    """Return the median of the compute units, the higher of two, yet at most double what another node found."""
    others = sorted(used)[:-1] or used
    return min(median_high(used), FACTOR_MAX * others[-1])


def is_refused(views: Sequence[View], intent: Intent, providers: int) -> bool:
    """Return True if a token's transfer would be refused; see chains.one_transfer.

    Raises InsufficientCoinError if the sender holds too little of the token.
    """
    _check_units(views, intent)
    refused = sum(bool(view.refusal) for view in views)
    passed = sum(not view.refusal and not view.shortage for view in views)
    if not refused and not passed:
        raise InsufficientCoinError(views[0].shortage)
    return one_transfer.is_refused(refused=refused, passed=passed, providers=providers)


def writable(body: Body) -> list[str]:
    """Return the accounts that a transfer writes."""
    if not body.mint:
        return sorted({body.payer, body.sender, body.recipient})
    return sorted({body.payer, *(programs.associated(owner, body.mint) for owner in (body.sender, body.recipient))})


def _last_block(views: Sequence[View], chosen: View) -> int:
    """Return the last block, counted as heights are, that can include a transaction upon the chosen blockhash.

    It may be a later one. A block that is too early would have a spend called dead while the chain may still include
    it, so that the middle of all providers counts, the higher of two. One that is too late would keep it waiting:
    ProviderError.
    """
    heights = [view.height for view in views]
    low, high = median_low(heights), median_high(heights)
    last = max(chosen.last_block, high + LIFE_BLOCKS)
    if last > low + LIFE_BLOCKS + APART_MAX:
        raise ProviderError(f"providers are at the blocks {low} and {high}, and a blockhash lives until {last}")
    return last


def _names(body: Body) -> list[str]:
    """Return the accounts to look at."""
    source = [programs.associated(body.sender, body.mint)] if body.mint else []
    return list(dict.fromkeys([body.payer, body.sender, body.recipient, *source]))


def _units(body: Body, there: Mapping[str, Account | None]) -> int:
    """Return the sender's lamports, or units of the token."""
    if not body.mint:
        return _lamports(there[body.sender])
    source = there[programs.associated(body.sender, body.mint)]
    return 0 if source is None else source.units(body.sender, body.mint)


def _lamports(account: Account | None) -> int:
    return 0 if account is None else account.lamports


def _check_units(views: Sequence[View], intent: Intent) -> None:
    """Raise InsufficientCoinError if the sender holds too little of what it is to move."""
    units = median_low(view.units for view in views)
    if units < intent.units:
        raise InsufficientCoinError(f"{intent.wallet.address} holds {units} units of the coin")


def _refusal(body: Body, recipient: Account | None, rents: Rents) -> str:
    """Return the reason why the recipient can have no such transfer; '' if it can."""
    if body.recipient == body.sender:
        return TO_ITSELF
    if not programs.is_on_curve(body.recipient) or (recipient is not None and not recipient.is_plain):
        return OF_A_PROGRAM
    if not body.mint and recipient is None and body.units < rents.plain:
        return f"a new address takes at least {rents.plain} lamports"
    return ""


def _tried(node: Rpc, body: Body) -> tuple[int, str, str]:
    """Return the compute units that a transfer took, the chain's refusal, and the shortage for which it failed.

    Raises ProviderError if the trial failed for a reason that says nothing about the transfer.
    """
    simulated = questions.simulate(node, transactions.unsigned(transactions.message(body)))
    if simulated.err is None:
        if not simulated.used:
            raise ProviderError("no transfer takes no compute units")
        return simulated.used, "", ""
    kind, cause = outcomes.split(simulated.err)
    if kind in SHORTAGES or cause == outcomes.TOO_LITTLE:
        return 0, "", f"{body.payer} or {body.sender} holds too little"
    if kind != outcomes.OF_AN_INSTRUCTION:
        raise ProviderError(f"a trial ended with {kind}")
    return 0, outcomes.problem(simulated.err), ""
