"""Makes the client libraries and the Postman collection from the API's own description: `python -m sdk.generate`.

Hand-written parts are in sdk/templates and in sdk/python/sluice_client; a test compares the committed files.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from api.openapi.document import describe
from api.routes import ENDPOINTS

Json = dict[str, Any]

ROOT: Final = Path(__file__).parent
TEMPLATES: Final = ROOT / "templates"
BASE_URL: Final = "https://pay.shop.example"
WIDTH: Final = 110
# Not for merchants.
LEFT_OUT: Final = frozenset({"getOpenapi"})
READING: Final = re.compile(r"(get|list|calculate|render|set)[A-Z]")
# Their references are made by the library where the caller gives none.
REFERENCED: Final = {"createPayoutLink": "with_reference", "createPayoutLinks": "with_references"}

PYTHON_TYPES: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
SCRIPT_TYPES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


@dataclass(frozen=True)
class Call:
    """An operation as the templates need it."""

    name: str
    method: str
    path: str
    summary: str
    description: str
    tag: str
    is_signed: bool
    is_wrapped: bool
    repeat: str
    request: str | None
    fields: Mapping[str, Json]
    required: frozenset[str]
    result: Json
    example: Json | None

    @property
    def snake(self) -> str:
        """The name in Python."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def places(self) -> list[str]:
        """The names in the path."""
        return re.findall(r"\{(\w+)\}", self.path)


def document() -> Json:
    """Return the description that the files are made from."""
    return describe(ENDPOINTS, base_url=BASE_URL)


def files(described: Json) -> dict[str, str]:
    """Return the text of each file that is made, by its path within sdk/."""
    calls = [*read_calls(described)]
    package = "python/sluice_client"
    return {
        f"{package}/types.py": formatted(python_types(described)),
        f"{package}/errors.py": formatted(python_errors(described)),
        f"{package}/operations.py": formatted(python_calls(calls, described)),
        f"{package}/aio.py": formatted(python_coroutines(calls, described)),
        "node/sluice.js": script(calls, described),
        "node/sluice.d.ts": declarations(calls, described),
        "postman.json": json.dumps(collection(calls), indent=1, ensure_ascii=False) + "\n",
    }


def read_calls(described: Json) -> Iterator[Call]:
    """Yield the operations, in the order of the description."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] not in LEFT_OUT:
                yield read_call(described, path, method.upper(), operation)


def read_call(described: Json, path: str, method: str, operation: Json) -> Call:
    """Read one operation."""
    answer = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    (content,) = answer["content"].values()
    wrapped = "state" in content["schema"].get("properties", {})
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    request = named(body["schema"]) if body else None
    shape = described["components"]["schemas"][request] if request else {}
    return Call(
        name=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation["description"],
        tag=operation["tags"][0],
        is_signed=operation.get("security") != [],
        is_wrapped=wrapped,
        repeat=repeat_of(operation, method, answer),
        request=request,
        fields=shape.get("properties", {}),
        required=frozenset(shape.get("required", ())),
        result=content["schema"]["properties"]["result"] if wrapped else content["schema"],
        example=body.get("example"),
    )


def repeat_of(operation: Json, method: str, answer: Json) -> str:
    """Return why a call may be sent again: it reads or sets, has a key, has bytes that the gateway knows; else no."""
    if any(parameter["$ref"].endswith("/IdempotencyKey") for parameter in operation["parameters"]):
        return "key"
    if "Idempotent-Replayed" in answer.get("headers", {}):
        return "bytes"
    return "read" if method == "GET" or READING.match(operation["operationId"]) else "no"


def named(schema: Json) -> str:
    """Return the name of a schema that is referred to."""
    return str(schema["$ref"]).rpartition("/")[2]


def families(described: Json) -> list[str]:
    """Return the families of error codes, such as payment."""
    codes = {code for answer in described["components"]["responses"].values() for code in enumerated(answer)}
    return sorted({code.partition(".")[0] for code in codes})


def enumerated(value: Any) -> Iterator[str]:
    """Yield the codes of a response, however deep."""
    if isinstance(value, dict):
        yield from value.get("enum", ())
        for part in value.values():
            yield from enumerated(part)
    if isinstance(value, list):
        for part in value:
            yield from enumerated(part)


def family_class(family: str) -> str:
    """Return the class of a family."""
    return f"{family.capitalize()}Error"


# Python


def python_type(schema: Json, prefix: str = "") -> str:
    """Return the annotation of a schema."""
    if "$ref" in schema:
        return prefix + named(schema)
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema.get('enum', [schema.get('const')]))}]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(python_type(choice, prefix) for choice in schema["anyOf"]))
    kinds = schema.get("type", "object")
    return " | ".join(python_kind(kind, schema, prefix) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def python_kind(kind: str, schema: Json, prefix: str) -> str:
    """Return the annotation of one of a schema's types."""
    if kind == "array":
        return f"list[{python_type(schema['items'], prefix)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {python_type(values, prefix)}]" if isinstance(values, dict) and values else "dict[str, Any]"
    return PYTHON_TYPES[kind]


