"""`sluice payouts`: stops money from leaving, lets it leave again, and gives back what cannot leave. For operators.

A freeze is a row that the signer reads in the very transaction in which it commits a signed payout: what it has not
judged when the command returns is not signed while the freeze stands.
"""

from typing import Annotated, Any, Final
from uuid import UUID

import structlog
import typer

from cli.output import CommandError, JsonFlag, show
from cli.session import database
from core.catalogue import load_catalogue
from core.errors import PayoutNotPending
from core.settings import Settings
from models import freezes, merchants, payout_decisions, payout_queue
from models.base import transaction
from models.freezes import Freeze, Scope

log = structlog.get_logger()
app = typer.Typer(no_args_is_help=True, help="Freezing payouts, who is frozen, and cancelling one.")

OPERATOR: Final = "operator"
REASON_CHARS_MAX: Final = 255

AllFlag = Annotated[bool, typer.Option("--all", help="Every payout of the gateway.")]
NetworkOption = Annotated[str | None, typer.Option("--network", help="The payouts of a network, by its code.")]
MerchantOption = Annotated[UUID | None, typer.Option("--merchant", help="The payouts of a merchant, by its id.")]
ConversionFlag = Annotated[bool, typer.Option("--conversion", help="Payouts paid for in another coin; others go on.")]


@app.command("freeze")
def freeze(
    reason: Annotated[str, typer.Option(help="Why; shown by `sluice payouts frozen`.")],
    *,
    everything: AllFlag = False,
    network: NetworkOption = None,
    merchant: MerchantOption = None,
    conversion: ConversionFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Stop payouts from now on: all, a network's, a merchant's, or conversions. Nothing that is held is lost."""
    scope, name = _target(everything=everything, network=network, merchant=merchant, conversion=conversion)
    _check_reason(reason)
    with database() as settings:
        _check_name(settings, scope, name)
        is_new = freezes.freeze(scope, name, reason=reason, frozen_by=OPERATOR)
    line = f"{_words(scope, name)}: frozen" + ("" if is_new else " before; the reason is the new one now")
    show({"scope": scope, "name": name, "frozen": True, "changed": is_new}, [line], as_json=as_json)


@app.command("unfreeze")
def unfreeze(
    *,
    everything: AllFlag = False,
    network: NetworkOption = None,
    merchant: MerchantOption = None,
    conversion: ConversionFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Lift every freeze of exactly that name, the reconciler's too; what waited meanwhile is sent."""
    scope, name = _target(everything=everything, network=network, merchant=merchant, conversion=conversion)
    with database():
        lifted = freezes.unfreeze(scope, name)
        left = freezes.listing()
    lines = [f"{_words(scope, name)}: " + ("lifted" if lifted else "was not frozen")]
    # Whoever lifts one wants to know why nothing moves.
    lines += [f"still frozen: {_line(each)}" for each in left]
    document = {"scope": scope, "name": name, "frozen": False, "changed": lifted > 0}
    show(document | {"still_frozen": [_document(each) for each in left]}, lines, as_json=as_json)


@app.command("frozen")
def frozen(*, as_json: JsonFlag = False) -> None:
    """List what is frozen, by whom and why, oldest first."""
    with database():
        found = freezes.listing()
    lines = [_line(each) for each in found] or ["nothing is frozen"]
    show({"items": [_document(each) for each in found]}, lines, as_json=as_json)


@app.command("cancel")
def cancel(
    payout_id: Annotated[UUID, typer.Argument(metavar="ID", help="The payout's uuid.")], *, as_json: JsonFlag = False
) -> None:
    """Cancel a payout for which nothing is signed, whoever's it is; what it held is its merchant's again."""
    with database() as settings:
        found = payout_queue.read(payout_id)
        if found is None:
            raise CommandError(f"there is no payout {payout_id}")
        try:
            with transaction():
                payout_decisions.cancel(load_catalogue(settings.environment), found, by=OPERATOR)
        except PayoutNotPending:
            raise CommandError(f"{_status(payout_id)}: only what nothing is signed for is cancelled") from None
    log.warning("payout.cancelled_by_operator", payout=str(payout_id), merchant=str(found.merchant_id))
    document = {"payout": str(payout_id), "merchant": str(found.merchant_id), "status": "cancelled"}
    show(document, [f"payout {payout_id} of merchant {found.merchant_id}: cancelled"], as_json=as_json)


def _status(payout_id: UUID) -> str:
    now = payout_queue.read(payout_id)
    return f"payout {payout_id} is {'gone' if now is None else now.status}"


def _target(*, everything: bool, network: str | None, merchant: UUID | None, conversion: bool) -> tuple[Scope, str]:
    """Return the one scope that was named, and its name. Raises CommandError."""
    named: dict[Scope, str | None] = {
        "all": "" if everything else None,
        "network": network,
        "merchant": None if merchant is None else str(merchant),
        "conversion": "" if conversion else None,
    }
    chosen = [(scope, name) for scope, name in named.items() if name is not None]
    if len(chosen) != 1:
        raise CommandError("name exactly one of --all, --network, --merchant and --conversion")
    return chosen[0]


def _check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > REASON_CHARS_MAX or not reason.isprintable():
        raise CommandError(f"a reason is 1 to {REASON_CHARS_MAX} printable characters")


def _check_name(settings: Settings, scope: Scope, name: str) -> None:
    """Refuse a name that would freeze nothing: a slip must not look like a stop. Raises CommandError, IdentityError."""
    if scope == "network" and name not in load_catalogue(settings.environment).networks:
        raise CommandError(f"the catalogue has no network {name!r}")
    if scope == "merchant":
        merchants.check_exists(UUID(name))


def _words(scope: Scope, name: str) -> str:
    return {
        "all": "all payouts",
        "network": f"payouts on {name}",
        "merchant": f"payouts of merchant {name}",
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
