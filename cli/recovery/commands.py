"""Declares `sluice treasury recover`, `writeoff` and `dismiss`: the ends of an unexplained departure.

For a database that lost its last commits; docs/backup.md describes each step. cli.__main__ joins them with the commands
of cli.treasury.
"""

from typing import Annotated, Final
from uuid import UUID

import structlog
import typer

from actors import context
from actors.context import Context
from cli.output import CommandError, JsonFlag, confirm, plain, show
from cli.recovery.listing import LISTED_MAX, show_departures
from cli.session import database
from cli.shell.operators import ByOption, WhyOption, operator
from cli.shell.progress import progress
from cli.shell.reasons import check_reason
from cli.treasury.comparison import compared_now
from cli.treasury.words import YesFlag, amount_of, known_network, units_of
from core.catalogue.catalogue import Network
from core.catalogue.families import SERVED_FAMILIES, stored_txid
from core.money import format_coin
from models.addresses import reservations
from models.db.base import transaction
from models.ledger import acts
from models.merchants import rows as merchants
from models.recovery import writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import matching, unexplained, unread_departures
from models.spends.unexplained import UnexplainedRow

log = structlog.get_logger()

app = typer.Typer()

CHEQUES_MAX: Final = 5
DAY_S: Final = 86_400
DespiteOption = Annotated[
    list[UUID] | None, typer.Option("--despite", help="An open payout that it did not pay, by its uuid; repeatable.")
]