def python_types(described: Json) -> str:
    """Return the module of all objects."""
    shapes = described["components"]["schemas"]
    choices = (f"{name} = {python_type(shape)}" for name, shape in shapes.items() if not is_object(shape))
    objects = (python_shape(name, shape) for name, shape in shapes.items() if is_object(shape))
    head = '"""Every object of the API, as its JSON has it. Made by sdk/generate.py."""\n\n'
    imports = "from __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypedDict\n"
    return "\n\n".join((head + imports, *choices, *objects)) + "\n"


def is_object(shape: Json) -> bool:
    """Return whether a schema is that of an object with properties."""
    return shape.get("type") == "object"


def python_shape(name: str, shape: Json) -> str:
    """Return an object's class; the functional form where a field has a name of the language."""
    fields = {field: python_field(field, schema, shape) for field, schema in shape.get("properties", {}).items()}
    if any(keyword.iskeyword(field) for field in fields):
        listed = ", ".join(f"{field!r}: {kind!r}" for field, kind in fields.items())
        return f"{name} = TypedDict({name!r}, {{{listed}}})"
    lines = [f"class {name}(TypedDict):", f"    {docstring(shape['description'])}", ""]
    for field, kind in fields.items():
        lines += [f"    {field}: {kind}"]
        if text := shape["properties"][field].get("description"):
            lines += [f"    {docstring(text)}"]
    return "\n".join(lines)


def python_field(field: str, schema: Json, shape: Json) -> str:
    """Return a field's annotation."""
    kind = python_type(schema)
    return kind if field in shape.get("required", ()) else f"NotRequired[{kind}]"


def docstring(text: str, indent: str = "    ") -> str:
    """Return a docstring, wrapped; texts of the description hold neither quotes of it nor backslashes."""
    paragraphs = [textwrap.fill(part, WIDTH - len(indent)) for part in text.split("\n\n") if "|" not in part]
    text = textwrap.indent("\n\n".join(paragraphs), indent).strip()
    raw = "r" if "\\" in text else ""
    return f'{raw}"""{text}"""' if "\n" not in text else f'{raw}"""{text}\n{indent}"""'


def python_errors(described: Json) -> str:
    """Return the module of all errors."""
    known = families(described)
    classes = (f'class {family_class(f)}(ApiError):\n    """A code that begins with `{f}.`."""\n\n\n' for f in known)
    table = ", ".join(f'"{family}": {family_class(family)}' for family in known)
    text = "".join((*classes, f"FAMILIES: Final[dict[str, type[ApiError]]] = {{{table}}}\n"))
    return template("errors.py").replace("# families\n", text)


def parameters(call: Call, *, without: Iterable[str] = ()) -> str:
    """Return the parameters of a method: the path's first, the body's by name, required ones first."""
    ordered = sorted((name for name in call.fields if name not in without), key=lambda name: name not in call.required)
    by_name = [python_parameter(call, name) for name in ordered]
    by_name += ["idempotency_key: str | None = None"] if call.repeat == "key" else []
    return ", ".join(("self", *(f"{place}: str" for place in call.places), *(["*", *by_name] if by_name else [])))


def python_parameter(call: Call, name: str) -> str:
    """Return a parameter of a method; a list may be given as any sequence."""
    kind = re.sub(r"^list\[", "Sequence[", python_type(call.fields[name], "types."))
    if name in call.required:
        return f"{name}: {kind}"
    return f"{name}: {kind if kind.endswith('None') else f'{kind} | None'} = None"


def python_calls(calls: Iterable[Call], described: Json) -> str:
    """Return the module of all methods."""
    methods, rows = [], []
    for call in calls:
        rows.append(
            f"_{call.snake.upper()} = Operation("
            f'"{call.name}", "{call.method}", "{call.path}", "{call.repeat}", {call.is_signed}, {call.is_wrapped})'
        )
        methods.append(python_method(call))
        methods += [python_iterator(call, described)] if is_paged(call, described) else []
    text = template("operations.py").replace("class Sluice(", "\n".join(rows) + "\n\n\nclass Sluice(", 1)
    return text.replace("# methods\n", textwrap.indent("\n\n".join(methods), "    ") + "\n")


