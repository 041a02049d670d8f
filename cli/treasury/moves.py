"""Declares `sluice treasury move`, which books what an operator carried to another network."""

from typing import Annotated, Final

import structlog
import typer

from actors import context as process
from cli.output import CommandError, JsonFlag, show
from cli.session import database
from cli.treasury.words import YesFlag, known_network, operator, units_of
from core.catalogue.families import stored_txid
from models.treasury import moves
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
    as_json: JsonFlag = False,
) -> None:
    """Book what you carried from a cold address to another network, whatever arrives there as a top-up.

    The difference of both is what the way cost. Run it once the coin has left; running it again changes nothing.
    """
    if not txid or len(txid) > TXID_CHARS_MAX or not txid.isascii() or not txid.isalnum():
        raise CommandError("--txid is a transaction's hash")
    with database() as settings:
        ctx = process.configure(settings)
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
            typer.confirm(question, abort=True, err=True)
        by = operator()
        try:
            is_new = moves.move(
                currency=currency,
                units=units,
                from_network=origin.code,
                to_network=target.code,
                txid=stored_txid(origin, txid),
                by=by,
            )
        except MoveError as error:
            raise CommandError(str(error)) from None
        if is_new:
            log.warning("treasury.moved", currency=currency, amount=amount, network=origin.code, to=target.code,
                        txid=txid, by=by)  # fmt: skip
    document = {
        "currency": currency, "amount": amount, "from": origin.code, "to": target.code, "txid": txid, "is_new": is_new,
    }  # fmt: skip
    line = f"{amount} {currency} left {origin.code} for {target.code}"
    show(document, [line if is_new else f"{line}: booked before"], as_json=as_json)
