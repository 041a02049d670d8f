"""`sluice webhook`: shows deliveries of webhooks to all merchants. Run by operators."""

from typing import Annotated, Any
from uuid import UUID

import typer

from cli.output import JsonFlag
from cli.reading.fields import LIST_USUAL, LimitOption, MerchantOption, missing, show_list, show_one
from cli.session import database
from models.db.query import descending
from models.webhooks import views
from models.webhooks.rows import DeliveryRecord

app = typer.Typer(no_args_is_help=True, help="Deliveries of webhooks.")
COLUMNS = ("delivery_id", "created_at", "status", "event", "attempts", "last_status_code", "uuid", "url")
STATES = ("pending", "retrying", "delivered", "dead")


@app.command("show")
def show_webhook(
    number: Annotated[UUID, typer.Argument(metavar="ID", help="The delivery's X-Webhook-Id.")],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Show a delivery with its body and its last attempt."""
    with database():
        delivery = DeliveryRecord.first("d.id = %s", (number,))
    if delivery is None:
        raise missing("webhook", number)
    show_one(_document(delivery), as_json=as_json)


@app.command("list")
def list_webhooks(
    *,
    merchant: MerchantOption = None,
    status: Annotated[str | None, typer.Option(help=f"Those of one status: {', '.join(STATES)}.")] = None,
    of: Annotated[UUID | None, typer.Option("--of", help="Those about one payment, payout or wallet.")] = None,
    limit: LimitOption = LIST_USUAL,
    as_json: JsonFlag = False,
) -> None:
    """List deliveries, newest first."""
    if status is not None and status not in STATES:
        raise typer.BadParameter(f"a status is one of {', '.join(STATES)}")
    with database():
        chosen = DeliveryRecord.select().where(
            merchant is None or DeliveryRecord.merchant_id == merchant,
            status is None or DeliveryRecord.status == status,
            of is None or DeliveryRecord.object_id == of,
        )
        rows = chosen.order_by(descending(DeliveryRecord.id)).limit(limit).all()
    show_list([_document(each) for each in rows], COLUMNS, as_json=as_json)


def _document(delivery: DeliveryRecord) -> dict[str, Any]:
    view = views.delivery(delivery)
    return {"merchant_id": str(delivery.merchant_id), **view, "payload": delivery.body}
