"""Declares the types of requests; core.http.answers declares those of answers.

The same types validate requests, travel to the actors and form the OpenAPI document, so that the three cannot differ.
Read by api (bodies) and actors (messages). Source: API reference, "Endpoints".
"""

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct, inspect

from core import errors
from core.http.egress import EgressRefused, check_public_url, with_ascii_host

# The place of a type in the OpenAPI document.
SCHEMA_REFERENCE: Final = "#/components/schemas/{name}"

# Unknown fields are named up to this number, in this form; a known one is meant from this likeness on.
UNKNOWN_SHOWN_MAX: Final = 10
NEAR: Final = 0.75
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200

# `$` also matches before a last line feed, in Python though not in JSON Schema; `(?!\n)` makes the two agree.
_END: Final = r"(?!\n)$"
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x20\x7f/?#\\@:\[\]]+)(?::[0-9]{1,5})?"
# Characters that end a line, change the direction of text, or hide their neighbours.
_UNSEEN: Final = r"\x00-\x20\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_EMAIL_ATOM: Final = rf"[^\s{_UNSEEN}@<>\"(),:;\\\[\].]+(?:\.[^\s{_UNSEEN}@<>\"(),:;\\\[\].]+)*"

# An empty optional text counts as absent, so every pattern of one lets it pass. The form completes "must …" for a
# caller whose value does not match; patterns do not help him.
Text = Annotated[str, Meta(pattern=r"^[^\x00]*$", extra={"form": "have no NUL character"})]
WebUrl = Annotated[
    str,
    Meta(
        max_length=2048,
        pattern=rf"^(?:https?://{_HOST}(?:[/?#][^\s\x00-\x20\x7f\\]*)?)?{_END}",
        description="An absolute URL, http or https, at most 2048 characters.",
        examples=["https://shop.example/orders/1042"],
        extra={"form": "be an absolute http or https URL, such as https://shop.example/orders/1042"},
    ),
]
# With `=?` a header may begin a word that its readers decode, into other addresses.
Email = Annotated[
    str,
    Meta(
        max_length=254,
        pattern=rf"^(?!.*=\?)(?:{_EMAIL_ATOM}@{_EMAIL_ATOM})?{_END}",
        extra_json_schema={"format": "email"},
        examples=["buyer@mail.example"],
        extra={"form": "be one e-mail address, such as buyer@mail.example"},
    ),
]
OrderId = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"^(?!payoutlink:|refund:|autowithdraw:)[^\x00]*$",
        description="Your own reference, at most 255 characters. A repeat with the reference of an existing"
        " object returns that object.",
        examples=["order-1042"],
        extra={"form": "begin neither with payoutlink:, refund: nor autowithdraw:, and have no NUL character"},
    ),
]
UuidText = Annotated[
    str,
    Meta(
        pattern=rf"^(?:[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}})?{_END}",
        extra_json_schema={"format": "uuid"},
        extra={"form": "be a UUID with its four hyphens, such as 0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"},
    ),
]
Amount = Annotated[
    str,
    Meta(
        max_length=49,
        pattern=rf"^[0-9]{{1,30}}(?:\.[0-9]{{1,18}})?{_END}",
        description="A decimal string, with no more fractional digits than the currency has.",
        examples=["125.50"],
        extra={"form": "be a decimal string without a sign, with a point and no other separator, such as 125.50"},
    ),
]
_CODE_FORM: Final = {"form": "be a code without blanks, such as USDT or ethereum"}
Code = Annotated[str, Meta(max_length=32, pattern=rf"^[!-~]+{_END}", examples=["USDT"], extra=_CODE_FORM)]
CodeOrEmpty = Annotated[str, Meta(max_length=32, pattern=rf"^[!-~]*{_END}", extra=_CODE_FORM)]

Moment = Annotated[
    str,
    Meta(
        max_length=40, description="A time in ISO 8601; without an offset it is UTC.", examples=["2026-01-31T12:00:00Z"]
    ),
]
Cursor = Annotated[
    str, Meta(max_length=128, description="The next_cursor of the previous page. Default: the first page.")
]

# The errors that msgspec raises for a value of a wrong kind, and for text with unpaired surrogates in its place.
_NOT_CONVERTED: Final = (msgspec.ValidationError, UnicodeEncodeError)


