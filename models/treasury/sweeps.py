"""Finds deposits that are still at their addresses, and assigns them to sweeps. For the treasury's actor and plan.

A sweep takes all of a coin's confirmed deposits at an address, in the transaction that commits its bytes; if it fails
or loses its slot, they are free again. Its bytes name an amount, not deposits: if a deep reorg takes a swept deposit
and its buyer pays again, the same bytes take the new money. Therefore the amount that a sweep moves for reversed
deposits is subtracted from the other deposits at its address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import column, execute, rows, rows_as, value
from models.payouts import queue as payout_queue
from models.spends import hooks as spend_hooks
from models.spends.hooks import Hooks
from models.spends.outputs import OutputRow
from models.spends.rows import SpendRow
from models.treasury.rows import TreasuryWalk

# Limits the payouts that one sweep makes due at once; the others wait for their own time.
WOKEN_MAX: Final = 500

Walker = Literal["sweep", "reconcile", "gas"]


@dataclass(frozen=True, slots=True)
class Unswept:
    """The amount of one coin at a deposit address, by its deposits; in the ledger's units."""

    currency: str
    address: str
    ordinal: int
    units: int


# The amount moved for reversed deposits, by sweeps that may have had their effect.
_MOVED_FOR_OTHERS: Final = (
    "COALESCE((SELECT sum(r.amount_units) FROM deposits r JOIN spends s ON s.id = r.sweep_id"
    " WHERE r.network = d.network AND r.currency = d.currency AND r.address = d.address AND r.status = 'reversed'"
    " AND (s.is_success IS DISTINCT FROM false OR s.effect = 'other')), 0)"
)


def unswept(
    network: str, *, family: str, limit: int, after: tuple[str, str] = ("", ""), height: int | None = None
) -> list[Unswept]:
    """Return a page of the amounts that confirmed deposits up to a height left at addresses, by coin and address.

    after: the (currency, address) at the end of the previous page. The cost does not grow with swept deposits.
    """
    return _there(_page(network, family=family, limit=limit, after=after, height=height))


def _page(network: str, *, family: str, limit: int, after: tuple[str, str], height: int | None) -> list[Unswept]:
    """Return the page of unswept(), including addresses emptied by sweeps of deposits that were reversed."""
    return rows_as(
        Unswept,
        f"SELECT d.currency, d.address, p.ordinal, d.units - {_MOVED_FOR_OTHERS} AS units FROM ("
        "   SELECT network, currency, address, sum(amount_units) AS units FROM deposits"
        "   WHERE network = %s AND sweep_id IS NULL AND status IN ('confirmed', 'credited')"
        "   AND (currency, address) > (%s, %s) AND block_height <= COALESCE(%s, block_height)"
        "   GROUP BY network, currency, address ORDER BY currency, address LIMIT %s) d"
        " JOIN pool_addresses p ON p.address = d.address AND p.family = %s ORDER BY d.currency, d.address",
        (network, *after, height, limit, family),
    )


def _there(candidates: list[Unswept]) -> list[Unswept]:
    return [each for each in candidates if each.units > 0]


def unswept_at(network: str, currency: str, address: str, *, height: int) -> list[Unswept]:
    """Return the amount of a coin's confirmed deposits at one address, up to a height; empty if nothing is left."""
    candidates = rows_as(
        Unswept,
        f"SELECT d.currency, d.address, p.ordinal, sum(d.amount_units) - {_MOVED_FOR_OTHERS} AS units FROM deposits d"
        " JOIN pool_addresses p ON p.address = d.address WHERE d.network = %s AND d.currency = %s AND d.address = %s"
        " AND d.sweep_id IS NULL AND d.status IN ('confirmed', 'credited') AND d.block_height <= %s"
        " GROUP BY d.network, d.currency, d.address, p.ordinal",
        (network, currency, address, height),
    )
    return _there(candidates)


def walk(network: str, walker: Walker, *, family: str, limit: int, height: int | None = None) -> list[Unswept]:
    """Return the next page of an endless walk over the addresses, and store its end."""
    kept = _stand(network, walker)
    page = _page(network, family=family, limit=limit, after=kept, height=height)
    if not page and kept != ("", ""):
        page = _page(network, family=family, limit=limit, after=("", ""), height=height)
    last = (page[-1].currency, page[-1].address) if len(page) == limit else ("", "")
    if last != kept:
        _go_on(network, walker, *last)
    return _there(page)


