"""Computes the amounts that can leave each network: the hot wallet's balance of a coin less what payouts claim.

Read by the API and by automatic withdrawals, and by operators together with the shortfall, from rows alone. The result
describes this moment and is no promise: another payout may come first. Units are the ledger's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.money import rescale_down
from core.rates.pricing import PERCENT, Market, Method
from models.db.base import execute, rows, transaction
from models.db.clock import FUTURE_MAX_S
from models.ledger.ledger import OWED, SUSPENSE, UNOWNED
from models.spends import coins
from models.spends.rows import Purpose
from models.treasury.cold_books import COOLED, RETURNED
from models.treasury.rows import LiquidityAlarm
from models.treasury.topup_doubts import OPEN

# What payouts take that is still in the balance: signed ones until their block is known, where no coins are held for
# them. A signed payout's coins are free no more. Nor does one count that was in a block of the last comparison, though
# its row does not say so yet: the balance is without it.
_QUEUED: Final = (
    "SELECT currency, network, sum(to_units) FROM payouts p WHERE network = ANY(%(networks)s)"
    " AND (status = 'approved' OR NOT network = ANY(%(by_coins)s)"
    "   AND (status = 'broadcasting' OR status = 'sent' AND block_height IS NULL) AND NOT EXISTS ("
    "     SELECT FROM spend_outputs o JOIN spends s ON s.id = o.spend_id"
    "     JOIN reconciliations r ON (r.network, r.currency, r.place) = (s.network, s.currency, 'hot')"
    "     WHERE o.payout_id = p.id AND o.state <> 'dead' AND s.signed_height < r.height"
    "     AND s.id <> ALL(r.waiting_ids)))"
    " GROUP BY currency, network"
)
# From the last comparison with the chain on, what spends and top-ups have done to the hot wallet since. Without
# decimals, units are the ledger's.
_COMPARED: Final = (
    "COALESCE((SELECT r.height FROM reconciliations r WHERE r.place = 'hot' AND r.network = {0}.network"
    " AND r.currency = {0}.currency), -1)"
)
_HELD: Final = (
    "SELECT currency, network, NULL::integer, chain_units FROM reconciliations"
    "   WHERE network = ANY(%(by_balance)s) AND place = 'hot'"
    " UNION ALL SELECT m.currency, m.network, m.decimals, sum(m.units) FROM treasury_addresses a"
    "   JOIN spend_movements m ON (m.network, m.address) = (a.network, a.address)"
    "   WHERE a.network = ANY(%(by_balance)s) AND a.role = 'hot' AND a.is_current"
    f"   AND m.height > {_COMPARED.format('m')} GROUP BY m.currency, m.network, m.decimals"
    " UNION ALL SELECT t.currency, t.network, NULL, sum(t.units) FROM treasury_topups t"
    f"   WHERE t.network = ANY(%(by_balance)s) AND t.status <> 'reversed' AND NOT {OPEN}"
    f"   AND t.block_height > {_COMPARED.format('t')} GROUP BY t.currency, t.network"
)
# Changes that spends under way will make to the hot wallet: no row shows their block, nor did the last comparison find
# one. A spend that a reorg took out counts again only if that comparison is without it. A sweep does not count if a
# reorg took one of its deposits: it may move nothing.
_UNDER_WAY: Final = (
    "SELECT s.currency, s.network, s.decimals, sum(CASE s.purpose WHEN 'sweep' THEN o.token_units"
    "   ELSE -o.token_units END) FROM spends s JOIN spend_outputs o ON o.spend_id = s.id"
    " JOIN treasury_addresses a ON (a.network, a.role) = (s.network, 'hot') AND a.is_current"
    "   AND a.address = CASE s.purpose WHEN 'sweep' THEN o.recipient ELSE s.sender END"
    " LEFT JOIN reconciliations r ON (r.network, r.currency, r.place) = (s.network, s.currency, 'hot')"
    " WHERE s.network = ANY(%(by_balance)s) AND s.purpose = ANY(%(purposes)s)"
    "   AND s.settled_at IS NULL AND s.mined_txid IS NULL AND s.state IN ('signed', 'sent', 'confirmed')"
    "   AND (r.height IS NULL OR s.signed_height >= r.height OR s.id = ANY(r.waiting_ids))"
    "   AND NOT EXISTS (SELECT FROM deposits d WHERE d.sweep_id = s.id AND d.status = 'reversed')"
    " GROUP BY s.currency, s.network, s.decimals"
)
# Deposits that a payout's wait makes the signer sweep: their address holds what that is worth.
_SWEPT_SOON: Final = (
    "SELECT currency, network, sum(units) FROM (SELECT d.currency, d.network, sum(d.amount_units) AS units"
    "   FROM unnest(%(swept_currencies)s::text[], %(swept_networks)s::text[], %(swept_leasts)s::numeric[])"
    "     w (currency, network, least)"
    "   JOIN deposits d ON (d.network, d.currency) = (w.network, w.currency)"
    "   WHERE d.sweep_id IS NULL AND d.status IN ('confirmed', 'credited')"
    "   GROUP BY d.currency, d.network, d.address, w.least HAVING sum(d.amount_units) >= w.least) a"
    " GROUP BY currency, network"
)
# The sums that payouts take and can take, in one statement, which sees one moment. Of two statements, the second one
# would lack a spend that was signed, or came into a block, after the first.
_BOTH: Final = (
    f"SELECT 'queued', currency, network, NULL::integer, units FROM ({_QUEUED}) q (currency, network, units)"
    f" UNION ALL SELECT 'usable', h.* FROM ({_HELD}) h"
    f" UNION ALL SELECT 'usable', u.* FROM ({_UNDER_WAY}) u"
    f" UNION ALL SELECT 'usable', currency, network, NULL, units FROM ({_SWEPT_SOON}) w (currency, network, units)"
    f" UNION ALL SELECT 'usable', f.* FROM ({coins.FREE_UNITS}) f"
)
# Deposits at their own addresses.
_UNSWEPT: Final = (
    "SELECT d.currency, d.network, sum(d.amount_units) FROM deposits d WHERE d.network = ANY(%s)"
    " AND d.sweep_id IS NULL AND d.status IN ('confirmed', 'credited') GROUP BY d.currency, d.network"
)
# What went to the cold address, less what came back from there and what was carried on to another network.
_COLD: Final = (
    f"SELECT m.currency, m.network, m.decimals, sum(m.units) FROM {COOLED}"
    "   WHERE s.network = ANY(%(networks)s) GROUP BY m.currency, m.network, m.decimals"
    f" UNION ALL SELECT currency, network, NULL, -sum({RETURNED}) FROM treasury_topups t"
    "   WHERE network = ANY(%(networks)s) AND status <> 'reversed' AND origin = 'cold' GROUP BY currency, network"
    " UNION ALL SELECT currency, from_network, NULL, -sum(units) FROM treasury_moves"
    "   WHERE from_network = ANY(%(networks)s) GROUP BY currency, from_network"
)
_OWED: Final = (
    "SELECT currency, sum(units) FROM ("
    "  SELECT a.currency, b.units FROM accounts a JOIN balances b ON b.account_id = a.id"
    f"  UNION ALL SELECT a.currency, -({OWED}) FROM accounts a WHERE a.kind IN ('{SUSPENSE}', '{UNOWNED}')"
    "  UNION ALL SELECT currency, -held_units FROM payouts WHERE status = 'sent' AND block_height IS NOT NULL"
    " ) o GROUP BY currency"
)
# Spends that no payout makes, and that change the hot wallet's balance.
MOVING: Final[Sequence[Purpose]] = ("sweep", "gas", "cold")
# A lack of coin is logged once in so long.
ALARM_EVERY_S: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What our wallets hold of a coin on a network, and what payouts ask of it."""

    currency: str
    network: str
    hot_units: int
    deposit_units: int
    cold_units: int
    usable_units: int
    queued_units: int

    @property
    def held_units(self) -> int:
        """Return all that the gateway's keys move: without the cold address."""
        return self.hot_units + self.deposit_units

    @property
    def missing_units(self) -> int:
        """Return what queued payouts lack."""
        return max(0, self.queued_units - self.usable_units)


