"""`sluice scan`: shows how far each network is scanned, and moves a halted scan back. Run by operators."""

from typing import Annotated, Any

import typer

from actors.scan.rewind import RewindRefusedError
from actors.scan.rewind import rewind as move_back
from cli.output import CommandError, JsonFlag, show
from cli.session import database, open_network
from models.deposits import scans
from models.deposits.scans import State

app = typer.Typer(no_args_is_help=True, help="How far each network is scanned, and moving a halted scan back.")


@app.command("show")
def show_scans(
    network: Annotated[str | None, typer.Argument(help="One network, by its code; all without it.")] = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Show each scan's block, its chain's head, the blocks that are kept, and the reason of a halt."""
    with database() as settings:
        if network is not None and network not in settings.catalogue.networks:
            raise CommandError(f"there is no network {network}")
        states = [each for each in scans.states() if network in {None, each.network}]
    show({"scans": [_document(each) for each in states]}, _lines(states), as_json=as_json)


@app.command("rewind")
def rewind(
    network: Annotated[str, typer.Argument(help="The network, by its code.")],
    height: Annotated[int, typer.Option("--to", min=0, help="The block to go on from, which is right.")],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also if nothing is halted, credited deposits are above, or other providers are silent."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Move a scan back to a block, and continue from there. Deposits above it are undone until they are read again."""
    with open_network(network) as (ctx, known, chain):
        try:
            done = move_back(ctx, known, chain, height, is_forced=force)
        except RewindRefusedError as error:
            raise CommandError(str(error)) from None
    document = {
        "network": network,
        "from_height": done.from_height,
        "height": done.to_height,
        "block_hash": done.block_hash,
        "deposits_taken_back": done.deposits,
    }
    lines = [f"{network} goes on from block {done.to_height}; {done.deposits} deposits wait to be read again"]
    show(document, lines, as_json=as_json)


def _document(scan: State) -> dict[str, Any]:
    return {
        "network": scan.network,
        "height": scan.height,
        "block_hash": scan.hash,
        "head_height": scan.head_height,
        "kept_from": scan.kept_from,
        "kept_blocks": scan.kept_blocks,
        "halted_reason": scan.halted_reason or None,
        "halted_at": scan.halted_at,
    }


def _lines(states: list[State]) -> list[str]:
    if not states:
        return ["no scan has begun"]
    return [
        f"{scan.network}: block {scan.height} of {scan.head_height}, {scan.kept_blocks} blocks kept from"
        f" {scan.kept_from} on"
        + (f"; HALTED since {scan.halted_at}: {scan.halted_reason}" if scan.halted_reason else "")
        for scan in states
    ]
