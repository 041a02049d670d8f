"""Finds a network's spender, by the claim of its spends. Knows no keys; used by the signer and recovery."""

from __future__ import annotations

from typing import cast

from actors.context import Context
from chains import registry
from chains.family import CoinSpender, CounterSpender, Spender
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of


def spender_of(ctx: Context, network: Network) -> Spender:
    """Return the network's spender. LookupError if it has none."""
    return registry.spender(network, ctx.settings)


def counting(network: Network, spender: Spender) -> CounterSpender | None:
    """Return the spender as a CounterSpender; None if its family has no counters."""
    return cast("CounterSpender", spender) if traits_of(network).has_counters else None


def holding(network: Network, spender: Spender) -> CoinSpender | None:
    """Return the spender as a CoinSpender; None if its family spends no coins."""
    return cast("CoinSpender", spender) if traits_of(network).spends_coins else None


def beyond(sender: str, by_chain: int, ours: int) -> str:
    """Describe that the chain has used slots of a sender beyond our rows."""
    return f"the next slot of {sender} is {by_chain} by its chain and {ours} by our rows"
