"""`sluice payouts`: stops payouts, lets them continue, and ends payouts that need an operator's decision.

Run by operators, mostly in an emergency. A freeze is a row. The signer reads it in the transaction that stores a signed
payout, so once the command returns, no further payout is signed until the freeze is lifted.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
import typer

from actors import context
from actors.context import Context
from actors.recovery import resume
from chains.net.budget import budget
from cli.output import CommandError, JsonFlag, confirm, show
from cli.session import committed, database, failures_named
from cli.shell.operators import ByOption, WhyOption, operator
from cli.shell.reasons import OPERATOR, check_reason
from core.catalogue.catalogue import Catalogue, Network
from core.errors import PayoutFrozen, PayoutNotPending
from core.money import format_coin
from core.payouts.states import UNSIGNED_PAYOUTS
from core.settings.settings import Settings
from models.db.base import transaction
from models.ledger import acts
from models.merchants import rows as merchants
from models.outcomes import decisions, manual
from models.outcomes.manual import SettleError, Unclear
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts.freezes import Freeze, Scope
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.spends import matching
from models.spends.rows import SpendRow
from models.treasury import reconciliation

log = structlog.get_logger()
app = typer.Typer(
    no_args_is_help=True, help="Freezing payouts, who is frozen, cancelling one, and what an operator has to end."
)


AllFlag = Annotated[bool, typer.Option("--all", help="Every payout of the gateway.")]
NetworkOption = Annotated[str | None, typer.Option("--network", help="The payouts of a network, by its code.")]
MerchantOption = Annotated[UUID | None, typer.Option("--merchant", help="The payouts of a merchant, by its id.")]
CoinOption = Annotated[
    str | None, typer.Option("--coin", help="The payouts of one coin on one network, as USDT:ethereum.")
]
ConversionFlag = Annotated[bool, typer.Option("--conversion", help="Payouts paid for in another coin; others go on.")]


@app.command("freeze")
def freeze(
    reason: Annotated[str, typer.Option(help="Why; shown by `sluice payouts frozen`.")],
    *,
    everything: AllFlag = False,
    network: NetworkOption = None,
    merchant: MerchantOption = None,
    coin: CoinOption = None,
    conversion: ConversionFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Stop payouts from now on: all, or those of a network, a merchant or a coin, or conversions. No hold is lost."""
    scope, name = _target(everything=everything, network=network, merchant=merchant, coin=coin, conversion=conversion)
    check_reason(reason)
    who = operator(by)
    with database() as settings:
        _check_name(settings, scope, name)
        with transaction():
            is_new = freezes.freeze(scope, name, reason=reason, frozen_by=OPERATOR)
            acts.record("payouts.frozen", _words(scope, name), by=who, reason=reason)
    line = f"{_words(scope, name)}: frozen" + ("" if is_new else " before; the reason is the new one now")
    show({"scope": scope, "name": name, "frozen": True, "changed": is_new}, [line], as_json=as_json)


