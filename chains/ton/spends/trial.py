"""Looks at what a spend concerns on one node, and compares the nodes' views. Nothing is tried: no node offers that.

Called by chains.ton.spends.drafts, which asks every provider: one provider alone neither refuses a payout nor sends
one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from statistics import median_high, median_low
from typing import Final

from chains import one_transfer
from chains.base import ForeignKeyError, ProviderError, witnesses_needed
from chains.net import several
from chains.net.providers import Providers
from chains.spending import InsufficientCoinError, Intent, LoneRefusalError, Output, SpendRefusedError
from chains.ton import boc, nodes, transactions, wire
from chains.ton.cells import Cell, CellError
from chains.ton.jettons import Jetton, is_wallet
from chains.ton.nodes import Toncenter
from chains.ton.spends import accounts, contents, fees
from chains.ton.spends.accounts import COMES_NOT, LEAVES_NOT, Holding
from chains.ton.spends.prices import Prices

OF_A_JETTON: Final = "the recipient is a contract of a jetton, which belongs to nobody"
TO_ITSELF: Final = "a wallet pays nothing to itself"
# An index, a checksum and hashes at most double the bytes of cells, and base64 takes a third more.
CODE_FORMS: Final = 4
# The wallets of jettons are smaller, in base64.
WALLET_CHARS_MAX: Final = 16_384
LOCKED: Final = "the token's issuer has locked the sender's or the recipient's wallet"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One node's view of a spend, all after its newest blocks."""

    prices: Prices
    time: datetime
    is_foreign: bool
    is_frozen: bool
    # Whether the wallet's contract is there.
    is_made: bool
    # The wallet's coin, the rent that its next transaction takes, and its jettons; 0 for coin.
    units: int
    rent: int
    token_units: int
    # Of each output: whether a contract is there, that may refuse coin.
    actives: tuple[bool, ...]
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The values agreed from all views. bounces: for each output, whether coin returns that is refused."""

    prices: Prices
    time: datetime
    is_made: bool
    units: int
    rent: int
    token_units: int
    bounces: tuple[bool, ...]


def look(node: Toncenter, intent: Intent, jettons: Mapping[str, Jetton]) -> View:
    """Return a node's view of a spend."""
    jetton, sender = contents.jetton_of(intent, jettons), intent.wallet.address
    shown, by = several.every(partial(nodes.account, node), _concerned(intent, jetton)), fees.read(node)
    own = shown[sender]
    wallet, time = accounts.wallet_of(own), nodes.header(node, own.block_id.seqno).time
    holding = _holding(shown, jetton, sender)
    marks = [_holding(shown, jetton, each).marks for each in _recipients(intent)] if _is_governed(jetton) else []
    refusals = [_refusal(output, sender, shown, jettons) for output in intent.outputs]
    is_locked = bool(holding.marks & LEAVES_NOT) or any(mark & COMES_NOT for mark in marks)
    return View(
        prices=by,
        time=time,
        is_foreign=wallet.is_foreign,
        is_frozen=wallet.is_frozen,
        is_made=accounts.status_of(own) == "active",
        units=own.units,
        rent=_rent(node, own, sender, by, time),
        token_units=holding.units,
        actives=tuple(accounts.status_of(shown[each.recipient]) == "active" for each in intent.outputs),
        refusal=next(filter(None, refusals), LOCKED if is_locked else ""),
    )


def judge(views: Sequence[View], intent: Intent, providers: Providers[Toncenter]) -> Verdict:
    """Return the values agreed from all nodes' views.

    Raises ForeignKeyError if others may send for the wallet, SpendRefusedError if most nodes refuse the spend,
    InsufficientCoinError if the wallet holds too little of the token, LoneRefusalError if one node alone refuses it,
    and ProviderError if one node alone says that others may send, or if nodes disagree about a recipient's contract.
    """
    _check_key(views, intent, providers.count)
    if 2 * sum(view.is_frozen for view in views) > len(views):
        raise InsufficientCoinError(f"{intent.wallet.address} is frozen for its debts: send coin with its state there")
    token_units = _check_held(views, intent)
    good = [view for view in views if not view.refusal]
    refusals = [view.refusal for view in views if view.refusal]
    if len(refusals) > len(good):
        if len(refusals) < witnesses_needed(providers.count):
            raise LoneRefusalError(f"one provider alone refuses it: {refusals[0]}")
        raise SpendRefusedError(refusals[0])
    return Verdict(
        prices=fees.agreed(providers, [view.prices for view in good]),
        time=median_low(view.time for view in views),
        is_made=all(view.is_made for view in good),
        units=median_low(view.units for view in views),
        rent=median_high(view.rent for view in views),
        token_units=token_units,
        bounces=_agreed_actives([view.actives for view in good]),
    )


