"""Keeps owners, their merchants and the merchants' API keys. Called by cli, and by api to find the key of a request."""

import base64
import re
import secrets
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

import structlog

from core.ids import uuid7
from core.merchants.accents import ACCENTS
from core.secrets.secretbox import SecretBox
from models.db.after_commit import then
from models.db.base import execute, one, touched, transaction, value
from models.db.query import descending
from models.db.table import BY_DATABASE, Table, derived
from models.ledger import acts

KeyKind = Literal["unified", "payment", "payout"]

NAME_CHARS_MAX: Final = 255
DISPLAY_NAME_CHARS_MAX: Final = 64
log = structlog.get_logger()

LIST_MAX: Final = 1000

_SHOWN_NAME: Final = "COALESCE(NULLIF(m.display_name, ''), m.name)"
_FACE: Final = (
    f"SELECT {_SHOWN_NAME}, m.contact, m.accent, COALESCE(l.digest, ''), app_now()"
    " FROM merchants m LEFT JOIN merchant_logos l ON l.merchant_id = m.id WHERE m.id = %s"
)
_PUBLIC_ID_BYTES: Final = 15
_SECRET_BYTES: Final = 32
# What no key can be called never reaches PostgreSQL, which refuses NUL and would be asked for nothing.
_PUBLIC_ID: Final = re.compile(r"pk_[a-z2-7]{24}")


class IdentityError(ValueError):
    """A merchant, owner or key is not there, or cannot be called so."""


class UnknownMerchantError(IdentityError):
    """There is no merchant of this id."""


class UnknownOwnerError(IdentityError):
    """There is no owner of this id."""


class UnknownKeyError(IdentityError):
    """There is no API key of this public id."""


class AmbiguousOwnerError(IdentityError):
    """Several owners share the name: money must not go to whichever comes first."""


class Merchant(Table, table="merchants m", joins="JOIN owners o ON o.id = m.owner_id"):
    """A shop. Its owner holds the personal wallet, which all of the owner's shops share."""

    id: UUID
    owner_id: UUID
    name: str
    terms_version: int
    accuracy_ppm: int | None
    created_at: datetime
    ip_allowlist: list[str]
    accuracy_enabled: bool
    is_cosign_required: bool
    is_payout_fee_on_top: bool
    is_split_enabled: bool
    split_hold_hours: int
    # None: as the settings say.
    own_fee_ppm: int | None
    own_fee_fixed_usd_cents: int | None
    # Shown to buyers; "" for the name above, and for no contact.
    display_name: str
    contact: str
    # The colour of its pages; "" for the gateway's own.
    accent: str
    owner_name: str = derived("o.name")


class ApiKeyRow(Table, table="api_keys k", joins="JOIN merchants m ON m.id = k.merchant_id"):
    """A key. The secret is sealed, and opens with `open_secret`."""

    id: UUID
    public_id: str
    merchant_id: UUID
    kind: KeyKind
    label: str = ""
    secret_box: str
    created_at: datetime = BY_DATABASE
    revoked_at: datetime | None = None
    # The source addresses that the merchant allows, as core.http.allowlist writes them; an empty list allows all.
    ip_allowlist: list[str] = derived("m.ip_allowlist")


class AcceptedMethod(Table, table="accepted_methods"):
    """A coin on a network that a merchant takes."""

    merchant_id: UUID
    currency: str
    network: str


class Discount(Table, table="discounts"):
    """A merchant's discount, or surcharge (negative), for a coin on a network."""

    merchant_id: UUID
    currency: str
    network: str
    discount_ppm: int


class Owner(Table, table="owners"):
    """Who owns merchants, and the personal wallet that they share."""

    id: UUID
    name: str
    created_at: datetime = BY_DATABASE


class OwnerEmail(Table, table="owner_emails"):
    """Where security notices about an owner's merchants go."""

    owner_id: UUID
    email: str


class Face(NamedTuple):
    """A merchant as buyers see it; '' for what it has not.

    contact: an e-mail address or a web address. accent: the colour of its pages. logo: the digest of its picture.
    """

    name: str
    contact: str
    accent: str
    logo: str

    @property
    def contact_link(self) -> str:
        """Return the link that reaches the shop; '' for none."""
        return f"mailto:{self.contact}" if "@" in self.contact and "://" not in self.contact else self.contact


class IssuedKey(NamedTuple):
    """A new key's two halves; the secret exists in clear only here."""

    public_id: str
    secret: str


