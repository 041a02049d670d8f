"""`sluice payment`: shows payments of all merchants. Run by operators."""

from typing import Annotated, Any, get_args
from uuid import UUID

import typer

from cli.output import JsonFlag
from cli.reading.fields import LIST_USUAL, LimitOption, MerchantOption, missing, show_list, show_one
from cli.session import database
from core.invoices.states import InvoiceStatus
from core.settings.settings import Settings
from models.db.query import descending
from models.invoices import quoting, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow

app = typer.Typer(no_args_is_help=True, help="Payments of all merchants.")
COLUMNS = ("uuid", "created_at", "payment_status", "amount", "currency", "payer_currency", "network", "order_id")
# Pictures are for pages.
HIDDEN = "address_qr_code"


@app.command("show")
def show_payment(
    number: Annotated[UUID, typer.Argument(metavar="UUID", help="The payment's number.")], *, as_json: JsonFlag = False
) -> None:
    """Show a payment as its merchant reads it."""
    with database() as settings:
        invoice = invoices.find_public(number)
        if invoice is None:
            raise missing("payment", number)
        document = _document(settings, invoice)
    show_one(document, as_json=as_json)


@app.command("list")
def list_payments(
    *,
    merchant: MerchantOption = None,
    status: Annotated[
        str | None, typer.Option(help=f"Those of one status: {', '.join(get_args(InvoiceStatus))}.")
    ] = None,
    order: Annotated[str | None, typer.Option("--order", help="Those of one order_id.")] = None,
    limit: LimitOption = LIST_USUAL,
    as_json: JsonFlag = False,
) -> None:
    """List payments, newest first."""
    _check_status(status)
    with database() as settings:
        chosen = InvoiceRow.select().where(
            merchant is None or InvoiceRow.merchant_id == merchant,
            status is None or InvoiceRow.status == status,
            order is None or InvoiceRow.order_id == order,
        )
        listed = chosen.order_by(descending(InvoiceRow.id)).limit(limit).all()
        documents = [_document(settings, invoice) for invoice in listed]
    show_list(documents, COLUMNS, as_json=as_json)


def _check_status(status: str | None) -> None:
    if status is not None and status not in get_args(InvoiceStatus):
        raise typer.BadParameter(f"a status is one of {', '.join(get_args(InvoiceStatus))}")


def _document(settings: Settings, invoice: InvoiceRow) -> dict[str, Any]:
    shown = quoting.seen_one(settings.catalogue, invoice)
    view = views.payment(settings.catalogue, shown, pay_url=settings.pay_url, public=False)
    return {"merchant_id": str(invoice.merchant_id), **{name: view[name] for name in view if name != HIDDEN}}