def walk_gas(network: str, gas_currency: str, *, family: str, limit: int) -> list[Unswept]:
    """Return the next addresses, in an endless walk, that got gas and have no deposit to sweep; without amounts.

    At the other addresses, the rest of the gas pays for the next sweep.
    """
    _, kept = _stand(network, "gas")
    # Jumps from address to address in the index: the hot wallet alone has a row of each sweep.
    page = rows(
        "WITH RECURSIVE gas (address, step) AS ((SELECT m.address, 1 FROM spend_movements m WHERE m.network = %s"
        "   AND m.units > 0 AND m.address > %s ORDER BY m.address LIMIT 1)"
        "   UNION ALL SELECT n.address, g.step + 1 FROM gas g CROSS JOIN LATERAL (SELECT m.address"
        "     FROM spend_movements m WHERE m.network = %s AND m.units > 0 AND m.address > g.address"
        "     ORDER BY m.address LIMIT 1) n WHERE g.step < %s)"
        " SELECT g.address, p.ordinal, CASE WHEN p.ordinal IS NOT NULL THEN EXISTS (SELECT FROM spend_outputs o"
        "     JOIN spends s ON s.id = o.spend_id WHERE o.recipient = g.address AND o.payout_id IS NULL"
        "     AND s.network = %s AND s.purpose = 'gas')"
        "   AND NOT EXISTS (SELECT FROM deposits d WHERE d.network = %s AND d.address = g.address"
        "     AND d.sweep_id IS NULL AND d.status <> 'reversed') ELSE false END"
        " FROM gas g LEFT JOIN pool_addresses p ON p.address = g.address AND p.family = %s ORDER BY g.address",
        (network, kept, network, limit, network, network, family),
    )
    last = page[-1][0] if len(page) == limit else ""
    if last != kept:
        _go_on(network, "gas", gas_currency, last)
    return [Unswept(gas_currency, address, ordinal, 0) for address, ordinal, is_left in page if is_left]


def _stand(network: str, walker: Walker) -> tuple[str, str]:
    """Return the currency and the address after which a walk goes on."""
    kept = TreasuryWalk.first("network = %s AND walker = %s", (network, walker))
    return (kept.currency, kept.address) if kept else ("", "")


def _go_on(network: str, walker: Walker, currency: str, address: str) -> None:
    TreasuryWalk(network=network, walker=walker, currency=currency, address=address).write(
        "ON CONFLICT (network, walker) DO UPDATE SET currency = EXCLUDED.currency, address = EXCLUDED.address"
    )


def take(network: str, waiting_one: Unswept, spend_id: UUID) -> bool:
    """Assign an address's deposits of a coin to a sweep, in its committing transaction; False if they changed."""
    place = (network, waiting_one.currency, waiting_one.address)
    taken = column(
        "UPDATE deposits SET sweep_id = %s WHERE network = %s AND currency = %s AND address = %s AND sweep_id IS NULL"
        " AND status IN ('confirmed', 'credited') RETURNING amount_units",
        (spend_id, *place),
    )
    # This sweep accounts for them, since it moves less by this amount.
    moved = column(
        "WITH gone AS (SELECT r.id, r.amount_units FROM deposits r JOIN spends s ON s.id = r.sweep_id"
        "   WHERE r.network = %s AND r.currency = %s AND r.address = %s AND r.status = 'reversed'"
        "   AND (s.is_success IS DISTINCT FROM false OR s.effect = 'other'))"
        " UPDATE deposits d SET sweep_id = NULL FROM gone WHERE d.id = gone.id RETURNING gone.amount_units",
        place,
    )
    return bool(waiting_one.units == sum(taken) - sum(moved))


def busy_addresses(network: str) -> set[str]:
    """Return the addresses from or to which a spend is on its way; nothing else is done there meanwhile."""
    pairs = rows(
        "SELECT s.sender, o.recipient FROM spends s JOIN spend_outputs o ON o.spend_id = s.id WHERE s.network = %s"
        " AND s.settled_at IS NULL AND o.effect IS NULL AND s.purpose IN ('gas', 'sweep', 'filler')",
        (network,),
    )
    return {address for pair in pairs for address in pair}