# The kinds of values as msgspec quotes them, and their names in JSON.
_KINDS: Final = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
_JSON_NAMES: Final = MappingProxyType({"str": "string", "int": "integer", "float": "number", "bool": "boolean"})


class Request(Struct, kw_only=True, omit_defaults=True):
    """A request's body. Unknown fields are ignored. A subclass names the error for each of its fields."""

    refusals: ClassVar[Mapping[str, type[errors.DomainError]]] = MappingProxyType({})
    # The errors for missing or empty required fields, where they differ.
    absences: ClassVar[Mapping[str, type[errors.DomainError]]] = MappingProxyType({})
    # The errors that check() raises and no field has.
    breaches: ClassVar[tuple[type[errors.DomainError], ...]] = ()

    def check(self, own_hosts: frozenset[str]) -> None:
        """Check rules over several fields, and clamp values to their limits."""


R = TypeVar("R", bound=Request)


class Empty(Request, kw_only=True, omit_defaults=True):
    """A body without fields."""


def items_of(schema: type[Struct], *, items_max: int) -> dict[str, Any]:
    """Describe a list of items of this type. Items are read one by one, so that a bad one fails alone."""
    return {"minItems": 1, "maxItems": items_max, "items": _reference(schema)}


def any_of(*schemas: type[Struct]) -> dict[str, Any]:
    """Describe an object of one of these types."""
    return {"anyOf": [_reference(schema) for schema in schemas]}


def _reference(schema: type[Struct]) -> dict[str, str]:
    return {"$ref": SCHEMA_REFERENCE.format(name=schema.__name__)}


def page_size(limit: int | None) -> int:
    """Return a list's limit. Values outside 1 to 200 become 50."""
    return limit if limit is not None and 1 <= limit <= PAGE_MAX else PAGE_DEFAULT


def public_callback(url: str | None, own_hosts: frozenset[str], error: type[errors.DomainError]) -> str | None:
    """Return a callback in its stored form, with its host in punycode. Raises `error` if it is not public."""
    if url is None:
        return None
    try:
        check_public_url(url, allow_private=False, require_https=False, own_hosts=own_hosts)
        return with_ascii_host(url)
    except EgressRefused as refusal:
        raise error(f"url_callback: {refusal}") from refusal


