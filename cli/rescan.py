"""`sluice rescan`: reads blocks of a network again, for a deposit that is missing. Run by operators."""

from typing import Annotated, Any, Final

import typer

from actors.scan.rescan import reread
from chains.family import Reader
from cli.output import CommandError, JsonFlag, show
from cli.session import open_network
from cli.shell.progress import progress
from models.deposits import cursors

BLOCKS_MAX: Final = 10_000


def rescan(
    network: str,
    first: Annotated[int | None, typer.Option("--from", min=0, help="The first block.")] = None,
    last: Annotated[int | None, typer.Option("--to", min=0, help="The last block; the first alone without it.")] = None,
    txid: Annotated[str | None, typer.Option(help="The block of this transaction instead.")] = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Read blocks again and record missed deposits. A second run changes nothing."""
    with open_network(network) as (ctx, known, chain), progress(f"rescan of {network}:") as note:
        heights = _heights(chain, network, first, last, txid)
        blocks = []
        for height in heights:
            note(f"block {height} of {heights[-1]}")
            blocks.append(reread(ctx, known, chain, height))
    absent = [block.height for block in blocks if block.block_hash is None]
    document: dict[str, Any] = {
        "network": network,
        "blocks": len(blocks),
        "deposits_found": sum(block.recorded for block in blocks),
        "deposits_doubted": sum(block.doubted for block in blocks),
        "not_on_the_scanned_chain": absent,
    }
    show(document, [f"{name.replace('_', ' ')}: {value}" for name, value in document.items()], as_json=as_json)


def _heights(chain: Reader, network: str, first: int | None, last: int | None, txid: str | None) -> range:
    if (txid is None) == (first is None):
        raise CommandError("give either --from (and --to) or --txid")
    if txid is not None:
        first = last = chain.locate(txid)
    if first is None:
        raise CommandError(
            f"no provider of {network} knows this transaction in a block; where they know only what is unspent, name"
            " its block with --from"
        )
    last = first if last is None else last
    cursor = cursors.read(network)
    if cursor is None or last > cursor.height:
        raise CommandError(f"{network} is scanned up to block {cursor.height if cursor else 'none'}")
    if not first <= last < first + BLOCKS_MAX:
        raise CommandError(f"--to has to follow --from by less than {BLOCKS_MAX} blocks")
    return range(first, last + 1)
