"""`sluice payout`: shows payouts of all merchants. Run by operators; `sluice payouts` acts on them."""

from typing import Annotated, Any, get_args
from uuid import UUID

import typer

from cli.output import JsonFlag
from cli.reading.fields import LIST_USUAL, LimitOption, MerchantOption, missing, show_list, show_one
from cli.session import database
from core.catalogue.catalogue import Catalogue
from core.payouts.states import PayoutStatus
from models.db.query import descending
from models.payouts import queue as payout_queue
from models.payouts import views
from models.payouts.rows import PayoutRow

app = typer.Typer(no_args_is_help=True, help="Payouts of all merchants, to read; `sluice payouts` acts on them.")
COLUMNS = ("uuid", "created_at", "stage", "amount", "currency", "network", "address", "order_id")


@app.command("show")
def show_payout(
    number: Annotated[UUID, typer.Argument(metavar="UUID", help="The payout's number.")], *, as_json: JsonFlag = False
) -> None:
    """Show a payout as its merchant reads it, with its stage and the reason of its wait."""
    with database() as settings:
        payout = payout_queue.read(number)
        if payout is None:
            raise missing("payout", number)
    show_one(_document(settings.catalogue, payout), as_json=as_json)


@app.command("list")
def list_payouts(
    *,
    merchant: MerchantOption = None,
    stage: Annotated[str | None, typer.Option(help=f"Those of one stage: {', '.join(get_args(PayoutStatus))}.")] = None,
    order: Annotated[str | None, typer.Option("--order", help="Those of one order_id.")] = None,
    limit: LimitOption = LIST_USUAL,
    as_json: JsonFlag = False,
) -> None:
    """List payouts, newest first."""
    if stage is not None and stage not in get_args(PayoutStatus):
        raise typer.BadParameter(f"a stage is one of {', '.join(get_args(PayoutStatus))}")
    with database() as settings:
        chosen = PayoutRow.select().where(
            merchant is None or PayoutRow.merchant_id == merchant,
            stage is None or PayoutRow.status == stage,
            order is None or PayoutRow.order_id == order,
        )
        rows = chosen.order_by(descending(PayoutRow.id)).limit(limit).all()
    show_list([_document(settings.catalogue, payout) for payout in rows], COLUMNS, as_json=as_json)


def _document(catalogue: Catalogue, payout: PayoutRow) -> dict[str, Any]:
    view = views.payout(catalogue, payout)
    own = {"merchant_id": str(payout.merchant_id), "stage": payout.status, "wait_reason": payout.wait_reason}
    return {**own, **view, "created_by": payout.created_by}
