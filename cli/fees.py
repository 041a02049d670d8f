"""`sluice fees`: shows the coin that the gateway owns, and gives collected fees to a merchant of its operator."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import structlog
import typer

from actors import context
from actors.context import Context
from actors.payouts.gas_reserves import reserve_units
from cli.output import CommandError, JsonFlag, show
from cli.session import committed, database
from cli.shell.operators import ByOption, WhyOption, operator
from cli.treasury.words import YesFlag, amount_of, units_of
from models.merchants import rows as merchants
from models.treasury import fees
from models.treasury.fees import FeesError, Own

log = structlog.get_logger()

app = typer.Typer(no_args_is_help=True, help="The gateway's own coin: collected fees, and taking them out.")


@app.command("show")
def show_fees(*, as_json: JsonFlag = False) -> None:
    """Show the coin that the gateway owns, by account, and the fees that can be taken."""
    with database() as settings:
        ctx = context.configure(settings)
        owned = fees.own(list(ctx.catalogue.assets))
        coins = [_document(ctx, currency, own) for currency, own in owned.items() if own.by_kind]
    lines = [line for coin in coins for line in _lines(coin)]
    show({"coins": coins}, lines or ["the gateway owns nothing"], as_json=as_json)


@app.command("take")
def take(
    currency: str,
    amount: str,
    merchant: Annotated[UUID, typer.Option("--to", help="The merchant that pays them out; with --cosign.")],
    reference: Annotated[str, typer.Option(help="A name that is used once, as 2026-11; a second run does nothing.")],
    *,
    yes: YesFlag = False,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Give collected fees to the available balance of your own merchant, which orders a payout to be approved."""
    who = operator(by)
    with database() as settings:
        ctx = context.configure(settings)
        units = units_of(ctx, currency, amount)
        merchants.check_exists(merchant)
        if not units:
            raise CommandError("nothing was asked for")
        if not yes:
            typer.confirm(f"Give {amount} {currency} of the fees to merchant {merchant}?", abort=True, err=True)
        reserve = reserve_units(ctx, currency)
        try:
            is_new = committed(
                fees.give, currency, units, merchant_id=merchant, reference=reference, reserve_units=reserve, by=who,
                reason=reason,
            )  # fmt: skip
        except FeesError as error:
            raise CommandError(str(error)) from None
        if is_new:
            log.warning("fees.taken", currency=currency, amount=amount, merchant=str(merchant), reference=reference,
                        by=who)  # fmt: skip
    document = {
        "currency": currency, "amount": amount, "merchant": str(merchant), "reference": reference, "is_new": is_new,
    }  # fmt: skip
    line = f"{amount} {currency} of the fees went to merchant {merchant}"
    show(document, [line if is_new else f"{line}: booked before"], as_json=as_json)


def _document(ctx: Context, currency: str, own: Own) -> dict[str, Any]:
    reserve = reserve_units(ctx, currency)
    amounts = {
        **own.by_kind,
        "owned": own.units,
        "maturing": own.maturing_units,
        "reserve": reserve,
        "free": own.free(reserve),
    }
    return {
        "currency": currency,
        **{name: amount_of(ctx.catalogue, currency, units) for name, units in amounts.items()},
    }


def _lines(coin: dict[str, Any]) -> list[str]:
    kinds = ", ".join(
        f"{name} {amount}"
        for name, amount in coin.items()
        if name not in {"currency", "owned", "maturing", "reserve", "free"}
    )
    return [
        f"{coin['currency']}: {coin['owned']} owned, {coin['free']} of the fees can be taken",
        f"  {kinds}; {coin['maturing']} of the fees mature, {coin['reserve']} are kept for gas",
    ]
