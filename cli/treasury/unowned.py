"""Declares `sluice treasury unowned` and `keep`: payments to addresses without an owner, and their outcome.

Added to the group by cli.treasury.commands.
"""

from typing import Annotated, Any, Final

import structlog
import typer

from actors import context
from actors.context import Context
from cli.output import CommandError, JsonFlag, confirm, show
from cli.session import database
from cli.shell.operators import ByOption, operator
from cli.treasury.words import OutputOption, YesFlag, amount_of, known_network, one_transfer
from core.catalogue.families import stored_txid
from models.treasury import unowned as treasury_unowned
from models.treasury.rows import Topup

log = structlog.get_logger()

SHOWN_MAX: Final = 1_000


def unowned(
    network: Annotated[str | None, typer.Option("--network", help="This network alone.")] = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """List payments to addresses that were given to no merchant and no payment, oldest first."""
    with database() as settings:
        ctx = context.configure(settings)
        code = None if network is None else known_network(ctx, network).code
        documents = [_shown(ctx, each) for each in treasury_unowned.listing(code, limit=SHOWN_MAX)]
    show({"unowned": documents}, [_line(each) for each in documents] or ["nothing came to addresses of nobody"],
         as_json=as_json)  # fmt: skip


def keep(
    network: str,
    txid: str,
    *,
    output: OutputOption = None,
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Book a payment to an address without an owner as the gateway's own, once its payer has been paid back."""
    with database() as settings:
        ctx = context.configure(settings)
        known = known_network(ctx, network)
        listed = treasury_unowned.listing(known.code, limit=SHOWN_MAX, txid=stored_txid(known, txid))
        missing = f"no payment of {txid} on {network} is listed by `sluice treasury unowned`"
        transfer = one_transfer(listed, txid, output=output, missing=missing)
        amount = amount_of(ctx.catalogue, transfer.currency, transfer.units)
        if not yes:
            confirm(f"Make {amount} {transfer.currency} at {transfer.address} the gateway's own?")
        who = operator(by)
        kept = treasury_unowned.keep(transfer, by=who)
        if not kept:
            raise CommandError("it is not booked yet, or a reorganisation took it; try again later")
        log.warning("treasury.kept", network=transfer.network, txid=transfer.txid, ordinal=transfer.ordinal,
                    address=transfer.address, currency=transfer.currency, amount=amount, by=who)  # fmt: skip
    document = {**_shown(ctx, transfer), "status": "kept"}
    show(document, [f"{amount} {transfer.currency} on {network} is the gateway's own"], as_json=as_json)


def _shown(ctx: Context, each: Topup) -> dict[str, Any]:
    return {
        "network": each.network,
        "txid": each.txid,
        "output": each.ordinal,
        "address": each.address,
        "currency": each.currency,
        "amount": amount_of(ctx.catalogue, each.currency, each.units),
        "height": each.block_height,
        "status": each.status,
    }


def _line(each: dict[str, Any]) -> str:
    return (
        f"{each['network']} {each['address']}: {each['amount']} {each['currency']} by {each['txid']} output"
        f" {each['output']} in block {each['height']}, {each['status']}"
    )
