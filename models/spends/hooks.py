"""Runs the hooks of a spend's purpose when its fate changes. Called by models.spends.tracking.

A module of models registers its purpose when it is imported, and the actor that starts such spends imports it. So
actors that do not know each other share one way to the chain. A process leaves spends alone if it has no hooks for
their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.catalogue.catalogue import Catalogue
from models.spends.outputs import OutputRow
from models.spends.rows import PURPOSES, SpendRow

Hook = Callable[["Catalogue", "SpendRow"], None]
OutputHook = Callable[["Catalogue", "SpendRow", "OutputRow"], None]


def _nothing(_catalogue: Catalogue, _spend: SpendRow, _output: OutputRow | None = None) -> None:
    """Most purposes do not care about most steps."""


def _always(_spend: SpendRow) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of one purpose, called after a change in its transaction, with the changed and locked spend.

    Each may be called again for a change that was rolled back; none may use the network.
    """

    # A node accepted it; spend.txid is the newest attempt's.
    on_sent: Hook = _nothing
    # Another attempt offers more.
    on_bumped: Hook = _nothing
    # A block includes it, or another one than before. Each output has its effect, or none.
    on_mined: Hook = _nothing
    # A reorg took it out of its block. It is sent again; a confirmed one stays confirmed.
    on_taken_out: Hook = _nothing
    # An output ended for good, each once: deep enough with its effect; deep enough without; never to be included.
    on_confirmed: OutputHook = _nothing
    on_failed: OutputHook = _nothing
    on_dead: OutputHook = _nothing
    # A confirmed output turned out to have no effect, for good: a reorg deeper than was thought possible.
    on_undone: OutputHook = _nothing
    # A failed output was settled again, after a reorg that deep: with its effect after all, or again without.
    on_failed_anew: OutputHook = _nothing
    # Asked before on_failed: True if the held amount may return now. If not, the spend stays as it is.
    may_fail: Callable[[SpendRow], bool] = _always
    # True if an output that moved another amount waits for an operator's decision. Otherwise it ends by itself, and the
    # gateway bears the difference.
    is_settled_by_hand: bool = False
    # Asked outside of a transaction before bytes are sent to a node, and in the transaction that commits a new attempt.
    may_send: Callable[[SpendRow], bool] = _always


_HOOKS: dict[str, Hooks] = {}


def register(purpose: str, hooks: Hooks) -> None:
    """Register a purpose's hooks, replacing earlier ones. Raises ValueError for an unknown purpose."""
    if purpose not in PURPOSES:
        raise ValueError(f"spends have no purpose {purpose!r}")
    _HOOKS[purpose] = hooks


def hooks_of(purpose: str) -> Hooks | None:
    """Return the hooks of a purpose; None if none were registered."""
    return _HOOKS.get(purpose)


# A filler only uses up a slot, and a join only makes one coin of many of ours: nothing else follows.
register("filler", Hooks())
register("join", Hooks())
# If a reorg takes a lost spend out of its block, the signer sends its bytes again like any others: the books have the
# amount as gone, and the sender's later spends cannot be included before its slot is used.
register("lost", Hooks())