@app.command("unfreeze")
def unfreeze(
    *,
    everything: AllFlag = False,
    network: NetworkOption = None,
    merchant: MerchantOption = None,
    coin: CoinOption = None,
    conversion: ConversionFlag = False,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Lift every freeze of exactly this name, the reconciler's too; the signer then sends the payouts that waited."""
    scope, name = _target(everything=everything, network=network, merchant=merchant, coin=coin, conversion=conversion)
    who = operator(by)
    with database():
        with transaction():
            lifted = freezes.unfreeze(scope, name)
            if lifted:
                acts.record("payouts.unfrozen", _words(scope, name), by=who, reason=reason)
            if scope == "network":
                reconciliation.forget_misses(name)
        left = freezes.listing()
    lines = [f"{_words(scope, name)}: " + ("lifted" if lifted else "was not frozen")]
    # The freezes that still apply explain why payouts do not move.
    lines += [f"still frozen: {_line(each)}" for each in left]
    document = {"scope": scope, "name": name, "frozen": False, "changed": lifted > 0}
    show(document | {"still_frozen": [_document(each) for each in left]}, lines, as_json=as_json)


@app.command("frozen")
def frozen(*, as_json: JsonFlag = False) -> None:
    """List the freezes with their author and reason, oldest first."""
    with database():
        rows = freezes.listing()
    lines = [_line(each) for each in rows] or ["nothing is frozen"]
    show({"items": [_document(each) for each in rows]}, lines, as_json=as_json)


@app.command("cancel")
def cancel(
    payout_id: Annotated[UUID, typer.Argument(metavar="ID", help="The payout's uuid.")],
    *,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Cancel a merchant's payout for which nothing is signed; the held amount returns to the merchant's balance.

    While the signer does not sign for the network, only if no transaction that left there can have paid it.
    """
    who = operator(by)
    with database() as settings:
        payout = payout_queue.read(payout_id)
        if payout is None:
            raise CommandError(f"there is no payout {payout_id}")
        catalogue = settings.catalogue
        try:
            committed(_cancel, catalogue, payout, who, reason)
        except PayoutNotPending:
            raise CommandError(f"{_status(payout_id)}: only what nothing is signed for is cancelled") from None
        except PayoutFrozen:
            _cancel_stopped(context.configure(settings), payout, who, reason)
    log.warning("payout.cancelled_by_operator", payout=str(payout_id), merchant=str(payout.merchant_id))
    document = {"payout": str(payout_id), "merchant": str(payout.merchant_id), "status": "cancelled"}
    show(document, [f"payout {payout_id} of merchant {payout.merchant_id}: cancelled"], as_json=as_json)


@app.command("release")
def release(
    payout_id: Annotated[UUID, typer.Argument(metavar="ID", help="The payout's uuid.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a payout that waits because it may repeat an order whose transaction was written off.

    Only if it is another order: otherwise its recipient is paid twice. `sluice treasury recover NETWORK --adopt TXID`
    books the transaction as this order instead.
    """
    who = operator(by)
    with database() as settings:
        catalogue = settings.catalogue
        payout = payout_queue.read(payout_id)
        txids = [] if payout is None else matching.written_off(catalogue, payout)
        if payout is None or payout.status not in UNSIGNED_PAYOUTS or not txids:
            raise CommandError(f"{_status(payout_id)}, and no transaction that was written off may have paid it")
        if not yes:
            order = f"order {payout.order_id!r} of {payout.merchant_id}"
            question = f"{', '.join(txids)} may have paid {order}. Is it another order, to be paid?"
            confirm(question)
        txids = writeoffs.release(catalogue, payout_id, by=who, reason=reason)
    log.warning("payout.released", payout=str(payout_id), merchant=str(payout.merchant_id), txids=txids)
    document = {"payout": str(payout_id), "merchant": str(payout.merchant_id), "txids": txids}
    show(document, [f"payout {payout_id} of merchant {payout.merchant_id}: released"], as_json=as_json)


def _cancel(catalogue: Catalogue, payout: PayoutRow, who: str, reason: str) -> None:
    decisions.cancel(catalogue, payout, by=OPERATOR)
    acts.record("payout.cancelled", str(payout.id), by=who, reason=reason)


def _cancel_stopped(ctx: Context, payout: PayoutRow, who: str, reason: str) -> None:
    """Cancel a payout on a network without signing. Raises CommandError if some transaction may have paid it."""
    # Check first: the scan must have read all transactions that were in a block by then.
    if payout.network in ctx.available and _is_awaited(ctx, ctx.catalogue.networks[payout.network]):
        raise CommandError("a transaction that no row knows waits for a block and may pay this; try again later")
    kept = committed(_cancel_unsigned_for, ctx.catalogue, payout, who, reason)
    if kept:
        raise CommandError(kept)


def _cancel_unsigned_for(catalogue: Catalogue, payout: PayoutRow, who: str, reason: str) -> str:
    kept = decisions.cancel_stopped(catalogue, payout, by=OPERATOR)
    if not kept:
        acts.record("payout.cancelled", str(payout.id), by=who, reason=reason)
    return kept


def _is_awaited(ctx: Context, network: Network) -> bool:
    settings = ctx.settings
    with failures_named(network.code), budget(seconds=settings.rpc_step_s, requests=settings.rpc_step_requests):
        return resume.is_awaited(ctx, network)


def _status(payout_id: UUID) -> str:
    now = payout_queue.read(payout_id)
    return f"payout {payout_id} is {'gone' if now is None else now.status}"


class Outcome(StrEnum):
    """The two ends of a payout that moved another amount than was asked."""

    PAID = "paid"
    FAILED = "failed"


@app.command("unsettled")
def unsettled(*, as_json: JsonFlag = False) -> None:
    """List the payouts that moved another amount than was asked: each waits for `settle`."""
    with database() as settings:
        catalogue = settings.catalogue
        waiting = manual.listing(catalogue)
    lines = [_unclear_line(catalogue, each) for each in waiting] or ["no payout waits to be settled"]
    show({"items": [_unclear_document(catalogue, each) for each in waiting]}, lines, as_json=as_json)


@app.command("settle")
def settle(
    payout: Annotated[UUID, typer.Argument(help="The payout's uuid.")],
    outcome: Annotated[Outcome, typer.Option("--as", help="paid: it leaves the books. failed: all of it goes back.")],
    reason: Annotated[str, typer.Option(help="Why; kept with the settlement.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """End a payout that moved another amount than was asked. The gateway bears the missing amount.

    First find out, on the chain and from the recipient, where the money is. Lifts no freeze.
    """
    if reason:
        check_reason(reason)
    who = operator(by)
    with database() as settings:
        catalogue = settings.catalogue
        waiting = manual.listing(catalogue, payout)
        if not waiting:
            raise CommandError("no such payout waits to be settled; see sluice payouts unsettled")
        if not yes:
            confirm(f"{_unclear_line(catalogue, waiting[0])}. Settle it as {outcome}?")
        word: Literal["paid", "failed"] = "paid" if outcome is Outcome.PAID else "failed"
        try:
            after = committed(_settle, catalogue, waiting[0], word, who, reason)
        except SettleError as error:
            raise CommandError(str(error)) from None
    lost = _amount(catalogue, after.currency, int(after.lost_units))
    document = _unclear_document(catalogue, waiting[0]) | {"outcome": word, "lost": lost, "reason": reason}
    show(document, [f"{payout}: {word}; the gateway bears {lost} {after.currency}"], as_json=as_json)


def _settle(catalogue: Catalogue, unclear: Unclear, word: Literal["paid", "failed"], who: str, reason: str) -> SpendRow:
    after = manual.settle(catalogue, unclear, word, settled_by=OPERATOR, reason=reason)
    acts.record("payout.settled", str(unclear.payout_id), by=who, details=word, reason=reason)
    return after


def _unclear_line(catalogue: Catalogue, each: Unclear) -> str:
    shown = _unclear_document(catalogue, each)
    return (
        f"{each.payout_id} on {each.network}: of {shown['asked']} {each.currency} to {each.address}"
        f" {shown['left']} left and {shown['arrived']} arrived by {each.txid}; {shown['held']} held"
    )


def _unclear_document(catalogue: Catalogue, each: Unclear) -> dict[str, Any]:
    amounts = {
        "asked": each.asked_units,
        "left": each.left_units,
        "arrived": each.arrived_units,
        "held": each.held_units,
    }
    return {
        "payout": str(each.payout_id),
        "merchant": str(each.merchant_id),
        "currency": each.currency,
        "network": each.network,
        "address": each.address,
        "txid": each.txid,
        **{name: _amount(catalogue, each.currency, units) for name, units in amounts.items()},
    }


def _amount(catalogue: Catalogue, currency: str, units: int) -> str:
    scale = catalogue.scale(currency)
    return f"-{format_coin(-units, scale)}" if units < 0 else format_coin(units, scale)


def _target(
    *, everything: bool, network: str | None, merchant: UUID | None, coin: str | None, conversion: bool
) -> tuple[Scope, str]:
    """Return the one scope that the options name, and the name in it. Raises CommandError."""
    named: dict[Scope, str | None] = {
        "all": "" if everything else None,
        "network": network,
        "merchant": None if merchant is None else str(merchant),
        "coin": coin,
        "conversion": "" if conversion else None,
    }
    chosen = [(scope, name) for scope, name in named.items() if name is not None]
    if len(chosen) != 1:
        raise CommandError("name exactly one of --all, --network, --merchant, --coin and --conversion")
    return chosen[0]


def _check_name(settings: Settings, scope: Scope, name: str) -> None:
    """Refuse a name that would freeze nothing: a typing error must not look like a stop.

    Raises CommandError, IdentityError.
    """
    catalogue = settings.catalogue
    if scope == "network" and name not in catalogue.networks:
        raise CommandError(f"the catalogue has no network {name!r}")
    if scope == "coin" and name not in {freezes.coin(*pair) for pair in catalogue.pairs}:
        raise CommandError(f"the catalogue has no coin on a network called {name!r}; write it as USDT:ethereum")
    if scope == "merchant":
        merchants.check_exists(UUID(name))


def _words(scope: Scope, name: str) -> str:
    return {
        "all": "all payouts",
        "network": f"payouts on {name}",
        "merchant": f"payouts of merchant {name}",
        "coin": f"payouts of {name}",
        "conversion": "conversions",
    }[scope]


def _line(each: Freeze) -> str:
    return f"{_words(each.scope, each.name)}, since {each.frozen_at.isoformat()} by {each.frozen_by}: {each.reason}"


def _document(each: Freeze) -> dict[str, Any]:
    return {
        "scope": each.scope,
        "name": each.name,
        "reason": each.reason,
        "frozen_by": each.frozen_by,
        "frozen_at": each.frozen_at.isoformat(),
    }