def create_merchant(name: str, owner: str | UUID | None = None, *, by: str = "") -> Merchant:
    """Create a merchant for the owner of that id or name; a name without owner, and no name at all, make a new one.

    by: the operator, whose act is recorded. Raises IdentityError: an unusable name, an unknown owner, several owners of
    that name.
    """
    merchant_id = uuid7()
    _check_name(name)
    with transaction():
        owner_id = _new_owner(name) if owner is None else _owner(owner)
        execute("INSERT INTO merchants (id, owner_id, name) VALUES (%s, %s, %s)", (merchant_id, owner_id, name))
        acts.record("merchant.created", str(merchant_id), by=by)
        return Merchant.read("m.id = %s", (merchant_id,))[0]


def list_merchants(limit: int = LIST_MAX) -> list[Merchant]:
    """Return the merchants, newest first."""
    newest_first = Merchant.select().order_by(descending(Merchant.created_at), descending(Merchant.id))
    return newest_first.limit(min(limit, LIST_MAX)).all()


def read_merchant(merchant_id: UUID) -> Merchant:
    """Return a merchant. Raises UnknownMerchantError."""
    check_exists(merchant_id)
    return Merchant.read("m.id = %s", (merchant_id,))[0]


def name_of(merchant_id: UUID) -> str:
    """Return the name under which buyers and recipients know a merchant. Raises LookupError if it does not exist."""
    # Not the whole face: workers and signer write e-mails, and may not read logos.
    row = one(f"SELECT {_SHOWN_NAME} FROM merchants m WHERE m.id = %s", (merchant_id,))
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return str(row[0])


def face_of(merchant_id: UUID) -> Face:
    """Return a merchant as buyers see it. Raises LookupError if it does not exist."""
    return face_now(merchant_id)[0]


def face_now(merchant_id: UUID) -> tuple[Face, datetime]:
    """Return a merchant as buyers see it, and the gateway's clock. Raises LookupError if it does not exist."""
    row = one(_FACE, (merchant_id,))
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return Face(*row[:-1]), row[-1]


def set_face(
    merchant_id: UUID, *, display_name: str | None = None, contact: str | None = None, accent: str | None = None
) -> None:
    """Change the name and contact that buyers read, and the colour of its pages; '' ends one, None leaves it.

    contact: an e-mail address or a web address, which the caller has checked. Raises UnknownMerchantError, and
    IdentityError for a name that no page can show, or an unknown colour.
    """
    if accent and accent not in ACCENTS:
        raise IdentityError(f"a colour is one of {', '.join(ACCENTS)}")
    if display_name:
        _check_name(display_name)
        if len(display_name) > DISPLAY_NAME_CHARS_MAX:
            raise IdentityError(f"a name for buyers has at most {DISPLAY_NAME_CHARS_MAX} characters")
    check_exists(merchant_id)
    execute(
        "UPDATE merchants SET display_name = COALESCE(%s, display_name), contact = COALESCE(%s, contact),"
        " accent = COALESCE(%s, accent) WHERE id = %s",
        (display_name, contact, accent, merchant_id),
    )
    face = {"display_name": display_name, "contact": contact, "accent": accent}
    note_changed(merchant_id, *(name for name, text in face.items() if text is not None))


def note_changed(merchant_id: UUID, *terms: str) -> None:
    """Log a change of a merchant's terms by their names, once the transaction is committed."""
    then(lambda: log.info("merchant.changed", merchant=str(merchant_id), terms=list(terms)))


def check_exists(merchant_id: UUID) -> None:
    """Raise UnknownMerchantError if there is no such merchant."""
    if not Merchant.select(Merchant.id).where(Merchant.id == merchant_id).exists():
        raise UnknownMerchantError(f"there is no merchant {merchant_id}")


def set_cosign(merchant_id: UUID, *, is_required: bool) -> bool:
    """Decide whether a merchant's payouts need a second principal; return whether that is new.

    Those that wait already go on as they began. Raises UnknownMerchantError.
    """
    check_exists(merchant_id)
    is_changed = touched(
        "UPDATE merchants SET is_cosign_required = %s WHERE id = %s AND is_cosign_required <> %s",
        (is_required, merchant_id, is_required),
    )
    if is_changed:
        note_changed(merchant_id, "cosign")
    return is_changed