def is_refused(views: Sequence[View], intent: Intent, providers: int) -> bool:
    """Return True if a token's transfer would be refused; see chains.one_transfer.

    Raises InsufficientCoinError if the sender holds too little of the token.
    """
    _check_held(views, intent)
    refused = sum(bool(view.refusal) for view in views)
    return one_transfer.is_refused(refused=refused, passed=len(views) - refused, providers=providers)


def _agreed_actives(answers: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
    """Return for each output whether most nodes show a contract there. Raises ProviderError on a tie.

    Coin for a fresh address would come back, and coin that a contract refuses would be lost with it.
    """
    counts = [sum(column) for column in zip(*answers, strict=True)]
    if any(2 * count == len(answers) for count in counts):
        raise ProviderError("providers disagree whether a recipient has a contract")
    return tuple(2 * count > len(answers) for count in counts)


def _check_key(views: Sequence[View], intent: Intent, providers: int) -> None:
    foreign = sum(view.is_foreign for view in views)
    if foreign >= witnesses_needed(providers):
        raise ForeignKeyError(f"others than its own key may send for {intent.wallet.address}")
    if 2 * foreign >= len(views):
        raise ProviderError(f"one provider alone says that others may send for {intent.wallet.address}")


def _check_held(views: Sequence[View], intent: Intent) -> int:
    """Return the sender's units of the token. Raises InsufficientCoinError if they are too few."""
    units = median_low(view.token_units for view in views)
    is_token = intent.pair is not None and intent.pair.contract is not None
    if is_token and units < intent.units:
        raise InsufficientCoinError(f"{intent.wallet.address} holds {units} units of the token")
    return units


def _recipients(intent: Intent) -> list[str]:
    return list(dict.fromkeys(output.recipient for output in intent.outputs))


def _is_governed(jetton: Jetton | None) -> bool:
    return jetton is not None and jetton.form == "governed"


def _concerned(intent: Intent, jetton: Jetton | None) -> list[str]:
    """Return the addresses whose accounts decide about a spend, each once."""
    owners = [intent.wallet.address, *_recipients(intent)]
    holders = owners if _is_governed(jetton) else owners[:1]
    return list(dict.fromkeys([*owners, *(jetton.wallet(each) for each in holders if jetton is not None)]))


def _holding(shown: Mapping[str, wire.Account], jetton: Jetton | None, owner: str) -> Holding:
    if jetton is None:
        return Holding(units=0, marks=0)
    return accounts.holding_of(shown[jetton.wallet(owner)], jetton)


def _refusal(output: Output, sender: str, shown: Mapping[str, wire.Account], jettons: Mapping[str, Jetton]) -> str:
    """Return the reason why a recipient can have no transfer; '' if it can. Filling a number moves nothing."""
    if output.recipient == sender:
        return TO_ITSELF if output.units else ""
    account = shown[output.recipient]
    is_offered = any(_is_code(account.code, jetton.wallet_code) for jetton in jettons.values())
    is_refused = output.recipient in jettons or is_offered or _is_of_any_jetton(output.recipient, account)
    return OF_A_JETTON if is_refused else ""


def _is_of_any_jetton(address: str, account: wire.Account) -> bool:
    """Return True if a contract is a jetton's wallet, offered or not; False for a longer one, or no cells, unread."""
    if not account.code or not account.data or max(len(account.code), len(account.data)) > WALLET_CHARS_MAX:
        return False
    try:
        return is_wallet(address, boc.read_base64(account.code), boc.read_base64(account.data))
    except CellError:
        return False


def _is_code(text: str, code: Cell) -> bool:
    """Return True if an account's code is the expected one; False for any that is longer, or no cells, unread.

    Anyone chooses the code of his own contract, and some is too long to be read.
    """
    if not text or len(text) > CODE_FORMS * len(boc.write(code)):
        return False
    try:
        return boc.read_base64(text) == code
    except CellError:
        return False


def _rent(node: Toncenter, own: wire.Account, address: str, by: Prices, time: datetime) -> int:
    """Return the rent that the wallet's next transaction takes, by its last one."""
    entries = nodes.history(node, address, limit=1)
    if not entries:
        return 0
    last = transactions.read(boc.read_base64(entries[0].data))
    if last.address != address:
        raise ProviderError("another account's transaction")
    seconds = max(0, int(time.timestamp()) - last.now) + fees.RENT_AHEAD_S
    return last.storage_due + by.rent(accounts.parts_of(own), seconds)
