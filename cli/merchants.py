"""`sluice merchant` and `sluice key`: manage merchants and their keys. Run by operators; a secret is shown once."""

from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import typer

from cli.output import JsonFlag, confirm, show
from cli.session import database
from cli.shell.operators import ByOption, WhyOption, operator
from cli.shell.reasons import OPERATOR, check_reason
from core.http.requests import Email, WebUrl
from core.merchants.accents import ACCENTS
from core.merchants.logos import BYTES_MAX, LogoError, clean_png
from core.money import CENT_DIGITS, PPM, PPM_DIGITS, format_coin, parse_units
from core.secrets.secretbox import SecretBox
from models.db.base import transaction
from models.ledger import acts
from models.merchants import allowlists, logos, notices, term_changes
from models.merchants import rows as merchants
from models.merchants.rows import LIST_MAX, ApiKeyRow, KeyKind, Merchant
from models.outcomes import disowned
from models.payouts import freezes

FEE_FIXED_MAX_CENTS: Final = 1_000_000
# This value ends a merchant's own fee.
DEFAULT: Final = "default"
# This value ends security notices.
NONE: Final = "none"

merchant_app = typer.Typer(no_args_is_help=True, help="Merchants and their owners.")
key_app = typer.Typer(no_args_is_help=True, help="API keys of merchants.")