def create_key(merchant_id: UUID, kind: KeyKind, label: str, box: SecretBox) -> IssuedKey:
    """Give a merchant a new API key; its secret is returned this once and stored sealed.

    Raises UnknownMerchantError, and IdentityError for an unusable label.
    """
    if label:
        _check_name(label)
    public_id = "pk_" + base64.b32encode(secrets.token_bytes(_PUBLIC_ID_BYTES)).decode().lower()
    secret = "sk_" + secrets.token_urlsafe(_SECRET_BYTES)
    sealed = box.seal(secret.encode(), bound_to=binding(public_id))
    created = execute(
        "INSERT INTO api_keys (id, public_id, merchant_id, kind, label, secret_box)"
        " SELECT %s, %s, id, %s, %s, %s FROM merchants WHERE id = %s",
        (uuid7(), public_id, kind, label, sealed, merchant_id),
    )
    if created == 0:
        raise UnknownMerchantError(f"there is no merchant {merchant_id}")
    then(lambda: log.info("key.created", key=public_id, merchant=str(merchant_id), kind=kind))
    return IssuedKey(public_id, secret)


def revoke_key(public_id: str) -> bool:
    """Take a key out of force for good; False when it was so already. Raises UnknownKeyError."""
    if _PUBLIC_ID.fullmatch(public_id) is None:
        raise UnknownKeyError("this is no public id of an API key")
    if execute("UPDATE api_keys SET revoked_at = app_now() WHERE public_id = %s AND revoked_at IS NULL", (public_id,)):
        then(lambda: log.warning("key.revoked", key=public_id))
        return True
    if not ApiKeyRow.select(ApiKeyRow.id).where(ApiKeyRow.public_id == public_id).exists():
        raise UnknownKeyError(f"there is no API key {public_id}")
    return False


def merchant_of(public_id: str) -> UUID:
    """Return the merchant of a key that exists."""
    merchant_id: UUID = value("SELECT merchant_id FROM api_keys WHERE public_id = %s", (public_id,))
    return merchant_id


def find_key(public_id: str) -> ApiKeyRow | None:
    """Return the key of that public id if it is in force; unknown and revoked keys look alike."""
    if _PUBLIC_ID.fullmatch(public_id) is None:
        return None
    return ApiKeyRow.first("k.public_id = %s AND k.revoked_at IS NULL", (public_id,))


def read_key(public_id: str) -> ApiKeyRow:
    """Return a key, in force or revoked. Raises UnknownKeyError."""
    key = ApiKeyRow.first("k.public_id = %s", (public_id,)) if _PUBLIC_ID.fullmatch(public_id) else None
    if key is None:
        raise UnknownKeyError(f"there is no API key {public_id}")
    return key


def active_keys(merchant_id: UUID) -> list[ApiKeyRow]:
    """Return all keys of a merchant that are in force, oldest first."""
    return ApiKeyRow.read("k.merchant_id = %s AND k.revoked_at IS NULL ORDER BY k.created_at, k.id", (merchant_id,))


def list_keys(merchant_id: UUID | None = None, *, limit: int = LIST_MAX) -> list[ApiKeyRow]:
    """Return API keys, newest first, those of one merchant or of all; revoked ones too. Raises UnknownMerchantError."""
    if merchant_id is None:
        return ApiKeyRow.read("true ORDER BY k.created_at DESC, k.id DESC LIMIT %s", (min(limit, LIST_MAX),))
    check_exists(merchant_id)
    return ApiKeyRow.read(
        "k.merchant_id = %s ORDER BY k.created_at DESC, k.id DESC LIMIT %s", (merchant_id, min(limit, LIST_MAX))
    )


def open_secret(key: ApiKeyRow, box: SecretBox) -> str:
    """Return the key's secret. Raises SecretBoxError."""
    return box.open(key.secret_box, bound_to=binding(key.public_id)).decode()


def binding(public_id: str) -> str:
    """Return the text by which a seal is bound to its row."""
    return f"api_key:{public_id}"


def _owner(name: str | UUID) -> UUID:
    """Return the one owner of that id or name, making one for a new name; inside the caller's transaction."""
    if isinstance(name, UUID):
        if not Owner.select(Owner.id).where(Owner.id == name).exists():
            raise UnknownOwnerError(f"there is no owner {name}")
        return name
    _check_name(name)
    # Names are not unique, so two commands at once must take turns.
    execute("LOCK TABLE owners IN SHARE ROW EXCLUSIVE MODE")
    owner_ids = Owner.select(Owner.id).where(Owner.name == name).limit(2).all()
    if len(owner_ids) > 1:
        raise AmbiguousOwnerError(f"several owners are called {name}: name the one you mean by id")
    return owner_ids[0] if owner_ids else _new_owner(name)


def _new_owner(name: str) -> UUID:
    owner_id = uuid7()
    Owner(id=owner_id, name=name).write()
    return owner_id


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise IdentityError(f"a name is 1 to {NAME_CHARS_MAX} printable characters")
