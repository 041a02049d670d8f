"""Declares an endpoint: one row of data, from which its route, authentication and documentation are made.

api.routes declares the rows, api.http.dispatch serves them, api.openapi describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

import msgspec

from actors.queue.call_specs import CallSpec
from api.gateway import Gateway
from api.limits.limits import LimitName
from core.errors import (
    AuthBadTimestamp,
    AuthBadToken,
    AuthBodyRead,
    AuthIpNotAllowed,
    DomainError,
    GatewayBusy,
    GatewayInternalError,
    IdempotencyBadKey,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    IdempotencyUnavailable,
    MerchantBadSignature,
    MerchantUnknownKey,
    MerchantWrongKeyKind,
    PayBadUuid,
    PaylinkBadId,
    PayoutlinkNotFound,
    RequestBadContentType,
    RequestBadField,
    RequestBadJson,
    RequestLengthRequired,
    RequestNotFound,
    RequestTooLarge,
)
from core.http.allowlist import Address
from core.http.answers import Answer
from core.http.encoding import Packed
from core.http.requests import Request, reading_errors
from models.merchants.rows import KeyKind

if TYPE_CHECKING:
    from api.http.auth import Principal

Rights = frozenset[KeyKind]

# The rights of a legacy key (API reference, "Keys"); None marks an endpoint without a signature.
ANY_KEY: Final[Rights] = frozenset({"unified", "payment", "payout"})
PAYMENT_KEYS: Final[Rights] = frozenset({"unified", "payment"})
PAYOUT_KEYS: Final[Rights] = frozenset({"unified", "payout"})
PUBLIC: Final = None

JSON: Final = "application/json"

_BODY_ERRORS: Final = (
    RequestBadJson,
    RequestLengthRequired,
    RequestNotFound,
    RequestTooLarge,
    RequestBadContentType,
    AuthBodyRead,
)
_SIGNATURE_ERRORS: Final = (AuthBadTimestamp, MerchantUnknownKey, MerchantBadSignature, AuthIpNotAllowed)
_IDEMPOTENCY_ERRORS: Final = (IdempotencyBadKey, IdempotencyInProgress, IdempotencyKeyReused, IdempotencyUnavailable)
_REPEAT_ERRORS: Final = (IdempotencyInProgress, IdempotencyUnavailable)
_ALWAYS: Final = (GatewayBusy, GatewayInternalError)
# The error of a malformed path parameter, by its name.
_PATH_ERRORS: Final[Mapping[str, type[DomainError]]] = {
    "invoice_id": PayBadUuid,
    "link_id": PaylinkBadId,
    "token": PayoutlinkNotFound,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, read and authenticated."""

    request_id: str
    principal: Principal | None
    body: Request | None
    params: Mapping[str, str]
    # Returns the address that sent the request. Lazy: it is costly to compute and few endpoints need it.
    source: Callable[[], Address | None]

    @property
    def merchant_id(self) -> UUID | None:
        """Return the merchant of the request; None for a public one."""
        return None if self.principal is None else self.principal.merchant_id

    def merchant(self) -> Principal:
        """Return the key that signed the request. For signed endpoints only."""
        if self.principal is None:
            raise AssertionError("a public endpoint knows no merchant")
        return self.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer's bytes, ready to send."""

    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    # The body in both of its forms, if it may be sent compressed.
    packed: Packed | None = None


Reader = Callable[[Gateway, Call], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The actor that does the work, and the message that asks for it."""

    spec: CallSpec
    message: Callable[[Call], object] = attrgetter("body")
    # Set where the actor waits for another party's server; None is the usual wait.
    wait_s: float | None = None
    # Adds to an answer, new or replayed, a part that may neither be stored nor pass through Redis.
    complete: Callable[[Gateway, bytes], bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A method on a path. Either `actor` answers, through the queue, or `reader` does, from PostgreSQL."""

    method: Literal["GET", "POST"] = "POST"
    path: str
    name: str
    tag: str
    summary: str
    description: str = ""
    rights: Rights | None
    request: type[Request] | None = None
    # An object, or a list of them.
    result: type[Answer | list[Any]] | None
    actor: Actor | None = None
    reader: Reader | None = None
    # The errors that `reader`, or the actor's message, raises. All others follow from the other fields.
    errors: tuple[type[DomainError], ...] = ()
    # Creates an object: honours Idempotency-Key.
    creates: bool = False
    # Returns the request's fields that an answer contradicts: an order_id's earlier object is returned as it is.
    differing: Callable[[Call, bytes], list[str]] | None = None
    # Moves money without an order id of its own: the same request, with the same signature, gets the first answer.
    dedupes_signature: bool = False
    # 201 with a bare object; the others answer 200 with an envelope.
    status: Literal[200, 201] = 200
    bare: bool = False
    # Answered with an ETag, and with 304 if the caller has that version.
    cached: bool = False
    # Open to scripts of any origin; never set on a signed endpoint.
    cors: bool = False
    # The limit of a public endpoint, by source address; signed requests count for their key.
    limit: LimitName | None = None
    # The reader waits for one of the slots for PostgreSQL. Not for what operators ask while PostgreSQL is down.
    takes_slot: bool = True
    # The reader searches a list that may be long; a merchant has few such searches at once.
    is_search: bool = False
    # Requires METRICS_TOKEN: for the operator's machines.
    is_guarded: bool = False
    # The limit counts each payment and source separately: the path has {invoice_id}.
    is_payment_page: bool = False
    content_type: str = JSON
    examples: Mapping[str, Any] = field(default_factory=dict)

    def all_errors(self) -> tuple[type[DomainError], ...]:
        """Return every error that the endpoint can answer with, its own last."""
        return tuple(
            dict.fromkeys(
                (
                    *(_SIGNATURE_ERRORS if self.rights is not None else ()),
                    *((MerchantWrongKeyKind,) if self.rights not in {None, ANY_KEY} else ()),
                    *((AuthBadToken, RequestNotFound) if self.is_guarded else ()),
                    *(_BODY_ERRORS if self.request else ()),
                    *((RequestBadField,) if RequestBadField in self._reading_errors() else ()),
                    *(_IDEMPOTENCY_ERRORS if self.creates else ()),
                    *(_REPEAT_ERRORS if self.dedupes_signature else ()),
                    *((RequestNotFound,) if "{" in self.path else ()),
                    *_ALWAYS,
                    *self.own_errors(),
                )
            )
        )

    def own_errors(self) -> tuple[type[DomainError], ...]:
        """Return the errors of the endpoint's path, its fields, its actor and its reader."""
        of_path = (error for name, error in _PATH_ERRORS.items() if f"{{{name}}}" in self.path)
        of_actor = () if self.actor is None else self.actor.spec.raises
        own = dict.fromkeys((*of_path, *self._reading_errors(), *of_actor, *self.errors))
        return tuple(error for error in own if error is not RequestBadField)

    def _reading_errors(self) -> tuple[type[DomainError], ...]:
        return () if self.request is None else reading_errors(self.request)


def envelope(result: bytes) -> bytes:
    """Wrap a result that is already JSON."""
    return b'{"state":0,"result":' + result + b"}"


def answered(value: object) -> Reply:
    """Return an answer in the envelope of all answers."""
    return Reply(body=envelope(msgspec.json.encode(value)))
