"""Reckons what can leave each network: what the hot wallet holds of a coin and no payout has claimed yet.

Read by the API and by automatic withdrawals, from rows alone. It is what the rows say at this moment, and no promise:
another payout may be first. Units are the ledger's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.money import rescale_down
from core.rates.pricing import PERCENT, Market, Method
from models.db.base import rows
from models.spends import coins
from models.treasury.topup_doubts import OPEN

# What payouts take that is still in the balance: signed ones until their block is known.
_QUEUED: Final = (
    "SELECT currency, network, sum(to_units) FROM payouts WHERE network = ANY(%s)"
    " AND (status IN ('approved', 'broadcasting') OR status = 'sent' AND block_height IS NULL)"
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
    "   WHERE network = ANY(%(networks)s) AND place = 'hot'"
    " UNION ALL SELECT m.currency, m.network, m.decimals, sum(m.units) FROM treasury_addresses a"
    "   JOIN spend_movements m ON (m.network, m.address) = (a.network, a.address)"
    "   WHERE a.network = ANY(%(networks)s) AND a.role = 'hot' AND a.is_current"
    f"   AND m.height > {_COMPARED.format('m')} GROUP BY m.currency, m.network, m.decimals"
    " UNION ALL SELECT t.currency, t.network, NULL, sum(t.units) FROM treasury_topups t"
    f"   WHERE t.network = ANY(%(networks)s) AND t.status <> 'reversed' AND NOT {OPEN}"
    f"   AND t.block_height > {_COMPARED.format('t')} GROUP BY t.currency, t.network"
)
# Deposits that a payout's wait makes the signer sweep: their address holds what that is worth.
_SWEPT_SOON: Final = (
    "SELECT currency, network, sum(units) FROM (SELECT d.currency, d.network, sum(d.amount_units) AS units"
    "   FROM unnest(%s::text[], %s::text[], %s::numeric[]) w (currency, network, least)"
    "   JOIN deposits d ON (d.network, d.currency) = (w.network, w.currency)"
    "   WHERE d.sweep_id IS NULL AND d.status IN ('confirmed', 'credited')"
    "   GROUP BY d.currency, d.network, d.address, w.least HAVING sum(d.amount_units) >= w.least) a"
    " GROUP BY currency, network"
)


def room(catalogue: Catalogue, market: Market, networks: Collection[str], *, fee_max_percent: int) -> dict[Method, int]:
    """Return what more payouts can take from each network by coin, 0 for nothing; a coin may be missing.

    fee_max_percent: what of a deposit its sweep may cost; no deposit counts that costs more. Where money lies in coins
    it is the free ones.
    """
    found: defaultdict[Method, int] = defaultdict(int)
    by_coins = {code for code in networks if traits_of(catalogue.networks[code]).claim == "coins"}
    for code in by_coins:
        network = catalogue.networks[code]
        found[network.gas_currency, code] += _free_units(catalogue, network)
    others = sorted(set(networks) - by_coins)
    for currency, code, decimals, units in rows(_HELD, {"networks": others}):
        if (currency, code) in catalogue.pairs:
            scale = catalogue.scale(currency)
            found[currency, code] += rescale_down(int(units), scale if decimals is None else decimals, scale)
    for currency, code, units in _swept_soon(market, others, fee_max_percent):
        found[currency, code] += int(units)
    for currency, code, units in rows(_QUEUED, (list(networks),)):
        # Signed ones hold their coins already, which are not counted as free.
        found[currency, code] -= int(units)
    return {method: max(0, units) for method, units in found.items()}


def _free_units(catalogue: Catalogue, network: Network) -> int:
    pair = catalogue.pair(network.gas_currency, network.code)
    units = coins.free_units(network.code, network.gas_currency, depth=network.maturity)
    return 0 if pair is None else pair.to_ledger(units, catalogue.scale(pair.currency))


def _swept_soon(market: Market, networks: Collection[str], fee_max_percent: int) -> list[tuple[str, str, int]]:
    wanted = [
        (currency, code, -(-cost_units * PERCENT // fee_max_percent))
        for (currency, code), cost_units in market.sweep_fees.items()
        if code in networks and fee_max_percent
    ]
    return rows(_SWEPT_SOON, [list(column) for column in zip(*wanted, strict=True)]) if wanted else []