def room(catalogue: Catalogue, market: Market, networks: Collection[str], *, fee_max_percent: int) -> dict[Method, int]:
    """Return the amounts that further payouts can take from each network, by coin; a coin may be missing.

    fee_max_percent: deposits do not count if their sweep costs a larger part of them. In families with coins, the free
    coins count.
    """
    usable, queued = _usable_and_queued(catalogue, market, networks, fee_max_percent)
    return {method: max(0, usable.get(method, 0) - queued.get(method, 0)) for method in usable.keys() | queued.keys()}


def missing(
    catalogue: Catalogue, market: Market, networks: Collection[str], *, fee_max_percent: int
) -> dict[Method, int]:
    """Return what queued payouts lack by coin and network, for each method that the catalogue has there.

    fee_max_percent: as for room().
    """
    usable, queued = _usable_and_queued(catalogue, market, networks, fee_max_percent)
    return {
        method: max(0, queued.get(method, 0) - usable.get(method, 0))
        for method in catalogue.pairs
        if method[1] in networks
    }


def stocks(catalogue: Catalogue, market: Market, networks: Collection[str], *, fee_max_percent: int) -> list[Stock]:
    """Return what each network has of each coin, in the catalogue's order, all of one moment.

    fee_max_percent: as for room().
    """
    with transaction():
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        usable, queued = _usable_and_queued(catalogue, market, networks, fee_max_percent)
        hot, cold = _hot(catalogue, networks), _scaled(catalogue, rows(_COLD, {"networks": list(networks)}))
        # Where money lies in coins, deposits are among those.
        deposits = _deposits(catalogue, sorted(set(networks) - _by_coins(catalogue, networks)))
    return [
        Stock(
            currency=method[0], network=method[1], hot_units=hot.get(method, 0), deposit_units=deposits.get(method, 0),
            cold_units=cold.get(method, 0), usable_units=usable.get(method, 0), queued_units=queued.get(method, 0),
        )
        for method in catalogue.pairs
        if method[1] in networks
    ]  # fmt: skip