def python_method(call: Call) -> str:
    """Return a method."""
    kind = python_type(call.result, "types.")
    fields = "{" + ", ".join(f'"{name}": {name}' for name in call.fields) + "}"
    fields = f"{REFERENCED[call.name]}({fields})" if call.name in REFERENCED else fields
    path = f'"{call.path}"'
    if call.places:
        path = "f" + re.sub(r"\{(\w+)\}", r"{quote(\1, safe='')}", path)
    key = ", idempotency_key" if call.repeat == "key" else ""
    body = fields if call.request else "None"
    return "\n".join(
        (
            f"def {call.snake}({parameters(call)}) -> {kind}:",
            f"    {docstring(explained(call))}",
            f"    result: {kind} = self.call(_{call.snake.upper()}, {path}, {body}{key})",
            "    return result\n",
        )
    )


def explained(call: Call) -> str:
    """Return a method's documentation: the operation's, and that of its fields."""
    fields = (f"{name}: {schema.get('description', '')}" for name, schema in call.fields.items())
    return "\n\n".join((f"{call.summary}.", call.description, *fields))


def is_paged(call: Call, described: Json) -> bool:
    """Return whether an operation reads a list page by page."""
    shape = described["components"]["schemas"].get(named(call.result), {}) if "$ref" in call.result else {}
    return "cursor" in call.fields and {"items", "next_cursor"} <= set(shape.get("properties", ()))


def item_type(call: Call, described: Json) -> Json:
    """Return the schema of a list's items."""
    shape: Json = described["components"]["schemas"][named(call.result)]["properties"]["items"]["items"]
    return shape


def python_iterator(call: Call, described: Json) -> str:
    """Return a generator over all pages of a list."""
    given = ", ".join(f"{name}={name}" for name in call.fields if name != "cursor")
    kind = python_type(item_type(call, described), "types.")
    return "\n".join(
        (
            f"def {call.snake.replace('list_', 'iter_')}({parameters(call, without=['cursor'])}) -> Iterator[{kind}]:",
            f'    """{call.summary}, all pages; `limit` is the size of one."""',
            "    cursor: str | None = None",
            "    while True:",
            f"        page = self.{call.snake}({given}, cursor=cursor)",
            '        yield from page["items"]',
            '        cursor = page["next_cursor"]',
            "        if not cursor:",
            "            return\n",
        )
    )


def python_coroutines(calls: Iterable[Call], described: Json) -> str:
    """Return the module of all coroutines."""
    methods = []
    for call in calls:
        methods.append(python_coroutine(call))
        methods += [python_async_iterator(call, described)] if is_paged(call, described) else []
    return template("aio.py").replace("# methods\n", textwrap.indent("\n\n".join(methods), "    ") + "\n")


def python_coroutine(call: Call) -> str:
    """Return a coroutine."""
    given = [*call.places, *(f"{name}={name}" for name in call.fields)]
    given += ["idempotency_key=idempotency_key"] if call.repeat == "key" else []
    arguments = ", ".join((f"self._calls.{call.snake}", *given))
    return "\n".join(
        (
            f"async def {call.snake}({parameters(call)}) -> {python_type(call.result, 'types.')}:",
            f'    """{call.summary}: see Sluice.{call.snake}."""',
            f"    return await asyncio.to_thread({arguments})\n",
        )
    )


def python_async_iterator(call: Call, described: Json) -> str:
    """Return an asynchronous generator over all pages of a list."""
    text = python_iterator(call, described).replace("def ", "async def ", 1).replace("Iterator[", "AsyncIterator[", 1)
    text = text.replace("self.", "await self.", 1)
    return text.replace('yield from page["items"]', 'for item in page["items"]:\n            yield item')


def formatted(text: str) -> str:
    """Return Python as the house has it."""
    for argv in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        command = [
            sys.executable,
            "-m",
            "ruff",
            *argv,
            "--stdin-filename",
            str(ROOT / "python/sluice_client/made.py"),
            "-",
        ]
        text = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout  # noqa: S603
    return text


# Node


def script_type(schema: Json) -> str:
    """Return the TypeScript of a schema."""
    if "$ref" in schema:
        return named(schema)
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(script_type(choice) for choice in schema["anyOf"]))
    kinds = schema.get("type", "object")
    return " | ".join(script_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def script_kind(kind: str, schema: Json) -> str:
    """Return the TypeScript of one of a schema's types."""
    if kind == "array":
        return f"Array<{script_type(schema['items'])}>"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {script_type(values) if isinstance(values, dict) and values else 'unknown'}>"
    return SCRIPT_TYPES[kind]


def script(calls: Iterable[Call], described: Json) -> str:
    """Return the module for Node."""
    methods = []
    for call in calls:
        operation: Json = {"name": call.name, "method": call.method, "repeat": call.repeat}
        operation |= {"isSigned": call.is_signed, "isWrapped": call.is_wrapped}
        arguments = ", ".join((*map(camel, call.places), *(["fields"] if call.request else []), "options"))
        path = re.sub(r"\{(\w+)\}", lambda place: f"${{encodeURIComponent({camel(place[1])})}}", call.path)
        fields = "fields" if call.request else "undefined"
        if call.name in REFERENCED:
            fields = f"{camel(REFERENCED[call.name])}(fields)"
        methods.append(
            f"  {call.name}({arguments}) {{\n"
            f"    return this.#call({json.dumps(operation)}, `{path}`, {fields}, options);\n  }}"
        )
        if is_paged(call, described):
            name = call.name.replace("list", "iter", 1)
            methods.append(f"  {name}(fields) {{\n    return this.#pages(this.{call.name}, fields);\n  }}")
    known = families(described)
    classes = [f"export class {family_class(family)} extends ApiError {{}}" for family in known]
    table = ", ".join(f"{family}: {family_class(family)}" for family in known)
    text = template("sluice.js").replace("// families\n", "\n".join((*classes, f"const FAMILIES = {{ {table} }};\n")))
    return text.replace("// methods\n", "\n\n".join(methods) + "\n")


def camel(name: str) -> str:
    """Return a name as JavaScript writes it."""
    return re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)


