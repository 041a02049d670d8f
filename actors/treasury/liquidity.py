"""Logs the coins that queued payouts lack, by network. Notified by the scheduler."""

from __future__ import annotations

import structlog

from actors.context import context
from actors.queue.broker import doorbell, single_flight
from core.money import format_coin
from models.treasury import liquidity

log = structlog.get_logger()


@doorbell(queue="maintenance")
def watch_liquidity() -> None:
    """Log each lack of coin once an hour, whichever process finds it."""
    with single_flight("liquidity") as is_mine:
        if is_mine:
            _watch()


def _watch() -> None:
    ctx = context()
    missing = liquidity.missing(
        ctx.catalogue, ctx.market.read(), ctx.available, fee_max_percent=ctx.settings.sweep_fee_max_percent
    )
    for (currency, network), units in missing.items():
        if units and liquidity.note_missing(currency, network):
            amount = format_coin(units, ctx.catalogue.scale(currency))
            log.error("liquidity.missing", currency=currency, network=network, amount=amount)
