"""Compares the coins of our rows with those of the chain. Called by actors.treasury.comparison.

A node shows whether a coin is unspent after the node's newest block, but not the balance of an address. So the node is
asked which coins of a scanned block are left at each of our addresses, and all are compared as one place, named by the
hot wallet's address. A coin that the scan finds spent between that block and the node's is no loss; a coin made between
them was not asked for.
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
from models.treasury.snapshots import Balances, Holding


def taken(ctx: Context, network: Network, chain: Reader, books: Books, *, witnesses: int = 1) -> Balances:
    """Ask the chain which coins, unspent at the books' block, are left. Raises ChainError."""
    at, currency = books.cursor, network.gas_currency
    pair = ctx.catalogue.pair(currency, network.code)
    # Asked also if there is no unspent coin: the answer names a block.
    unspent = coins.unspent_at(network.code, currency, height=at.height) or {books.hot: []}
    places = [Place(address=address, pair=pair, coins=tuple(there)) for address, there in unspent.items()]
    snapshot = chain.snapshot(places, height=at.height, block_hash=at.hash, witnesses=witnesses)
    holding = Holding(place="hot", currency=currency, address=books.hot, units=sum(snapshot.units))
    return Balances(
        height=snapshot.height,
        block_hash=snapshot.block_hash,
        witnesses=witnesses,
        holdings=(holding,),
        asked=(at.height, at.hash),
    )


def compared(ctx: Context, network: Network, books: Books, balances: Balances) -> list[Finding] | None:
    """Compare the coins left on the chain with the rows. Raises ProviderError.

    None if no comparison is possible: a reorg took a block, or the difference is within the doubted coins.
    """
    asked_height, asked_hash = balances.asked or (books.cursor.height, books.cursor.hash)
    currency, (holding,) = network.gas_currency, balances.holdings
    worth = coins.worth_at(network.code, currency, height=books.cursor.height, made_by=asked_height)
    is_there = (
        reconciliation.is_scanned(network.code, books.cursor)
        and cursors.kept_hash(network.code, asked_height) == asked_hash
    )
    if not is_there or worth.firm_units <= holding.units < worth.units:
        return None
    if holding.units > worth.units:
        # A provider is wrong, or the scan meanwhile took back a transaction that made one of the coins.
        raise ProviderError("more is left of our coins than they are worth")
    return [
        _finding(
            ctx,
            network,
            books,
            holding,
            expected_units=worth.units if holding.units == worth.units else worth.firm_units,
        )
    ]


def _finding(ctx: Context, network: Network, books: Books, holding: Holding, *, expected_units: int) -> Finding:
    currency, height = network.gas_currency, books.cursor.height
    pair, scale = ctx.catalogue.pair(currency, network.code), ctx.catalogue.scale(currency)
    decimals = scale if pair is None else pair.decimals
    there, expected = (rescale_down(units, decimals, scale) for units in (holding.units, expected_units))
    is_sound = holding.units == expected_units
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
        address="" if is_sound else holding.address,
    )
