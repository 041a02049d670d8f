"""Plays the end of the demonstration: deposits are swept, and the chain's balances agree with the books.

Called by devstack.story.story.
"""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Final
from uuid import UUID

from cli.session import bell
from core.catalogue.catalogue import Catalogue, load_catalogue
from core.catalogue.families import traits_of
from core.money import format_coin
from core.settings.settings import load_settings
from devstack.chains import DevelopmentChain
from devstack.story.console import Console
from devstack.story.story_out import StoryError, until
from models.db import base
from models.invariants import deposits
from models.spends.rows import SpendRow
from models.treasury import addresses, reconciliation
from models.treasury.rows import Reconciliation

if TYPE_CHECKING:
    from devstack.stack import Stack

# More coins than the signer leaves apart, each worth more than the fee of spending it.
SMALL_COINS: Final = 60
SMALL_COIN_UNITS: Final = 20_000
AUDIT_S: Final = 60.0
_LEDGER: Final = """
SELECT d.kind, c.kind, t.units, t.currency, t.reference
FROM ledger_transfers t JOIN accounts d ON d.id = t.debit_account JOIN accounts c ON c.id = t.credit_account
WHERE t.id > %s ORDER BY t.id LIMIT 200
"""


def gather(console: Console, chain: DevelopmentChain, *, since: UUID) -> None:
    """Show that deposits are swept, or small coins joined. since: an id younger than all earlier spends."""
    network = load_catalogue("development").networks[chain.network]
    if traits_of(network).has_sweeps:
        console.heading("A sweep")
        with console.step("swept") as step:
            step.detail = f"transaction {_gathered(chain.network, 'sweep', since)}"
        return
    console.heading("A join")
    with console.step("small coins") as step:
        hot = addresses.address(chain.network, "hot")
        if hot is None:
            raise StoryError("the signer has not named its wallet")
        chain.scatter(to=hot, units=SMALL_COIN_UNITS, count=SMALL_COINS)
        step.detail = f"{SMALL_COINS} of them came to the hot wallet, as they do over months"
    with console.step("joined") as step:
        txid = _gathered(chain.network, "join", since)
        coins = base.value(
            "SELECT count(*) FROM coins WHERE network = %s AND spent_by_txid = %s", (chain.network, txid)
        )
        step.detail = f"{coins} coins by transaction {txid}"


def _gathered(network: str, purpose: str, since: UUID) -> str:
    which = "s.network = %s AND s.purpose = %s AND s.id > %s AND s.state = 'confirmed' ORDER BY s.id LIMIT 1"
    spend: SpendRow = until(lambda: SpendRow.first(which, (network, purpose, since)), f"no {purpose} was confirmed")
    return str(spend.mined_txid)


def compare(console: Console, stack: Stack, network: str) -> None:
    """Show that the chain's balances agree with the books, and that every invariant holds."""
    console.heading("The books")
    catalogue, begun = load_catalogue("development"), base.app_now()
    settings = load_settings(stack.environment(), role="cli")
    with console.step("on chain") as step, bell(settings) as ring:

        def sound() -> list[Reconciliation] | None:
            # The scheduler notifies the reconciler every half minute, which is long to watch.
            ring("reconcile", network)
            return _sound(network, begun)

        comparisons: list[Reconciliation] = until(sound, "the books do not agree with the chain")
        step.detail = ", ".join(_balance_line(catalogue, each) for each in comparisons)
    with console.step("audit") as step:
        broken = deposits.audit(is_full=True, within_s=AUDIT_S)
        if broken:
            raise StoryError(f"{broken[0].name} is broken: {broken[0].meaning}")
        step.detail = f"{len(deposits.named(is_full=True))} invariants hold"


def _sound(network: str, begun: datetime) -> list[Reconciliation] | None:
    """Return the network's comparisons if all were made since then and found no difference; else None."""
    comparisons = reconciliation.listing(network)
    return (
        comparisons if comparisons and all(each.is_sound and each.checked_at >= begun for each in comparisons) else None
    )


def _balance_line(catalogue: Catalogue, each: Reconciliation) -> str:
    return f"{format_coin(each.chain_units, catalogue.scale(each.currency))} {each.currency} at block {each.height}"


def last_booking() -> int:
    """Return the id of the ledger's newest line; 0 if it is empty."""
    return int(base.value("SELECT COALESCE(max(id), 0) FROM ledger_transfers"))


def show_ledger(console: Console, after: int) -> None:
    """Show the bookings after a line of the ledger; equal ones share a line with their number."""
    catalogue = load_catalogue("development")
    console.heading("The ledger")
    for (debit, credit, units, currency), same in groupby(base.rows(_LEDGER, (after,)), key=lambda row: row[:4]):
        references = [row[4] for row in same]
        label = references[0] if len(references) == 1 else f"{references[0]} and {len(references) - 1} like it"
        amount = format_coin(units, catalogue.scale(currency))
        console.line(f"    {debit:>12} → {credit:<12} {amount:>22} {currency:<5} {label}")
