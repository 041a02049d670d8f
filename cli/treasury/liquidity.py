"""Declares `sluice treasury liquidity`: the sum owed of each coin, and each network's stock of it.

Added to the group by cli.treasury.commands.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from actors import context
from actors.context import Context
from cli.output import JsonFlag, show
from cli.session import database
from cli.treasury.words import amount_of
from models.treasury import liquidity as treasury_liquidity
from models.treasury.liquidity import Stock


def liquidity(*, as_json: JsonFlag = False) -> None:
    """Show the sums owed and held by coin, and the sums that payouts wait for and lack by network."""
    with database() as settings:
        ctx = context.configure(settings)
        stocks = treasury_liquidity.stocks(
            ctx.catalogue, ctx.market.read(), ctx.available, fee_max_percent=settings.sweep_fee_max_percent
        )
        owed = treasury_liquidity.owed()
    coins = [
        _coin(ctx, currency, owed.get(currency, 0), [each for each in stocks if each.currency == currency])
        for currency in ctx.catalogue.assets
        if owed.get(currency, 0) or any(each.currency == currency for each in stocks)
    ]
    lines = [line for each in coins if _is_any(each) for line in _lines(each)]
    show({"coins": coins}, lines or ["nothing is owed, held or queued"], as_json=as_json)


def _coin(ctx: Context, currency: str, owed_units: int, stocks: list[Stock]) -> dict[str, Any]:
    amount = partial(amount_of, ctx.catalogue, currency)
    held_units = sum(each.held_units for each in stocks)
    return {
        "currency": currency,
        "owed": amount(owed_units),
        "held": amount(held_units),
        "short": amount(max(0, owed_units - held_units)),
        "networks": [
            {
                "network": each.network,
                "held": amount(each.held_units),
                "hot": amount(each.hot_units),
                "deposits": amount(each.deposit_units),
                "cold": amount(each.cold_units),
                "queued": amount(each.queued_units),
                "usable": amount(each.usable_units),
                "missing": amount(each.missing_units),
            }
            for each in stocks
        ],
    }


def _is_any(coin: dict[str, Any]) -> bool:
    """Return True if a coin has any figure to show."""
    figures = [coin["owed"], coin["held"], *(each[name] for each in coin["networks"] for name in ("cold", "queued"))]
    return any(figure != "0" for figure in figures)


def _lines(coin: dict[str, Any]) -> list[str]:
    short = "" if coin["short"] == "0" else f", {coin['short']} short"
    return [
        f"{coin['currency']}: {coin['owed']} owed, {coin['held']} held{short}",
        *(
            f"  {each['network']}: {each['held']} held ({each['hot']} hot, {each['deposits']} at deposit addresses),"
            f" {each['cold']} cold, {each['queued']} queued, {each['usable']} usable"
            + ("" if each["missing"] == "0" else f": {each['missing']} MISSING")
            for each in coin["networks"]
        ),
    ]
