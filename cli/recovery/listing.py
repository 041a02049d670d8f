"""Lists a network's unexplained departures for `sluice treasury recover`. Called by cli.recovery.commands."""

from typing import Any, Final
from uuid import UUID

from actors.context import Context
from cli.output import show
from cli.shell.progress import progress
from core.catalogue.catalogue import Network
from core.money import format_coin
from models.recovery import adoption
from models.spends import freshness, signing_stops, unexplained, unread_departures
from models.spends import rows as spends
from models.spends.unexplained import UnexplainedRow

LISTED_MAX: Final = 500


def show_departures(ctx: Context, network: Network, *, as_json: bool) -> None:
    """Show why the signer does not sign for a network, and its unexplained departures: open ones first, then ended."""
    stopped = signing_stops.read(network.code)
    waits = [] if stopped else [wait.reason for wait in freshness.waits([network.code])]
    reason = stopped.reason if stopped else next(iter(waits), "")
    with progress(f"departures of {network.code}"):
        documents = [_document(ctx, each) for each in unexplained.listing(network.code, limit=LISTED_MAX)]
    lines = [f"{network.code} is " + (f"not signed for: {reason}" if reason else "signed for")]
    if stopped is not None and not stopped.is_caught_up:
        lines.append("  the scan has not caught up with the chain yet")
    unread = [each.txid for each in unread_departures.waiting(network.code, limit=LISTED_MAX)]
    waiting = [each for each in documents if each["status"] == "unexplained"]
    lines.append(f"  open: {len(waiting) + len(unread)}")
    for each in waiting:
        lines += _lines(each)
    lines += [f"  {txid}: no node has shown yet what it moved" for txid in unread]
    ended = documents[len(waiting) :]
    lines += [f"  ended: {len(ended)}"] if ended else []
    for each in ended:
        lines += _lines(each)
    document = {
        "network": network.code, "stopped": reason or None, "open": len(waiting) + len(unread),
        "departures": documents, "unread": unread,
    }  # fmt: skip
    show(document, lines, as_json=as_json)


def _lines(each: dict[str, Any]) -> list[str]:
    claim = "" if each["slot"] is None else f", slot {each['slot']}"
    sender = f" from {each['sender']}" if each["sender"] else ""
    head = (
        f"  {each['status'].replace('_', ' ')} {each['txid']}: {each['amount']} {each['currency']} to"
        f" {each['recipient'] or 'several'}{_memo(each['outputs'][0])}{sender}{claim}, block {each['height'] or 'none'}"
        + ("" if each["took_effect"] else ", without effect")
        + (f"; {each['reason']}, by {each['settled_by']}" if each["settled_by"] else "")
    )
    outputs = each["outputs"] if len(each["outputs"]) > 1 else []
    return [head] + [
        f"    output {place}: {one['amount']} to {one['recipient'] or 'no address'}"
        + _memo(one)
        + ("" if one["took_effect"] else ", without effect")
        + (f", payout {one['payout']}" if one["payout"] else "")
        for place, one in enumerate(outputs)
    ]


def _memo(output: dict[str, Any]) -> str:
    return f" with memo {output['memo']!r}" if output["memo"] else ""


def _document(ctx: Context, each: UnexplainedRow) -> dict[str, Any]:
    return {
        "txid": each.txid,
        "status": each.status,
        "sender": each.sender,
        "slot": each.slot,
        "recipient": each.recipient,
        "currency": each.currency,
        "amount": format_coin(each.token_units, each.decimals),
        "outputs": [
            {
                "recipient": part.recipient,
                "amount": format_coin(part.units, each.decimals),
                "memo": part.memo,
                "took_effect": part.has_effect,
                "payout": None if payout is None else str(payout),
            }
            for part, payout in zip(each.parts, _payouts_of(ctx, each), strict=True)
        ],
        "is_transfer": each.is_transfer,
        "took_effect": each.is_success,
        "height": each.block_height,
        "chain_fee": format_coin(
            each.chain_fee_units, ctx.catalogue.scale(ctx.catalogue.networks[each.network].gas_currency)
        ),
        "settled_by": each.settled_by,
        "reason": each.reason,
    }


def _payouts_of(ctx: Context, each: UnexplainedRow) -> list[UUID | None]:
    """Return the payout of each output: the recorded one, or the one that it would get by an adoption."""
    spend = None if each.spend_id is None else spends.find(each.spend_id)
    if spend is not None and len(spend.outputs) == len(each.parts):
        return [output.payout_id for output in spend.outputs]
    if not each.is_open:
        return [None] * len(each.parts)
    return [None if payout is None else payout.id for payout in adoption.asked_by(ctx.catalogue, each)]