@merchant_app.command("create")
def create_merchant(
    name: str,
    owner: Annotated[
        str | None, typer.Option(help="Name or id of the owner, whose personal wallet the merchant shares.")
    ] = None,
    *,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a merchant, for a new owner unless one is named."""
    with database():
        merchant = merchants.create_merchant(name, _owner(owner), by=operator(by))
    show(_document(merchant), _lines(merchant), as_json=as_json)


@merchant_app.command("list")
def list_merchants(
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX)] = LIST_MAX, *, as_json: JsonFlag = False
) -> None:
    """List merchants, newest first."""
    with database():
        rows = merchants.list_merchants(limit)
    lines = [f"{merchant.id}  {merchant.name}  (owner {merchant.owner_name})" for merchant in rows]
    show({"items": [_document(merchant) for merchant in rows]}, lines, as_json=as_json)


@merchant_app.command("show")
def show_merchant(merchant_id: UUID, *, as_json: JsonFlag = False) -> None:
    """Show a merchant, its terms and its keys. No secret is shown."""
    with database():
        merchant, keys = merchants.read_merchant(merchant_id), merchants.list_keys(merchant_id)
    more = {
        "display_name": merchant.display_name,
        "contact": merchant.contact,
        "accent": merchant.accent,
        "is_cosign_required": merchant.is_cosign_required,
        "ip_allowlist": merchant.ip_allowlist,
    }
    document = {**_document(merchant), **more, "keys": [_key_document(key) for key in keys]}
    fields = {name: value for name, value in more.items() if value not in ("", [])}
    lines = [*_lines(merchant), *(f"{name.replace('_', ' ')}: {value}" for name, value in fields.items())]
    show(document, [*lines, *map(_key_line, keys)], as_json=as_json)


@merchant_app.command("disable")
def disable_merchant(
    merchant_id: UUID,
    reason: Annotated[str, typer.Option(help="Why; kept with the freeze of its payouts.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Freeze a merchant's payouts and revoke all its keys for ever. Buyers can still pay its open payments and links.

    `sluice payouts unfreeze --merchant` and a new key let it work again. A second run changes nothing.
    """
    check_reason(reason)
    who = operator(by)
    with database() as settings:
        merchants.check_exists(merchant_id)
        if not yes:
            confirm(f"Freeze all payouts and revoke all keys of {merchant_id}?")
        # First, so that no payout is signed while the keys end.
        with transaction():
            is_new = freezes.freeze("merchant", str(merchant_id), reason=reason, frozen_by=OPERATOR)
            acts.record("payouts.frozen", f"payouts of merchant {merchant_id}", by=who, reason=reason)
        active = [key.public_id for key in merchants.active_keys(merchant_id)]
        for public_id in active:
            disowned.revoke(settings.catalogue, public_id, by=who, reason=reason)
    lines = ["payouts: frozen" + ("" if is_new else " before"), f"keys revoked: {', '.join(active) or 'none'}"]
    show({"merchant_id": str(merchant_id), "frozen": True, "revoked": active}, lines, as_json=as_json)


@merchant_app.command("set")
def set_merchant(
    merchant_id: UUID,
    *,
    cosign: Annotated[
        bool | None, typer.Option("--cosign/--no-cosign", help="Whether payouts need a second principal's approval.")
    ] = None,
    fee_percent: Annotated[
        str | None, typer.Option(help="The platform fee, in percent of what is credited; default: FEE_PERCENT.")
    ] = None,
    fee_fixed_usd: Annotated[
        str | None, typer.Option(help="Its fixed part, in US dollars for a payment; default: FEE_FIXED_USD.")
    ] = None,
    owner_email: Annotated[
        str | None, typer.Option(help=f"Where security notices to its owner go, for all the owner's merchants; {NONE}.")
    ] = None,
    display_name: Annotated[
        str | None, typer.Option(help=f"The name that buyers read in place of the merchant's; {NONE} ends it.")
    ] = None,
    contact: Annotated[
        str | None,
        typer.Option(help=f"Where buyers reach the shop: an e-mail address or an https address; {NONE} ends it."),
    ] = None,
    accent: Annotated[
        str | None, typer.Option(help=f"The colour of its pages: {', '.join(ACCENTS)}; {NONE} ends it.")
    ] = None,
    logo: Annotated[
        str | None,
        typer.Option(help=f"The file of its logo: PNG, at most 32 kB and 512 pixels a side; {NONE} ends it."),
    ] = None,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a merchant's terms. Payouts that wait already, and existing payments and wallets, keep theirs."""
    ppm = _own_fee(fee_percent, digits=PPM_DIGITS, highest=PPM)
    cents = _own_fee(fee_fixed_usd, digits=CENT_DIGITS, highest=FEE_FIXED_MAX_CENTS)
    lines = []
    address = _address(owner_email)
    reached_at = _contact(contact)
    picture = _picture(logo)
    options = {
        "cosign": cosign, "fee_percent": fee_percent, "fee_fixed_usd": fee_fixed_usd, "owner_email": owner_email,
        "display_name": display_name, "contact": contact, "accent": accent, "logo": logo,
    }  # fmt: skip
    changed = {name: value for name, value in options.items() if value is not None}
    if not changed:
        raise typer.BadParameter("say what to set")
    with database(), transaction():
        if cosign is not None:
            is_changed = merchants.set_cosign(merchant_id, is_required=cosign)
            lines.append("payouts need a second approval" if cosign else "payouts made with a key are sent at once")
            if is_changed:
                change = f"Co-signing is {'required' if cosign else 'not required'}."
                notices.write(merchant_id, change, topic="cosign", by="operator")
        if fee_percent is not None:
            term_changes.set_fee_percent(merchant_id, ppm)
            lines.append(f"fee: {fee_percent} percent")
        if fee_fixed_usd is not None:
            term_changes.set_fee_fixed(merchant_id, cents)
            lines.append(f"fixed fee: {fee_fixed_usd} USD")
        if owner_email is not None:
            notices.set_address(merchant_id, address)
            lines.append(f"security notices: {owner_email}")
        face = {"name": display_name, "contact": contact, "colour": accent, "logo": logo}
        if display_name is not None or contact is not None or accent is not None:
            shown, colour = ("" if text == NONE else text for text in (display_name, accent))
            merchants.set_face(merchant_id, display_name=shown, contact=reached_at, accent=colour)
        if logo is not None:
            logos.set_logo(merchant_id, picture)
        lines += [f"{name} for buyers: {text}" for name, text in face.items() if text]
        acts.record("merchant.changed", str(merchant_id), by=operator(by), details=_terms(changed), reason=reason)
    show({"merchant_id": str(merchant_id), **changed}, lines, as_json=as_json)


def _terms(changed: dict[str, Any]) -> str:
    """Return what of a merchant changed; of free texts, e-mail addresses and files their names alone."""
    shown = {"cosign", "fee_percent", "fee_fixed_usd", "accent"}
    return ", ".join(f"{name}={value}" if name in shown else name for name, value in changed.items())


@merchant_app.command("unlock")
def unlock_merchant(
    merchant_id: UUID, *, reason: WhyOption = "", by: ByOption = None, as_json: JsonFlag = False
) -> None:
    """End a merchant's IP allowlist, if it has locked itself out; its keys may then sign from anywhere."""
    with database(), transaction():
        ended = allowlists.end(merchant_id)
        if ended:
            acts.record("merchant.unlocked", str(merchant_id), by=operator(by), reason=reason)
            notices.write(merchant_id, "API keys may sign from anywhere.", topic="allowlist", by="operator")
    line = f"allowed so far: {', '.join(ended)}" if ended else "there was no list"
    show({"merchant_id": str(merchant_id), "ended": ended}, [line], as_json=as_json)


@key_app.command("create")
def create_key(
    merchant_id: UUID,
    kind: Annotated[KeyKind, typer.Option(help="Which endpoints the key reaches.")] = "unified",
    label: Annotated[str, typer.Option(help="A note for yourself.")] = "",
    *,
    reason: WhyOption = "",
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Create an API key. Its secret is shown now and never again."""
    with database() as settings, transaction():
        key = merchants.create_key(merchant_id, kind, label, SecretBox(settings.secret_keys))
        details = f"{kind}, of merchant {merchant_id}"
        acts.record("key.created", key.public_id, by=operator(by), details=details, reason=reason)
        notices.write(merchant_id, f"A new API key of kind {kind}: {key.public_id}", topic="keys", by="operator")
    document = {"merchant_id": str(merchant_id), "public_id": key.public_id, "secret": key.secret, "kind": kind}
    lines = [f"public id  {key.public_id}", f"secret     {key.secret}   (not shown again)"]
    show(document, lines, as_json=as_json)


@key_app.command("list")
def list_keys(
    merchant_id: Annotated[UUID | None, typer.Argument(help="The keys of this merchant; of all if none.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX)] = LIST_MAX,
    *,
    as_json: JsonFlag = False,
) -> None:
    """List API keys, newest first, with their merchants, revoked ones too. No secret is shown."""
    with database():
        keys = merchants.list_keys(merchant_id, limit=limit)
    show({"items": [_key_document(key) for key in keys]}, [_key_line(key) for key in keys], as_json=as_json)


def _key_document(key: ApiKeyRow) -> dict[str, Any]:
    return {
        "public_id": key.public_id,
        "merchant_id": str(key.merchant_id),
        "kind": key.kind,
        "label": key.label,
        "created_at": key.created_at.isoformat(),
        "revoked_at": None if key.revoked_at is None else key.revoked_at.isoformat(),
        "sealed_by": key.secret_box.partition(":")[0],
    }


def _key_line(key: ApiKeyRow) -> str:
    state = "in force" if key.revoked_at is None else f"revoked {key.revoked_at.isoformat()}"
    sealed_by = key.secret_box.partition(":")[0]
    line = f"{key.public_id}  {key.kind}  of {key.merchant_id}, since {key.created_at.isoformat()}, {state}"
    return f"{line}, sealed by {sealed_by}" + (f"  ({key.label})" if key.label else "")


@key_app.command("show")
def show_key(public_id: str, *, as_json: JsonFlag = False) -> None:
    """Show an API key, in force or revoked. Its secret is not shown."""
    with database():
        key = merchants.read_key(public_id)
    show(_key_document(key), [_key_line(key)], as_json=as_json)


@key_app.command("revoke")
def revoke_key(public_id: str, *, reason: WhyOption = "", by: ByOption = None, as_json: JsonFlag = False) -> None:
    """Revoke an API key for ever; its rules, co-signatures, cheques and unsigned payouts end with it."""
    with database() as settings:
        was_active, stopped, cheques, kept_cheques, given_back = disowned.revoke(
            settings.catalogue, public_id, by=operator(by), reason=reason
        )
    lines = [f"{public_id} is revoked" if was_active else f"{public_id} was revoked before"]
    if stopped:
        lines.append(f"not sent by itself until its address is named again: {', '.join(stopped)}")
    if given_back:
        lines.append(f"unsigned payouts that are given back: {given_back}")
    if cheques:
        lines.append(f"cheques that are cancelled: {cheques}")
    if kept_cheques:
        lines.append(f"cheques that stay while their network is recovered, then revoke the key again: {kept_cheques}")
    document = {"public_id": public_id, "revoked": True, "changed": was_active, "stopped_withdrawals": stopped,
            "cancelled_payouts": given_back, "cancelled_cheques": cheques, "kept_cheques": kept_cheques}  # fmt: skip
    show(document, lines, as_json=as_json)


def _address(text: str | None) -> str | None:
    """Parse an owner's e-mail address; return None for NONE."""
    if text is None or text == NONE:
        return None
    try:
        return msgspec.convert(text, Email) or None
    except msgspec.ValidationError:
        raise typer.BadParameter("this is no e-mail address") from None


def _contact(text: str | None) -> str | None:
    """Parse a shop's contact; return '' for NONE, None without a value."""
    if text is None or text == NONE:
        return None if text is None else ""
    is_web = text.startswith("https://")
    try:
        return msgspec.convert(text, WebUrl if is_web else Email) or None
    except msgspec.ValidationError:
        raise typer.BadParameter("this is neither an e-mail address nor an https address") from None


def _picture(path: str | None) -> bytes | None:
    """Read the file of a logo, which has to be a picture that browsers may show; None for NONE, or without a value."""
    if path is None or path == NONE:
        return None
    try:
        with Path(path).open("rb") as file:
            return clean_png(file.read(BYTES_MAX + 1))
    except OSError as error:
        raise typer.BadParameter(f"the logo cannot be read: {error.strerror}") from None
    except LogoError as error:
        raise typer.BadParameter(str(error)) from None


def _own_fee(text: str | None, *, digits: int, highest: int) -> int | None:
    """Parse a merchant's own fee in whole units; return None for DEFAULT, or without a value."""
    if text in {None, DEFAULT}:
        return None
    units = parse_units(text, digits=digits, error=typer.BadParameter, name="the fee")
    if units > highest:
        raise typer.BadParameter(f"the fee is at most {format_coin(highest, digits)}")
    return units


def _owner(text: str | None) -> str | UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return text


def _document(merchant: Merchant) -> dict[str, Any]:
    return {
        "merchant_id": str(merchant.id),
        "name": merchant.name,
        "owner_id": str(merchant.owner_id),
        "owner": merchant.owner_name,
        "created_at": merchant.created_at.isoformat(),
        "fee_percent": _shown(merchant.own_fee_ppm, PPM_DIGITS),
        "fee_fixed_usd": _shown(merchant.own_fee_fixed_usd_cents, CENT_DIGITS),
    }


def _shown(own_fee: int | None, digits: int) -> str:
    return DEFAULT if own_fee is None else format_coin(own_fee, digits)


def _lines(merchant: Merchant) -> list[str]:
    return [f"merchant  {merchant.id}  {merchant.name}", f"owner     {merchant.owner_id}  {merchant.owner_name}"]