@app.command()
def recover(
    network: str,
    *,
    adopt: Annotated[str | None, typer.Option("--adopt", help="Adopt this departure as an order's payout.")] = None,
    merchant: Annotated[UUID | None, typer.Option("--merchant", help="Whose order, by the merchant's id.")] = None,
    order_id: Annotated[str | None, typer.Option("--order-id", help="The order that it paid.")] = None,
    output: Annotated[int | None, typer.Option("--output", help="Which of its outputs, where several wait.")] = None,
    despite: DespiteOption = None,
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List unexplained departures, or adopt an output of one as the payout of an order.

    A repeat of that order then returns the payout. The merchant's balance pays it; a missing rest becomes debt. A
    cheque is named as payoutlink:ID.
    """
    with database() as settings:
        ctx = context.configure(settings)
        known = known_network(ctx, network)
        if adopt is None and merchant is None and order_id is None and output is None:
            show_departures(ctx, known, as_json=as_json)
            return
        if adopt is None or merchant is None or not order_id:
            raise CommandError("--adopt, --merchant and --order-id go together")
        _adopt(ctx, known, adopt, merchant, order_id, output, despite or [], yes=yes, who=operator(by), as_json=as_json)


@app.command()
def writeoff(
    network: str,
    currency: str,
    amount: str,
    *,
    reason: Annotated[str, typer.Option(help="Why; kept with the row.")],
    despite: DespiteOption = None,
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write off the missing amount of a coin, against the gateway's equity.

    It is the sum of the coin's unexplained departures, and of the rest that the hot wallet lacks.
    """
    check_reason(reason)
    who = operator(by)
    with database() as settings:
        ctx = context.configure(settings)
        known = known_network(ctx, network)
        units = units_of(ctx, currency, amount)
        moved, waiting = writeoffs.explained(ctx.catalogue, network, currency)
        if units < moved:
            shown = amount_of(ctx.catalogue, currency, moved)
            raise CommandError(f"unexplained departures moved {shown} {currency}: all or none")
        if units == 0 and not waiting:
            raise CommandError("there is nothing to write off")
        if units > moved:
            _check_missing(ctx, known, currency, units - moved)
        for each in waiting:
            _warn_of_cheques(ctx, each)
        if not yes:
            question = f"Write off {amount} {currency} on {network}, {len(waiting)} departures with it?"
            confirm(question)
        try:
            done, txids = writeoffs.write_off(
                ctx.catalogue, network, currency, units, reason=reason, by=who, despite=despite or []
            )
        except RecoveryError as error:
            raise CommandError(str(error)) from None
        log.warning("departure.written_off", network=network, currency=currency, amount=amount, by=who, reason=reason,
                    txids=txids)  # fmt: skip
    document = {"network": network, "currency": currency, "amount": amount, "id": str(done.id), "txids": txids}
    lines = [f"{amount} {currency} on {network} are written off, {len(txids)} departures with it"]
    if txids:
        days = matching.REPEATED_WITHIN_S // DAY_S
        lines.append(f"for {days} days a payout that asks for the same waits for recover --adopt or payouts release")
    show(document, lines, as_json=as_json)


def _warn_of_cheques(ctx: Context, departure: UnexplainedRow) -> None:
    """Name open cheques of exactly this sum: a lost claim may have been paid by it, and would be paid again."""
    link_ids = {
        link_id: None for part in departure.parts
        for link_id in matching.cheques(ctx.catalogue, departure, part, limit=CHEQUES_MAX)
    }  # fmt: skip
    if link_ids:
        named = ", ".join(f"{writeoffs.CHEQUE}{link_id}" for link_id in link_ids)
        warning = f"{departure.txid} moved the sum of open cheques, which its claim may have paid: {named}"
        typer.echo(plain(warning), err=True)


def _check_missing(ctx: Context, network: Network, currency: str, units: int) -> None:
    """Refuse to write off more than the chain lacks: the excess would be the next difference. Raises CommandError."""
    hot, _ = compared_now(ctx, network.code, currency)
    # Unexplained departures explain a part of the missing amount; the comparison below does not include that part.
    moved, _ = writeoffs.explained(ctx.catalogue, network.code, currency)
    missing = hot.expected_units - hot.chain_units - moved
    if units > missing:
        raise CommandError(
            f"the hot wallet of {network.code} lacks {amount_of(ctx.catalogue, currency, max(0, missing))} {currency}"
            " besides the unexplained departures"
        )


def _adopt(
    ctx: Context, network: Network, written: str, merchant_id: UUID, order_id: str, place: int | None,
    despite: list[UUID], *, yes: bool, who: str, as_json: bool,
) -> None:  # fmt: skip
    merchants.check_exists(merchant_id)
    txid = stored_txid(network, written)
    departure = unexplained.find(network.code, txid)
    if departure is None:
        raise CommandError(f"{written} on {network.code} is not among the unexplained departures")
    amount = format_coin(departure.token_units, departure.decimals)
    if not order_id.startswith(writeoffs.CHEQUE):
        _warn_of_cheques(ctx, departure)
    if not yes:
        what = (
            f"output {place} of {txid}"
            if place is not None
            else f"{amount} {departure.currency} to {departure.recipient}"
        )
        confirm(f"Adopt {what} as order {order_id!r} of {merchant_id}?")
    try:
        with progress(f"adoption of {txid}"):
            payout, left = writeoffs.pay_order(
                ctx.catalogue, network.code, txid, merchant_id=merchant_id, order_id=order_id, by=who, place=place,
                despite=despite,
            )  # fmt: skip
    except RecoveryError as error:
        raise CommandError(str(error)) from None
    log.warning("departure.adopted", network=network.code, txid=txid, payout=str(payout.id), order_id=order_id, by=who)
    document = {
        "network": network.code, "txid": txid, "payout": str(payout.id), "order_id": order_id, "outputs_left": left
    }  # fmt: skip
    line = f"{txid} is payout {payout.id} of order {order_id!r}; it is paid once it is buried"
    show(document, [line, *([f"{left} of its outputs are unexplained still"] if left else [])], as_json=as_json)


@app.command()
def dismiss(
    network: str,
    txid: str,
    *,
    reason: Annotated[str, typer.Option(help="Why; kept with the row.")],
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Dismiss a departure that one node claimed and no node can show: it never existed.

    Only for departures that `recover` lists as shown by no node. If one is found in a block, signing stops again.
    """
    check_reason(reason)
    who = operator(by)
    with database() as settings:
        known = known_network(context.configure(settings), network)
        wanted = stored_txid(known, txid)
        unread = unread_departures.waiting(network, limit=LISTED_MAX)
        claimed = next((each for each in unread if each.txid == wanted), None)
        if claimed is None:
            raise CommandError(f"{txid} on {network} is not among those that no node has shown yet")
        if not yes:
            confirm(f"Does no explorer of {network} know {txid}, so that it never was?")
        with transaction():
            is_dismissed = unread_departures.dismiss(claimed, by=who, reason=reason)
            if is_dismissed:
                acts.record("departure.dismissed", f"{network} {wanted}", by=who, reason=reason)
        if not is_dismissed:
            raise CommandError(f"{txid} has been found in another block since: look again")
        log.warning("departure.dismissed", network=network, txid=wanted, height=claimed.block_height, by=who,
                    reason=reason)  # fmt: skip
    show({"network": network, "txid": wanted}, [f"{wanted} counts for nothing on {network}"], as_json=as_json)


@app.command("skip-addresses")
def skip_addresses(
    family: str, *, yes: YesFlag = False, reason: WhyOption = "", by: ByOption = None, as_json: JsonFlag = False
) -> None:
    """Skip all deposit addresses that may have been shown before the database lost its last commits.

    The signer does so by itself, unless the restored database looks the same and Redis has lost its watermark.
    """
    if family not in SERVED_FAMILIES:
        raise CommandError(f"no addresses are made in advance for {family!r}")
    if not yes:
        confirm(f"Skip ahead in the addresses of {family}?")
    who = operator(by)
    with database(), transaction():
        first = reservations.skip_ahead(family)
        acts.record("addresses.skipped", family, by=who, details=f"the next is number {first}", reason=reason)
    log.warning("treasury.addresses_skipped", family=family, first=first, by=who)
    show({"family": family, "first": first}, [f"the next address of {family} is number {first}"], as_json=as_json)
