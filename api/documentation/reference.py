"""Reads the API's description into what the reference's pages show. Called by pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from api.documentation.samples import samples
from core.errors import ERRORS, DomainError
from core.invoices.states import INVOICE_TRANSITIONS
from core.payout_links.states import LINK_TRANSITIONS
from core.payouts.states import PAYOUT_TRANSITIONS

Json = Mapping[str, Any]

# The state tables that the reference draws.
STATES: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "Payment": {str(status): frozenset(map(str, after)) for status, after in INVOICE_TRANSITIONS.items()},
    "Payout": {str(status): frozenset(map(str, after)) for status, after in PAYOUT_TRANSITIONS.items()},
    "Payout link": {str(status): frozenset(map(str, after)) for status, after in LINK_TRANSITIONS.items()},
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object, in words."""

    name: str
    kind: str
    # The object that it holds, if it has one of its own.
    object_name: str
    is_required: bool
    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as its page shows it."""

    name: str
    method: str
    path: str
    summary: str
    text: str
    fields: tuple[Field, ...]
    answer: str
    # The codes of its errors, by status.
    errors: tuple[tuple[int, tuple[str, ...]], ...]
    samples: Mapping[str, str]


class Reference:
    """The description, by tag and by object."""

    def __init__(self, described: Json, *, base_url: str) -> None:
        self._described, self._base_url = described, base_url
        self.tags = {tag["name"]: tag["description"] for tag in described["tags"]}

    def operations(self, tag: str) -> Iterator[Operation]:
        """Yield a tag's operations."""
        for path, methods in self._described["paths"].items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    yield self._operation(path, method.upper(), operation)

    def events(self) -> Iterator[tuple[str, str, str]]:
        """Yield each webhook's event, when it is sent, and its body."""
        for event, methods in self._described["webhooks"].items():
            body = methods["post"]["requestBody"]["content"]["application/json"]["example"]
            yield event, methods["post"]["summary"], _pretty(body)

    def objects(self) -> Iterator[tuple[str, str, tuple[Field, ...]]]:
        """Yield each object that has fields: its name, its meaning, its fields."""
        for name, shape in self._described["components"]["schemas"].items():
            if fields := self._fields(shape):
                yield name, shape["description"].partition("\n\n")[0], fields

    def _operation(self, path: str, method: str, operation: Json) -> Operation:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        answer = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        (result,) = answer["content"].values()
        sampled = {
            "name": operation["operationId"],
            "is_signed": operation.get("security") != [],
            "example": None if content is None else content["example"],
            "values": self._values(path),
        }
        return Operation(
            name=operation["operationId"],
            method=method,
            path=path,
            summary=operation["summary"],
            text=operation["description"],
            fields=() if content is None else self._fields(self._resolved(content["schema"])),
            answer=_pretty(result["example"]) if not isinstance(result["example"], str) else result["example"],
            errors=tuple(self._errors(operation)),
            samples=samples(sampled, method, path, base_url=self._base_url),
        )

    def _values(self, path: str) -> dict[str, str]:
        parameters = self._described["components"]["parameters"]
        return {place: parameters[place]["example"] for place in re.findall(r"\{(\w+)\}", path)}

    def _errors(self, operation: Json) -> Iterator[tuple[int, tuple[str, ...]]]:
        for status, response in sorted(operation["responses"].items()):
            codes = re.findall(r"`([a-z_]+\.[a-z_]+)`", self._resolved(response)["description"])
            if codes:
                yield int(status), tuple(codes)

    def _fields(self, shape: Json) -> tuple[Field, ...]:
        required = shape.get("required", ())
        return tuple(
            Field(name, self._kind(field), self._object(field), name in required, self._text(field))
            for name, field in shape.get("properties", {}).items()
        )

    def _kind(self, schema: Json) -> str:
        """Return the kind of a value in words: a type, an object's name, or the values that it may have."""
        if name := self._named(schema):
            return name
        schema = self._resolved(schema)
        if "enum" in schema:
            return ", ".join(value or "(empty)" for value in schema["enum"])
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(map(self._kind, schema["anyOf"])))
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " or ".join(f"list of {self._kind(schema['items'])}" if kind == "array" else kind for kind in kinds)

    def _object(self, schema: Json) -> str:
        """Return the name of the object that a value is, or is a list of; '' for plain values."""
        parts = (schema, *schema.get("anyOf", ()), schema.get("items", {}))
        return next(filter(None, map(self._named, parts)), "")

    def _named(self, schema: Json) -> str:
        has_page = "$ref" in schema and "properties" in self._resolved(schema)
        return str(schema["$ref"]).rpartition("/")[2] if has_page else ""

    def _text(self, field: Json) -> str:
        text = field.get("description") or self._resolved(field).get("description", "")
        return str(text).partition("\n\n")[0]

    def _resolved(self, schema: Json) -> Json:
        if "$ref" not in schema:
            return schema
        _, _, kind, name = schema["$ref"].split("/")
        component: Json = self._described["components"][kind][name]
        return component


def errors_by_family() -> dict[str, list[type[DomainError]]]:
    """Return all errors by the family of their codes."""
    families: dict[str, list[type[DomainError]]] = {}
    for error in ERRORS.values():
        families.setdefault(error.code.partition(".")[0], []).append(error)
    return families


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