def owed() -> dict[str, int]:
    """Return, by coin, the amounts that merchants and owners of personal wallets could claim, funded cheques included.

    Money in suspense counts, since refunds return it, and money at pool addresses without an owner. Payouts in a block
    have left.
    """
    return dict(rows(_OWED))


def note_missing(currency: str, network: str) -> bool:
    """Note that a coin's lack is logged now; False if that was done within the last hour, by any process."""
    written = LiquidityAlarm(network=network, currency=currency).write(
        "ON CONFLICT (network, currency) DO UPDATE SET logged_at = app_now()"
        # In the future: the clock was set back since.
        f" WHERE l.logged_at NOT BETWEEN app_now() - interval '{ALARM_EVERY_S} s' AND app_now()"
        f" + interval '{FUTURE_MAX_S} s'"
    )
    return written > 0


def _usable_and_queued(
    catalogue: Catalogue, market: Market, networks: Collection[str], fee_max_percent: int
) -> tuple[dict[Method, int], dict[Method, int]]:
    """Return what payouts can take, and what queued ones take, of one moment.

    They can take the hot wallet's coin, with sweeps under way and worth their fee; or free coins.
    """
    by_coins = sorted(_by_coins(catalogue, networks))
    by_balance = sorted(set(networks) - set(by_coins))
    chains = [catalogue.networks[code] for code in by_coins]
    pairs = [pair for each in chains if (pair := catalogue.pair(each.gas_currency, each.code)) is not None]
    sums = rows(
        _BOTH,
        {
            "networks": list(networks),
            "by_coins": by_coins,
            "by_balance": by_balance,
            "purposes": list(MOVING),
            "coin_networks": [pair.network for pair in pairs],
            "coin_currencies": [pair.currency for pair in pairs],
            "coin_decimals": [pair.decimals for pair in pairs],
            "coin_depths": [catalogue.networks[pair.network].maturity for pair in pairs],
        }
        | _swept_soon(market, by_balance, fee_max_percent),
    )
    usable, queued = (
        _scaled(catalogue, [(row[1], row[2], row[3], row[4]) for row in sums if row[0] == kind])
        for kind in ("usable", "queued")
    )
    return usable, queued


def _summed(sums: Iterable[tuple[str, str, int]]) -> dict[Method, int]:
    return {(currency, code): int(units) for currency, code, units in sums}


def _by_coins(catalogue: Catalogue, networks: Collection[str]) -> set[str]:
    return {code for code in networks if traits_of(catalogue.networks[code]).spends_coins}


def _hot_balances(catalogue: Catalogue, networks: Sequence[str]) -> dict[Method, int]:
    return _scaled(catalogue, rows(_HELD, {"by_balance": list(networks)}))


def _deposits(catalogue: Catalogue, networks: Sequence[str]) -> dict[Method, int]:
    """Return what lies at deposit addresses: with what a sweep under way has not moved yet."""
    by_method = Counter(_summed(rows(_UNSWEPT, (list(networks),))))
    by_method.update(_under_way(catalogue, networks, ["sweep"]))
    return by_method


def _under_way(catalogue: Catalogue, networks: Sequence[str], purposes: Sequence[Purpose]) -> dict[Method, int]:
    return _scaled(catalogue, rows(_UNDER_WAY, {"by_balance": list(networks), "purposes": list(purposes)}))


def _scaled(catalogue: Catalogue, sums: Iterable[tuple[str, str, int | None, int]]) -> dict[Method, int]:
    """Return rows of (currency, network, decimals, units) as the ledger's units, of what the catalogue has."""
    scaled: defaultdict[Method, int] = defaultdict(int)
    for currency, code, decimals, units in sums:
        if (currency, code) in catalogue.pairs:
            scale = catalogue.scale(currency)
            scaled[currency, code] += rescale_down(int(units), scale if decimals is None else decimals, scale)
    return scaled


def _hot(catalogue: Catalogue, networks: Collection[str]) -> dict[Method, int]:
    by_coins = _by_coins(catalogue, networks)
    by_method = _hot_balances(catalogue, sorted(set(networks) - by_coins))
    for code in sorted(by_coins):
        network = catalogue.networks[code]
        for heap in coins.heaps(code):
            units = _ledger_units(catalogue, network, heap.units)
            by_method[heap.currency, code] = by_method.get((heap.currency, code), 0) + units
    return by_method


def _ledger_units(catalogue: Catalogue, network: Network, units: int) -> int:
    """Return token units of a network's own coin as the ledger's; 0 where the catalogue does not have it."""
    pair = catalogue.pair(network.gas_currency, network.code)
    return 0 if pair is None else pair.to_ledger(units, catalogue.scale(pair.currency))


def _swept_soon(market: Market, networks: Collection[str], fee_max_percent: int) -> dict[str, list[Any]]:
    wanted = [
        (currency, code, -(-cost_units * PERCENT // fee_max_percent))
        for (currency, code), cost_units in market.sweep_fees.items()
        if code in networks and fee_max_percent
    ]
    names = ("swept_currencies", "swept_networks", "swept_leasts")
    return {name: [each[place] for each in wanted] for place, name in enumerate(names)}
