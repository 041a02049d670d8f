"""Finds the transfers to us in one block, by the balances that each transaction names before and after itself.

Called by chains.solana.reader. Balances cover what instructions do not show: calls of programs within programs, keys of
lookup tables, new accounts, and fees that a token takes. SOL counts at the owner, a token at the associated account of
its owner, for an offered mint and its program.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from chains.base import Block, BlockScan, ContradictionError, Transfer
from chains.net.json_rpc import JsonRpc
from chains.solana import nodes, programs, wire
from core.catalogue.catalogue import Pair

Ours = Callable[[Collection[str]], Collection[str]]
# The fee is taken of the first key.
PAYER: Final = 0


@dataclass(frozen=True, slots=True)
class Assets:
    """The coins to look for."""

    # None if SOL is not offered.
    native: str | None
    # By mint.
    tokens: Mapping[str, str]


class Credit(NamedTuple):
    """A balance that rose. `account` is the token account; '' for SOL, which lies at the recipient itself."""

    txid: str
    place: int
    currency: str
    units: int
    sender: str
    recipient: str
    account: str
    mint: str


@dataclass(frozen=True, slots=True)
class Read:
    """A block as one node shows it, with the credits to any recipient."""

    block: Block
    credits: Sequence[Credit] = field(repr=False)
    # (signer, txid) of every transaction.
    sent: tuple[tuple[str, str], ...] = field(repr=False)


def assets_of(pairs: Iterable[Pair]) -> Assets:
    """Return the offered coins."""
    known = tuple(pairs)
    native = next((pair.currency for pair in known if pair.contract is None), None)
    return Assets(native, {pair.contract: pair.currency for pair in known if pair.contract is not None})


def read(node: JsonRpc, slot: int, assets: Assets) -> Read:
    """Return the block of a slot. Raises LackedError, and ContradictionError if its parts do not fit each other."""
    full = nodes.whole(node, slot, wire.FullBlock, details="accounts")
    block = wire.block(full, slot)
    wire.check_names([key.pubkey for entry in full.transactions for key in entry.transaction.account_keys], "a key")
    wire.check_names([name for entry in full.transactions for name in entry.transaction.signatures], "a signature")
    sent = [(signer, _txid(entry)) for entry in full.transactions for signer in _signers(entry)]
    if len({_txid(entry) for entry in full.transactions}) != len(full.transactions):
        raise ContradictionError(f"block {slot} has a transaction twice")
    return Read(block, [credit for entry in full.transactions for credit in credits_of(entry, assets)], tuple(sent))


def matched(reads: Collection[Read], ours: Ours) -> list[BlockScan]:
    """Return the scans of blocks, after asking once which of all recipients are ours."""
    mine = set(ours({credit.recipient for each in reads for credit in each.credits}))
    return [BlockScan(block=each.block, transfers=transfers_to(mine, each.credits), sent=each.sent) for each in reads]


def transfers_to(mine: Collection[str], credited: Iterable[Credit]) -> tuple[Transfer, ...]:
    """Return the credits to some recipients. Raises ContradictionError if one transaction credits an account twice."""
    credited_to = [credit for credit in credited if credit.recipient in mine and _is_associated(credit)]
    if len({(credit.txid, credit.currency, credit.recipient) for credit in credited_to}) != len(credited_to):
        raise ContradictionError("a transaction names an account twice")
    return tuple(map(_transfer, credited_to))


def credits_of(entry: wire.Entry, assets: Assets) -> Iterator[Credit]:
    """Yield the balances that a transaction raised, to any recipient; none if it failed."""
    meta, keys = entry.meta, entry.transaction.account_keys
    if not keys or not len(keys) == len(meta.pre_balances) == len(meta.post_balances):
        raise ContradictionError("a transaction has more or fewer balances than keys")
    if meta.err is not None:
        return
    if assets.native is not None:
        yield from _coins(entry, assets.native)
    for mint in {each.mint for each in meta.post_token_balances if each.mint in assets.tokens}:
        yield from _tokens(entry, mint, assets.tokens[mint])


def _coins(entry: wire.Entry, currency: str) -> Iterator[Credit]:
    keys, meta = entry.transaction.account_keys, entry.meta
    changes = [after - before for before, after in zip(meta.pre_balances, meta.post_balances, strict=True)]
    changes[PAYER] += meta.fee
    # SOL that leaves a token account, as its rent does when it is closed, is its owner's.
    owners = {each.account_index: each.owner for each in meta.pre_token_balances}
    fallen = [place for place, change in enumerate(changes) if change < 0]
    sender = _one_of(dict.fromkeys(owners.get(place) or keys[place].pubkey for place in fallen))
    changes[PAYER] -= meta.fee
    for place, units in enumerate(changes):
        if units > 0:
            yield Credit(_txid(entry), place, currency, units, sender, keys[place].pubkey, "", "")


def _tokens(entry: wire.Entry, mint: str, currency: str) -> Iterator[Credit]:
    keys, program = entry.transaction.account_keys, programs.program_of(mint)
    before = _holdings(entry.meta.pre_token_balances, mint, len(keys))
    after = _holdings(entry.meta.post_token_balances, mint, len(keys))
    sender = _one_of(_fallen(before.values(), after.values()))
    for place, holding in after.items():
        was = before.get(place)
        units = wire.units(holding.ui_token_amount) - (wire.units(was.ui_token_amount) if was else 0)
        if units > 0 and holding.program_id == program and (was is None or _kind(was) == _kind(holding)):
            account = keys[place].pubkey
            yield Credit(_txid(entry), place, currency, units, sender, holding.owner, account, mint)


def _holdings(listed: Sequence[wire.Holding], mint: str, keys: int) -> dict[int, wire.Holding]:
    """Return the accounts of a mint by their places."""
    places = {each.account_index: each for each in listed}
    if len(places) != len(listed) or any(place >= keys for place in places):
        raise ContradictionError("balances of tokens at other places than a transaction's keys")
    holdings = {place: each for place, each in places.items() if each.mint == mint}
    if not all(each.owner and each.program_id for each in holdings.values()):
        raise ContradictionError("a node names neither owner nor program of a token account")
    wire.check_names([each.owner for each in holdings.values()], "an owner")
    return holdings


def _fallen(before: Iterable[wire.Holding], after: Iterable[wire.Holding]) -> Iterator[str]:
    """Yield the owners who have less of a token than before."""
    change: Counter[str] = Counter()
    for holdings, sign in ((before, -1), (after, 1)):
        for each in holdings:
            change[each.owner] += sign * wire.units(each.ui_token_amount)
    return (owner for owner, units in change.items() if units < 0)


def _kind(holding: wire.Holding) -> tuple[str, str]:
    return holding.owner, holding.program_id


def _one_of(owners: Iterable[str]) -> str:
    """Return the only owner; '' if there are several, or none."""
    known = list(owners)
    return known[0] if len(known) == 1 else ""


def _is_associated(credit: Credit) -> bool:
    """Return True if a credit is of SOL, or at the one token account of its owner that we sweep."""
    return not credit.mint or credit.account == programs.associated(
        credit.recipient, credit.mint, programs.program_of(credit.mint)
    )


def _transfer(credit: Credit) -> Transfer:
    return Transfer(
        txid=wire.txid(credit.txid),
        ordinal=str(credit.place),
        currency=credit.currency,
        units=credit.units,
        sender=credit.sender and wire.key(credit.sender),
        recipient=credit.recipient,
    )


def _txid(entry: wire.Entry) -> str:
    return entry.transaction.signatures[0]


def _signers(entry: wire.Entry) -> list[str]:
    """Return the signers of a transaction, who are as many as its signatures."""
    signers = [key.pubkey for key in entry.transaction.account_keys if key.signer]
    if not signers or len(signers) != len(entry.transaction.signatures):
        raise ContradictionError("a transaction has more or fewer signatures than signers")
    return signers