def fundings_lately(network: str, address: str) -> int:
    """Count the spends that gave an address gas within the last hour."""
    count: int = value(
        "SELECT count(*) FROM spend_outputs o JOIN spends s ON s.id = o.spend_id WHERE s.network = %s"
        " AND o.recipient = %s AND o.payout_id IS NULL AND s.purpose = 'gas' AND s.state <> 'dead'"
        " AND s.created_at > app_now() - interval '1 hour'",
        (network, address),
    )
    return count


def cooling(network: str) -> set[str]:
    """Return the coins that are on their way to the cold address and not confirmed yet."""
    currencies = column(
        "SELECT currency FROM spends WHERE network = %s AND purpose = 'cold' AND state IN ('signed', 'sent', 'mined')"
        " AND settled_at IS NULL",
        (network,),
    )
    return set(currencies)


def open_payout_units(network: str, *, is_signed_too: bool = True) -> dict[str, int]:
    """Return the amounts that open payouts will take from the hot wallet, by coin, in the ledger's units.

    is_signed_too: include payouts whose transaction is signed.
    """
    sums = rows(
        "SELECT currency, sum(to_units) FROM payouts WHERE network = %s"
        " AND (status IN ('pending', 'awaiting_cosign', 'approved') OR %s AND status IN ('broadcasting', 'sent'))"
        " GROUP BY currency",
        (network, is_signed_too),
    )
    return dict(sums)


def wanted_currencies(network: str) -> set[str]:
    """Return the coins whose approved payouts were put off, so that even small deposits are worth a sweep."""
    currencies = column(
        "SELECT DISTINCT currency FROM payouts WHERE network = %s AND status = 'approved'"
        " AND wait_reason NOT IN ('', %s)",
        (network, payout_queue.IMMATURE),
    )
    return set(currencies)


def _give_back(_catalogue: Catalogue, spend: SpendRow, _output: OutputRow) -> None:
    execute("UPDATE deposits SET sweep_id = NULL WHERE sweep_id = %s", (spend.id,))


def _wake_payouts(_catalogue: Catalogue, spend: SpendRow) -> None:
    """Make payouts due that were put off for lack of the coin; those that another process has locked are skipped."""
    if spend.is_success:
        execute(
            "UPDATE payouts SET due_at = app_now() WHERE id = ANY(ARRAY(SELECT id FROM payouts WHERE network = %s"
            " AND currency = %s AND status = 'approved' AND wait_reason <> '' AND refused_since IS NULL"
            " AND due_at > app_now() ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))",
            (spend.network, spend.currency, WOKEN_MAX),
        )


def _failed_anew(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    """Assign the deposits that a failed sweep moved after all: the oldest up to the moved amount; of gas coin all."""
    _give_back(catalogue, spend, output)
    pair = catalogue.pair(spend.currency, spend.network)
    if not spend.is_success or pair is None:
        return
    # Of gas coin, the moved amount is less than the deposits by the transfer's fee.
    moved = None if spend.contract is None else pair.to_ledger(spend.token_units, catalogue.scale(spend.currency))
    execute(
        "UPDATE deposits SET sweep_id = %s WHERE id IN (SELECT id FROM (SELECT id,"
        "   sum(amount_units) OVER (ORDER BY block_height, id) AS units FROM deposits WHERE network = %s"
        "   AND currency = %s AND address = %s AND sweep_id IS NULL AND status IN ('confirmed', 'credited')"
        "   AND block_height <= %s) d WHERE d.units <= COALESCE(%s, d.units))",
        (spend.id, spend.network, spend.currency, spend.sender, spend.mined_height, moved),
    )


spend_hooks.register(
    "sweep",
    Hooks(
        on_mined=_wake_payouts,
        on_failed=_give_back,
        on_dead=_give_back,
        on_undone=_give_back,
        on_failed_anew=_failed_anew,
    ),
)
# Between our own addresses only the gas is booked.
spend_hooks.register("gas", Hooks())
spend_hooks.register("cold", Hooks())
