"""Passes the fate of a spend on to whatever it was made for, by purpose. Called by models.spends.tracking.

A module of models registers its purpose when it is imported, and the actor that starts such spends imports it; so the
actors that do not know each other share one way to the chain. A spend whose purpose nobody registered in a process is
left alone there.
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
    """Called in the transaction of the change, after it, with the spend as it is then and locked, and its output.

    Each may be called again for a change that came to nothing before; none may use the network.
    """

    # A node took it; spend.txid is the newest attempt's.
    on_sent: Hook = _nothing
    # Another attempt offers more.
    on_bumped: Hook = _nothing
    # It stands in a block, or in another one than before; each output with its effect or without.
    on_mined: Hook = _nothing
    # A reorg took it out of its block. It is sent again; a confirmed one stays confirmed.
    on_taken_out: Hook = _nothing
    # An output is deep enough, each once, and final: with its effect; without; its spend can never be included.
    on_confirmed: OutputHook = _nothing
    on_failed: OutputHook = _nothing
    on_dead: OutputHook = _nothing
    # A confirmed output turned out to have no effect, for good: a reorg deeper than was thought possible.
    on_undone: OutputHook = _nothing
    # A failed output was settled anew, after a reorg that deep: with its effect after all, or again without.
    on_failed_anew: OutputHook = _nothing
    # Asked before on_failed: whether what was held may be given back now. A spend for which it may not stays as it is.
    may_fail: Callable[[SpendRow], bool] = _always
    # Whether an output that moved something else than it was to move waits for somebody who says what that means. The
    # others end by themselves, and the gateway bears what is missing.
    is_settled_by_hand: bool = False
    # Asked outside of a transaction before bytes are given to a node, and in the one that commits further bytes.
    may_send: Callable[[SpendRow], bool] = _always


_HOOKS: dict[str, Hooks] = {}


def register(purpose: str, hooks: Hooks) -> None:
    """Register a purpose's hooks, replacing earlier ones. Raises ValueError for an unknown purpose."""
    if purpose not in PURPOSES:
        raise ValueError(f"spends have no purpose {purpose!r}")
    _HOOKS[purpose] = hooks


def hooks_of(purpose: str) -> Hooks | None:
    """Return what was registered for a purpose."""
    return _HOOKS.get(purpose)


# Uses up a slot, or makes one coin of many of ours, and means nothing.
register("filler", Hooks())
register("join", Hooks())
