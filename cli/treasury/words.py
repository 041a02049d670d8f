"""Parses the arguments of operators and formats amounts. Used by the commands of `sluice treasury`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from actors.context import Context
from cli.output import CommandError
from core.catalogue.catalogue import Catalogue, Network
from core.errors import RequestBadField
from core.money import format_coin, parse_units
from models.treasury.rows import Topup

YesFlag = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
OutputOption = Annotated[str | None, typer.Option("--output", help="Which of its transfers, if several are listed.")]


def known_network(ctx: Context, code: str) -> Network:
    """Return a network of the catalogue. Raises CommandError."""
    known = ctx.catalogue.networks.get(code)
    if known is None:
        raise CommandError(f"the catalogue has no network {code!r}")
    return known


def one_transfer(listed: Sequence[Topup], txid: str, *, output: str | None, missing: str) -> Topup:
    """Return the transfer of a transaction that an operator names. Needs `output` if there are several.

    Raises CommandError; missing: its text if there is no transfer.
    """
    meant = [each for each in listed if output in {None, each.ordinal}]
    if not meant:
        raise CommandError(missing)
    if len(meant) > 1:
        outputs = ", ".join(each.ordinal for each in meant)
        raise CommandError(f"{txid} made {len(meant)} transfers: say which with --output: {outputs}")
    return meant[0]


def units_of(ctx: Context, currency: str, amount: str) -> int:
    """Return an amount in the ledger's units. Raises CommandError."""
    if currency not in ctx.catalogue.assets:
        raise CommandError(f"the catalogue has no coin {currency!r}")
    try:
        return parse_units(amount, digits=ctx.catalogue.scale(currency), error=RequestBadField)
    except RequestBadField as error:
        raise CommandError(f"not an amount of {currency}: {error}") from None


def amount_of(catalogue: Catalogue, currency: str, units: int) -> str:
    """Return an amount of ledger units as text; it may be negative."""
    scale = catalogue.scale(currency)
    return f"-{format_coin(-units, scale)}" if units < 0 else format_coin(units, scale)
