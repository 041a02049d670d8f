"""Compares the hot wallet with the books at once, for an operator's command. Called by cli.treasury."""

from time import sleep
from typing import Final

from actors.context import Context
from actors.treasury.comparison import compared, taken
from chains import registry
from cli.output import CommandError
from cli.session import failures_named
from core.catalogue.catalogue import Network
from models.treasury import reconciliation, snapshots
from models.treasury.reconciliation import Books, Finding
from models.treasury.snapshots import Balances

# The longest wait until the scan reaches the block of the chain's balances.
SCAN_WAIT_S: Final = 60


def compared_now(ctx: Context, network: str, currency: str) -> tuple[Finding, Books]:
    """Compare the hot wallet's balance of a coin with the books; return result and books. Raises CommandError."""
    known = ctx.catalogue.networks.get(network)
    books = None if known is None else reconciliation.read_books(network)
    if known is None or books is None or network not in ctx.available:
        raise CommandError(f"{network} has no providers here, no scan, or no hot wallet yet")
    with failures_named(network):
        findings, books = _compared(ctx, known, books)
    hot = next((f for f in findings or () if f.place == "hot" and f.currency == currency), None)
    if hot is None:
        raise CommandError(f"{currency} of {network}'s hot wallet cannot be compared now")
    return hot, books


def _compared(ctx: Context, network: Network, books: Books) -> tuple[list[Finding] | None, Books]:
    """Compare at the books' block, or at a newer one once it is scanned; return that block's books. ChainError."""
    chain, settings = registry.reader(network, ctx.settings), ctx.settings
    with chain.budget(seconds=settings.rpc_step_s, requests=settings.rpc_step_requests):
        balances = taken(ctx, network, chain, books)
    if balances.block_hash != books.cursor.hash:
        later = _books_of(network.code, balances)
        if later is None:
            return None, books
        books = later
    with chain.budget(seconds=settings.rpc_step_s, requests=settings.rpc_step_requests):
        return compared(ctx, network, books, balances), books


def _books_of(network: str, balances: Balances) -> Books | None:
    """Return the books of a block that the scan will soon reach; None if it does not."""
    for _ in range(SCAN_WAIT_S):
        block = snapshots.scanned_block(network, balances)
        if block is not None:
            return reconciliation.read_books(network, at=block)
        sleep(1)
    return None