def declarations(calls: Iterable[Call], described: Json) -> str:
    """Return the types of the module for Node."""
    shapes = described["components"]["schemas"]
    parts = [
        template("sluice.d.ts").replace("// families\n", "\n".join(map(declared_family, families(described))) + "\n")
    ]
    methods = []
    for call in calls:
        arguments = [f"{camel(place)}: string" for place in call.places]
        arguments += [f"fields{'' if call.required else '?'}: {call.request}"] if call.request else []
        text = comment(f"{call.summary}. {call.description}", "  ")
        arguments.append("options?: CallOptions")
        methods.append(f"{text}  {call.name}({', '.join(arguments)}): Promise<{script_type(call.result)}>;")
        if is_paged(call, described):
            kind, name = script_type(item_type(call, described)), call.name.replace("list", "iter", 1)
            methods.append(f'  {name}(fields?: Omit<{call.request}, "cursor">): AsyncGenerator<{kind}>;')
    parts[0] = parts[0].replace("// methods\n", "\n".join(methods) + "\n")
    parts += [declared(name, shape) for name, shape in shapes.items()]
    return "\n".join(parts)


def declared_family(family: str) -> str:
    """Return the type of a family's class."""
    return f"export class {family_class(family)} extends ApiError {{}}"


def declared(name: str, shape: Json) -> str:
    """Return the type of an object or of an enumeration."""
    if not is_object(shape):
        return f"export type {name} = {script_type(shape)};"
    lines = [f"{comment(first_part(shape['description']), '')}export interface {name} {{"]
    for field, schema in shape.get("properties", {}).items():
        mark = "" if field in shape.get("required", ()) else "?"
        lines.append(
            f"{comment(first_part(schema.get('description', '')), '  ')}  {field}{mark}: {script_type(schema)};"
        )
    return "\n".join((*lines, "}"))


def first_part(text: str) -> str:
    """Return a text without its tables."""
    return text.partition("\n\n")[0]


def comment(text: str, indent: str) -> str:
    """Return a comment for editors; '' for no text."""
    return f"{indent}/** {text} */\n" if text else ""


# Postman


def collection(calls: Iterable[Call]) -> Json:
    """Return the collection: a folder a tag, requests with their examples, signed by a script."""
    folders: dict[str, list[Json]] = {}
    for call in calls:
        folders.setdefault(call.tag, []).append(postman_request(call))
    signing = template("postman.js").splitlines()
    return {
        "info": {
            "name": "Sluice API",
            "description": "Set the variables base_url, public_id and secret; each request is signed as it is sent.",
            "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
        },
        "variable": [
            {"key": "base_url", "value": BASE_URL},
            {"key": "public_id", "value": "pk_your_key"},
            {"key": "secret", "value": "", "type": "secret"},
        ],
        "event": [{"listen": "prerequest", "script": {"type": "text/javascript", "exec": signing}}],
        "item": [{"name": tag, "item": items} for tag, items in folders.items()],
    }


def postman_request(call: Call) -> Json:
    """Return one request."""
    path = re.sub(r"\{(\w+)\}", r":\1", call.path).strip("/").split("/")
    request: Json = {
        "method": call.method,
        "description": call.description,
        "header": [],
        "url": {"raw": "{{base_url}}/" + "/".join(path), "host": ["{{base_url}}"], "path": path},
    }
    if call.places:
        request["url"]["variable"] = [{"key": place, "value": ""} for place in call.places]
    if call.request:
        request["header"] = [{"key": "Content-Type", "value": "application/json"}]
        request["body"] = {"mode": "raw", "raw": json.dumps(call.example or {}, indent=2, ensure_ascii=False)}
    return {"name": call.summary, "request": request}


def template(name: str) -> str:
    """Return a template."""
    return (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")


def main() -> None:
    """Write all files."""
    for path, text in files(document()).items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
