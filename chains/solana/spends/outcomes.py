"""Reads the outcome of a transaction: its error, and how it changed the balances of its accounts.

Called by the modules that try spends and that find their fate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chains.base import ContradictionError, ProviderError
from chains.one_transfer import only_output
from chains.solana import programs, wire
from chains.solana.wire import FoundMeta, Holding
from chains.spending import Intent, OutputFate
from core.catalogue.catalogue import Pair

OF_AN_INSTRUCTION: Final = "InstructionError"
TOO_LITTLE: Final = {"Custom": 1}
# By the reason of an instruction's error, as nodes write it.
PROBLEMS: Final[Sequence[tuple[Any, str]]] = (
    (TOO_LITTLE, "the wallet held too little"),
    ({"Custom": 17}, "the token account is frozen"),
    ("ComputationalBudgetExceeded", "the transfer took too many compute units"),
)
FAILED: Final = "the transfer failed"
NO_TRANSFER: Final = "the transaction did not make the transfer"
OTHER_TRANSFER: Final = "the transaction moved something else than was asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of balances that a transaction made."""

    fee: int
    # The chain's error, as nodes write it; None if it had its effect.
    err: Any
    # The signed lamports by account.
    lamports: Mapping[str, int]
    # The signed units by owner, mint and token account.
    tokens: Mapping[tuple[str, str, str], int]

    def units(self, address: str, pair: Pair | None) -> int:
        """Return the signed units of a coin that an address gained, in its associated account for a token."""
        mint = None if pair is None else pair.contract
        if mint is None:
            return self.lamports.get(address, 0)
        return self.tokens.get((address, mint, programs.associated(address, mint)), 0)


def split(err: Any) -> tuple[str, Any]:
    """Return the kind of an error, and the reason of an instruction's."""
    if isinstance(err, str):
        return err, None
    if isinstance(err, dict) and len(err) == 1:
        [(kind, value)] = err.items()
        is_instruction = kind == OF_AN_INSTRUCTION and isinstance(value, list) and len(value) == 2  # noqa: PLR2004
        return str(kind), value[1] if is_instruction else None
    raise ProviderError("an error of no known form")


def problem(err: Any) -> str:
    """Return an error in words for a merchant."""
    _, cause = split(err)
    return next((words for known, words in PROBLEMS if cause == known), FAILED)


def change(meta: FoundMeta, keys: Sequence[str]) -> Change:
    """Return the changes of a transaction. Raises ContradictionError if balances do not fit their keys."""
    there = meta.loaded_addresses or wire.Loaded()
    names = [*keys, *map(wire.key, (*there.writable, *there.readonly))]
    if len(set(names)) != len(names) or not len(names) == len(meta.pre_balances) == len(meta.post_balances):
        raise ContradictionError("balances that do not fit their accounts")
    if sum(meta.pre_balances) - sum(meta.post_balances) != meta.fee:
        raise ContradictionError("lamports that came from nowhere")
    gained = [after - before for before, after in zip(meta.pre_balances, meta.post_balances, strict=True)]
    return Change(
        fee=meta.fee, err=meta.err, lamports=dict(zip(names, gained, strict=True)), tokens=_tokens(meta, names)
    )


def effect(made: Change, intent: Intent, payer: str) -> OutputFate:
    """Return the effect of a transaction that was to make an intent's transfer."""
    if made.err is not None:
        return OutputFate(effect="none", problem=problem(made.err))
    pair, sender, output = intent.pair, intent.wallet.address, only_output(intent)
    # The payer's fee is no part of the transfer.
    fees = Counter({payer: made.fee} if pair is None or pair.contract is None else {})
    left, arrived = (
        -made.units(sender, pair) - fees[sender],
        made.units(output.recipient, pair) + fees[output.recipient],
    )
    if left == arrived == output.units:
        return OutputFate(effect="exact")
    if not left and not arrived:
        return OutputFate(effect="none", problem=NO_TRANSFER)
    return OutputFate(effect="other", left_units=max(left, 0), arrived_units=max(arrived, 0), problem=OTHER_TRANSFER)


def cost(made: Change, pair: Pair | None, owners: Collection[str]) -> int:
    """Return the cost of a transfer between owners, below zero if more rent came back than it took.

    It is the fee, and the rent that went into their token accounts.
    """
    mint = None if pair is None else pair.contract
    accounts = set() if mint is None else {programs.associated(owner, mint) for owner in owners}
    return made.fee + sum(made.lamports.get(each, 0) for each in accounts)


def _tokens(meta: FoundMeta, names: Sequence[str]) -> dict[tuple[str, str, str], int]:
    units: Counter[tuple[str, str, str]] = Counter()
    for holdings, sign in ((meta.pre_token_balances, -1), (meta.post_token_balances, 1)):
        places = [each.account_index for each in holdings]
        if len(set(places)) != len(places) or any(place >= len(names) for place in places):
            raise ContradictionError("token balances that do not fit their accounts")
        for each in filter(_is_of_its_program, holdings):
            units[wire.key(each.owner), each.mint, names[each.account_index]] += sign * wire.units(each.ui_token_amount)
    return dict(units)


def _is_of_its_program(holding: Holding) -> bool:
    """Return True unless the balance is of another token program than its mint's, as a namesake's."""
    return holding.program_id == programs.program_of(holding.mint)
