"""Turns msgspec's schemas into a form that generators of clients read in full. Called by document.

Generators lose descriptions inside `anyOf`, take a field with a default for required, and read ECMA-262's patterns
alone. Titles only repeat the names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from core.http.requests import SCHEMA_REFERENCE

Json = dict[str, Any]

_NULL: Final = {"type": "null"}
# Keywords that hold schemas: by name, in a list, or one.
_NAMED: Final = frozenset({"properties"})
_LISTED: Final = frozenset({"anyOf", "oneOf", "allOf"})
_SINGLE: Final = frozenset({"items", "additionalProperties"})
_NOISE: Final = frozenset({"default", "title"})
# The gateway checks their exact patterns; ECMA-262 cannot read that of e-mail addresses.
_FORMS: Final = frozenset({"email", "uuid"})
# In ECMA-262 the end of a text is no place before a line feed.
_PYTHON_END: Final = r"(?!\n)$"
_WORDS: Final = ("description", "examples", "deprecated")


def admit_null(schema: Json, optional: Iterable[str]) -> None:
    """Mark null as equal to absent in the optional fields of a request."""
    for name in optional:
        field = schema["properties"][name]
        if _NULL not in field.get("anyOf", ()):
            words = {word: field.pop(word) for word in _WORDS if word in field}
            schema["properties"][name] = {"anyOf": [field, _NULL], **words}


def plain(schema: Json) -> Json:
    """Return a schema with its words at the property, `type: [..., "null"]` where that says it, and no default."""
    kept = {key: _part(key, value) for key, value in schema.items() if key not in _NOISE}
    if kept.get("format") in _FORMS:
        del kept["pattern"]
    elif "pattern" in kept:
        kept["pattern"] = kept["pattern"].replace(_PYTHON_END, "$")
    return _nullable(kept)


def _part(key: str, value: Any) -> Any:
    if key in _NAMED:
        return {name: plain(schema) for name, schema in value.items()}
    if key in _LISTED:
        return [plain(schema) for schema in value]
    return plain(value) if key in _SINGLE and isinstance(value, dict) else value


def _nullable(schema: Json) -> Json:
    """Lift the words about a value out of a choice between it and null."""
    choices = schema.get("anyOf", ())
    values = _merged([choice for choice in choices if choice != _NULL])
    if len(values) != 1 or _NULL not in choices:
        return schema
    value = values[0]
    words = {word: value[word] for word in _WORDS if word in value} | schema
    if isinstance(value.get("type"), str) and "enum" not in value:
        return {key: part for key, part in (value | words).items() if key != "anyOf"} | {
            "type": [value["type"], "null"]
        }
    return words | {"anyOf": [{key: part for key, part in value.items() if key not in _WORDS}, _NULL]}


def _merged(choices: list[Json]) -> list[Json]:
    """Return enumerations, such as those of a type and of the empty text, as one."""
    if len(choices) < len(("a type", "the empty text")) or not all("enum" in choice for choice in choices):
        return choices
    words = {word: choice[word] for choice in choices for word in _WORDS if word in choice}
    return [words | {"enum": [value for choice in choices for value in choice["enum"]]}]


def share_choices(schemas: Json) -> Json:
    """Return the schemas with each enumeration that several properties have as one of its own."""
    places: dict[tuple[Any, ...], list[tuple[str, Json]]] = defaultdict(list)
    for owner, schema in schemas.items():
        for name, field in schema.get("properties", {}).items():
            for choice in (field, *field.get("anyOf", ())):
                if "enum" in choice:
                    places[tuple(choice["enum"])].append((_camel(f"{owner}_{name}"), choice))
    return schemas | dict(_shared(values, fields) for values, fields in places.items() if len(fields) > 1)


def _shared(values: tuple[Any, ...], fields: list[tuple[str, Json]]) -> tuple[str, Json]:
    """Have these properties refer to their enumeration; return it, and its name, which is the first one's."""
    name = fields[0][0]
    for _, choice in fields:
        del choice["enum"]
        choice["$ref"] = SCHEMA_REFERENCE.format(name=name)
    return name, {"type": "string", "enum": list(values)}


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
