"""Declares `sluice treasury move` and `returned`: they book coin that an operator moved from a cold address."""

from typing import Annotated, Final

import structlog
import typer

from actors import context
from cli.output import CommandError, JsonFlag, confirm, show
from cli.session import database
from cli.shell.operators import ByOption, operator
from cli.treasury.words import OutputOption, YesFlag, amount_of, known_network, one_transfer, units_of
from core.catalogue.families import stored_txid
from models.treasury import moves, topups
from models.treasury.moves import MoveError

log = structlog.get_logger()

TXID_CHARS_MAX: Final = 128


def move(
    currency: str,
    amount: str,
    *,
    from_network: Annotated[str, typer.Option("--from", help="The network whose cold address it left.")],
    to_network: Annotated[
        str, typer.Option("--to", help="The network to whose hot wallet it goes, not by its cold address.")
    ],
    txid: Annotated[str, typer.Option("--txid", help="The transaction by which it left the cold address.")],
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Book coin that you moved from a cold address to another network; its arrival is booked as a top-up.

    The difference of both sums is the cost of the move. Run it once the coin has left; a second run changes nothing.
    """
    _check_txid(txid, name="--txid")
    with database() as settings:
        ctx = context.configure(settings)
        origin, target = known_network(ctx, from_network), known_network(ctx, to_network)
        units = units_of(ctx, currency, amount)
        if origin.code == target.code:
            raise CommandError("within a network nothing has to be booked")
        for network in (origin, target):
            if (currency, network.code) not in ctx.catalogue.pairs:
                raise CommandError(f"there is no {currency} on {network.code}")
        if not units:
            raise CommandError("nothing was carried")
        if not yes:
            question = (
                f"Book {amount} {currency} as carried from {origin.code} to the hot address of {target.code}?"
                " What goes to its cold address is booked only when it comes back from there."
            )
            confirm(question)
        who = operator(by)
        try:
            is_new = moves.move(
                currency=currency,
                units=units,
                from_network=origin.code,
                to_network=target.code,
                txid=stored_txid(origin, txid),
                by=who,
            )
        except MoveError as error:
            raise CommandError(str(error)) from None
        if is_new:
            log.warning("treasury.moved", currency=currency, amount=amount, network=origin.code, to=target.code,
                        txid=txid, by=who)  # fmt: skip
    document = {
        "currency": currency, "amount": amount, "from": origin.code, "to": target.code, "txid": txid, "is_new": is_new,
    }  # fmt: skip
    line = f"{amount} {currency} left {origin.code} for {target.code}"
    show(document, [line if is_new else f"{line}: booked before"], as_json=as_json)


def returned(
    network: str,
    txid: str,
    *,
    output: OutputOption = None,
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Book a top-up as returned from the cold address, if the scan could not find its source.

    The part up to the books' balance of the cold address counts as returned; the rest stays the gateway's own.
    """
    _check_txid(txid, name="TXID")
    with database() as settings:
        ctx = context.configure(settings)
        known = known_network(ctx, network)
        booked = topups.find(known.code, stored_txid(known, txid))
        missing = f"{txid} on {network} is no top-up that is booked as the gateway's own"
        transfer = one_transfer(booked, txid, output=output, missing=missing)
        amount = amount_of(ctx.catalogue, transfer.currency, transfer.units)
        if not yes:
            question = f"Book {amount} {transfer.currency} on {network} as come back from the cold address?"
            confirm(question)
        who = operator(by)
        back_units = topups.take_as_returned(transfer, by=who)
        if back_units is None:
            raise CommandError("what lay in the cold address is not known yet, or the top-up changed; try again later")
        back = amount_of(ctx.catalogue, transfer.currency, back_units)
        log.warning("treasury.returned", network=network, txid=transfer.txid, currency=transfer.currency, amount=amount,
                    known=back, by=who)  # fmt: skip
    document = {
        "network": network,
        "txid": transfer.txid,
        "currency": transfer.currency,
        "amount": amount,
        "known": back,
    }
    show(document, [f"{back} of {amount} {transfer.currency} came back from the cold address"], as_json=as_json)


def _check_txid(txid: str, *, name: str) -> None:
    if not txid or len(txid) > TXID_CHARS_MAX or not txid.isascii() or not txid.isalnum():
        raise CommandError(f"{name} is a transaction's hash")