class Lookup(Request, kw_only=True, omit_defaults=True):
    """Names an object by uuid, or else by order_id. unnamed: the error if both are missing."""

    unnamed: ClassVar[type[errors.DomainError]]

    uuid: (
        Annotated[UuidText, Meta(description="The object's identifier. If it is set, order_id is ignored.")] | None
    ) = None
    order_id: (
        Annotated[Text, Meta(max_length=255, description="Your own reference.", examples=["order-1042"])] | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a lookup without uuid and order_id."""
        if self.uuid is None and self.order_id is None:
            raise self.unnamed


def reading_errors(schema: type[Request]) -> tuple[type[errors.DomainError], ...]:
    """Return the errors that read_request raises: those of the fields, in their order, then those of check()."""
    of_fields = [
        error
        for name in schema.__struct_fields__
        for error in (schema.absences.get(name), _refusal_type(schema, name))
        if error is not None
    ]
    unnamed = (schema.unnamed,) if issubclass(schema, Lookup) else ()
    return tuple(dict.fromkeys((*of_fields, *unnamed, *schema.breaches)))


def read_request(schema: type[R], fields: Mapping[str, Any], *, own_hosts: frozenset[str]) -> R:
    """Read a JSON object as a request. Raises the error of the first wrong field in the schema's order.

    null counts as absent in every optional field, and an empty text in those of _optional_texts.
    """
    optional, texts = optional_fields(schema), _optional_texts(schema)
    given = {
        name: fields[name]
        for name in schema.__struct_fields__
        if name in fields
        and (fields[name] is not None or name not in optional)
        and (fields[name] != "" or name not in texts)
    }
    try:
        request = msgspec.convert(given, schema)
    except _NOT_CONVERTED as error:
        _refuse(schema, given, error)
    for name in _texts(schema):
        text = getattr(request, name)
        # Neither UTF-8 nor PostgreSQL knows unpaired surrogates; only JSON's \u escapes can smuggle them in.
        if text is not None and not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise _refusal(schema, name, "has an unpaired surrogate")
    request.check(own_hosts)
    return request


def unknown_fields(schema: type[Request], fields: Mapping[str, Any]) -> list[str]:
    """Return the first fields of a body that its endpoint does not know, of those whose names a header can carry."""
    known = schema.__struct_fields__
    return [name for name in fields if name not in known and _NAME.fullmatch(name)][:UNKNOWN_SHOWN_MAX]


def meant_fields(schema: type[Request], unknown: Iterable[str]) -> str:
    """Return a sentence for each unknown field that resembles a known one; '' if none does."""
    near = ((name, difflib.get_close_matches(name, schema.__struct_fields__, n=1, cutoff=NEAR)) for name in unknown)
    return "".join(f" There is no field {name}; did you mean {known[0]}?" for name, known in near if known)


def _refuse(schema: type[Request], given: Mapping[str, Any], error: Exception) -> NoReturn:
    """Raise the error of the field that msgspec refused: its message names the field, but a release may change that."""
    for field in msgspec.structs.fields(schema):
        if field.required and given.get(field.name) in (None, ""):
            raise schema.absences.get(field.name, _refusal_type(schema, field.name))(
                f"{field.name}: is missing"
            ) from error
        if field.name not in given:
            continue
        try:
            msgspec.convert(given[field.name], field.type)
        except _NOT_CONVERTED as fault:
            raise _refusal(schema, field.name, _reason(str(fault), inspect.type_info(field.type))) from fault
    raise AssertionError("msgspec refused a field") from error


def _reason(fault: str, kind: inspect.Type) -> str:
    """Return msgspec's message for an answer, with the form in place of a pattern, and without sent values.

    Kinds have JSON's names, not Python's.
    """
    if "matching regex" in fault:
        return f"must {_form(kind)}"
    if fault.startswith("Invalid enum value"):
        return f"must be one of {', '.join(_choices(kind))}"
    reason = _KINDS.sub(lambda match: " or ".join(_JSON_NAMES.get(kind, kind) for kind in match[1].split(" | ")), fault)
    return reason[:1].lower() + reason[1:]


def _form(kind: inspect.Type) -> str:
    """Return the form of a text with a pattern; that of a list's item is in the API reference alone."""
    forms = (each.extra["form"] for each in _kinds(kind) if isinstance(each, inspect.Metadata) and each.extra)
    return str(next(forms, "have items of the form that the API reference gives"))


def _choices(kind: inspect.Type) -> list[str]:
    """Return the values that an enumerated text may have; the empty one counts as absent."""
    literals = (kind.values for kind in _kinds(kind) if isinstance(kind, inspect.LiteralType))
    return [str(value) for values in literals for value in values if value != ""]


def _kinds(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yield a type and those that it is made of."""
    yield kind
    match kind:
        case inspect.UnionType(types=kinds):
            for each in kinds:
                yield from _kinds(each)
        case inspect.Metadata(type=inner):
            yield from _kinds(inner)


def _refusal(schema: type[Request], name: str, why: str) -> errors.DomainError:
    return _refusal_type(schema, name)(f"{name}: {why}")


def _refusal_type(schema: type[Request], name: str) -> type[errors.DomainError]:
    return schema.refusals.get(name, errors.RequestBadField)


def _is_text(kind: inspect.Type) -> bool:
    return any(isinstance(each, inspect.StrType | inspect.LiteralType) for each in _kinds(kind))


@functools.cache
def _texts(schema: type[Request]) -> tuple[str, ...]:
    """Return the fields of a schema that hold text."""
    return tuple(field.name for field in msgspec.structs.fields(schema) if _is_text(inspect.type_info(field.type)))


@functools.cache
def optional_fields(schema: type[Request]) -> frozenset[str]:
    """Return the fields of a schema that may be absent."""
    return frozenset(field.name for field in msgspec.structs.fields(schema) if not field.required)


@functools.cache
def _optional_texts(schema: type[Request]) -> frozenset[str]:
    """Return the text fields that may be absent, and count as absent if empty.

    Amounts are not among them: a caller that sends an empty one by mistake does not ask for the whole balance.
    """
    optional = (field for field in msgspec.structs.fields(schema) if not field.required)
    return frozenset(_texts(schema)) & {field.name for field in optional if _takes_nothing(field.type)}


def _takes_nothing(kind: Any) -> bool:
    try:
        msgspec.convert("", kind)
    except msgspec.ValidationError:
        return False
    return True
