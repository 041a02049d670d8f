"""Holds the coins that our rows know against those that the chain has. Called by actors.treasury.comparison.

A node tells of a coin whether it lies unspent after the node's newest block, and of no address what lies there. So each
of our addresses is asked what is left there of the coins of a scanned block, and all are compared as one place, named
by the hot wallet's. What the scan finds spent between that block and the node's is no loss; what it finds made was not
asked for.
"""

from __future__ import annotations

from actors.context import Context
from chains.base import Place, ProviderError
from chains.family import Reader
from core.catalogue.catalogue import Network
from core.money import format_coin, rescale_down
from models.deposits import cursors
from models.spends import coins
from models.treasury import reconciliation
from models.treasury.reconciliation import Books, Finding
from models.treasury.snapshots import Balances, Held


def taken(ctx: Context, network: Network, chain: Reader, books: Books, *, witnesses: int = 1) -> Balances:
    """Ask the chain what is left of the coins that the books' block left unspent. Raises ProviderError."""
    at, currency = books.cursor, network.gas_currency
    pair = ctx.catalogue.pair(currency, network.code)
    # Where there is none it is asked too: the answer names a block.
    unspent = coins.unspent_at(network.code, currency, height=at.height) or {books.hot: []}
    places = [Place(address=address, pair=pair, coins=tuple(there)) for address, there in unspent.items()]
    told = chain.snapshot(places, height=at.height, block_hash=at.hash, witnesses=witnesses)
    held = Held(place="hot", currency=currency, address=books.hot, units=sum(told.units))
    return Balances(
        height=told.height,
        block_hash=told.block_hash,
        witnesses=witnesses,
        held=(held,),
        asked=(at.height, at.hash),
    )


def compared(ctx: Context, network: Network, books: Books, balances: Balances) -> list[Finding] | None:
    """Hold what the chain had left of them against the rows. Raises ProviderError.

    None where it cannot be told: a reorg took a block, or what differs are coins that somebody has a doubt about.
    """
    asked_height, asked_hash = balances.asked or (books.cursor.height, books.cursor.hash)
    currency, (held,) = network.gas_currency, balances.held
    worth = coins.worth_at(network.code, currency, height=books.cursor.height, made_by=asked_height)
    is_there = (
        reconciliation.is_scanned(network.code, books.cursor)
        and cursors.kept_hash(network.code, asked_height) == asked_hash
    )
    if not is_there or worth.firm_units <= held.units < worth.units:
        return None
    if held.units > worth.units:
        # Or the scan took back, meanwhile, what made one of them.
        raise ProviderError("more is left of our coins than they are worth")
    return [
        _finding(
            ctx, network, books, held, expected_units=worth.units if held.units == worth.units else worth.firm_units
        )
    ]


def _finding(ctx: Context, network: Network, books: Books, held: Held, *, expected_units: int) -> Finding:
    currency, height = network.gas_currency, books.cursor.height
    pair, scale = ctx.catalogue.pair(currency, network.code), ctx.catalogue.scale(currency)
    decimals = scale if pair is None else pair.decimals
    there, expected = (rescale_down(units, decimals, scale) for units in (held.units, expected_units))
    is_sound = held.units == expected_units
    detail = (
        f"{currency} on {network.code}: our coins should be worth {format_coin(expected, scale)} after block {height},"
        f" and {format_coin(there, scale)} are there"
    )
    return Finding(
        currency=currency,
        place="hot",
        height=height,
        chain_units=there,
        expected_units=expected,
        detail="" if is_sound else detail,
        address="" if is_sound else held.address,
    )
