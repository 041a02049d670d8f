"""The description is valid OpenAPI 3.1 and says what the gateway does, being made of the same rows and types."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.openapi.document import READINGS, describe
from api.routes import ENDPOINTS
from core.errors import ERRORS
from core.webhooks.events import Event
from devstack.servers.npm import find_node
from models.webhooks import views
from tests.api.conftest import BASE_URL, Client

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".sluice" / "cache"
DOCUMENT = describe(ENDPOINTS, base_url=BASE_URL)
ROUTES = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS}
# API reference, "Endpoints".
EXPECTED = {
    ("POST", "/v1/payment"),
    ("POST", "/v1/payment/info"),
    ("POST", "/v1/payment/history"),
    ("POST", "/v1/payment/qr"),
    ("POST", "/v1/payment/resend"),
    ("POST", "/v1/payment/resolve"),
    ("POST", "/v1/payment/refund"),
    ("POST", "/v1/payment/send-email"),
    ("POST", "/v1/payment/timeline"),
    ("POST", "/v1/wallet/blocked-address-refund"),
    ("POST", "/v1/payment/services"),
    ("POST", "/v1/payment/accepted"),
    ("POST", "/v1/payment/discount"),
    ("POST", "/v1/payment/accuracy"),
    ("GET", "/v1/pay/{invoice_id}"),
    ("POST", "/v1/pay/{invoice_id}/select"),
    ("GET", "/v1/currencies"),
    ("POST", "/v1/exchange-rate/list"),
    ("POST", "/v1/ip-allowlist"),
    ("POST", "/v1/balance"),
    ("POST", "/v1/transfer/to-personal"),
    ("POST", "/v1/payout/approve"),
    ("POST", "/v1/payout/cancel"),
    ("POST", "/v1/payment/batch"),
    ("POST", "/v1/payout/batch"),
    ("POST", "/v1/refund/batch"),
    ("POST", "/v1/batch/info"),
    ("POST", "/v1/payout"),
    ("POST", "/v1/payout/calculate"),
    ("POST", "/v1/payout/info"),
    ("POST", "/v1/payout/history"),
    ("POST", "/v1/payout/services"),
    ("POST", "/v1/payout/mass"),
    ("POST", "/v1/payout/fee-settings"),
    ("POST", "/v1/auto-withdraw"),
    ("POST", "/v1/payout/link"),
    ("POST", "/v1/payout/link/batch"),
    ("POST", "/v1/payout/link/list"),
    ("POST", "/v1/payout/link/info"),
    ("POST", "/v1/payout/link/cancel"),
    ("POST", "/v1/payment/link"),
    ("POST", "/v1/payment/link/list"),
    ("POST", "/v1/payment/link/info"),
    ("POST", "/v1/payment/link/toggle"),
    ("GET", "/v1/link/{link_id}"),
    ("POST", "/v1/link/{link_id}/checkout"),
    ("GET", "/v1/claim/{token}"),
    ("POST", "/v1/claim/{token}"),
    ("POST", "/v1/split/rule"),
    ("POST", "/v1/split/rule/list"),
    ("POST", "/v1/split/rule/delete"),
    ("POST", "/v1/split/config/get"),
    ("POST", "/v1/split/config/set"),
    ("POST", "/v1/wallet"),
    ("POST", "/v1/wallet/block"),
    ("POST", "/v1/wallet/info"),
    ("POST", "/v1/wallet/qr"),
    ("POST", "/v1/webhooks"),
    ("POST", "/v1/webhooks/deliveries"),
    ("POST", "/v1/webhooks/redeliver"),
    ("POST", "/v1/webhooks/test"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
}


def operation(method: str, path: str) -> Any:
    return DOCUMENT["paths"][path][method.lower()]


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def test_the_document_is_valid_and_served(client: Client) -> None:
    answer = client.simulate_get("/openapi.json")

    OpenAPIV31SpecValidator(answer.json).validate()
    assert answer.json["openapi"] == "3.1.0"
    assert answer.json["servers"] == [{"url": BASE_URL, "description": "This gateway."}]


def test_every_endpoint_is_described_and_nothing_else() -> None:
    described = {(m.upper(), path) for path, methods in DOCUMENT["paths"].items() for m in methods}

    assert described == set(ROUTES) == EXPECTED


def test_no_file_of_routes_is_forgotten() -> None:
    files = (path for path in (ROOT / "api/routes").rglob("*.py") if "ENDPOINTS: Final = (" in path.read_text())
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    names_there = {endpoint.name for name in names for endpoint in importlib.import_module(name).ENDPOINTS}

    assert names_there == {endpoint.name for endpoint in ENDPOINTS}


def test_operation_names_are_unique() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_every_error_code_of_an_endpoint_is_described_under_its_status(method: str, path: str) -> None:
    responses = operation(method, path)["responses"]

    described: dict[str, int] = {}
    for status, response in responses.items():
        if "$ref" in response:
            shared = resolved(response)
            schema = shared["content"]["application/json"]["schema"]
            for shape in (shape for shape in schema.get("oneOf", [schema]) if shape["$ref"].endswith("/Error")):
                codes = shape["properties"]["error"]["properties"]["code"]["enum"]
                described |= dict.fromkeys(codes, int(status))
                assert all(f"`{code}`" in shared["description"] for code in codes)
    assert described == {error.code: error.status for error in ROUTES[method, path].all_errors()}
    assert set(described) <= set(ERRORS)


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_signed_endpoints_describe_their_signature(method: str, path: str) -> None:
    security = operation(method, path).get("security", DOCUMENT["security"])

    signed = ROUTES[method, path].rights is not None
    assert security == ([{"publicId": [], "timestamp": [], "signature": []}] if signed else [])
    assert set(DOCUMENT["components"]["securitySchemes"]) == {"publicId", "timestamp", "signature"}
    assert "HMAC-SHA256" in DOCUMENT["components"]["securitySchemes"]["signature"]["description"]


def test_headers_are_described_where_they_are_sent() -> None:
    created, read = operation("POST", "/v1/payment"), operation("GET", "/v1/pay/{invoice_id}")

    assert {"Idempotent-Replayed", "X-Differing-Fields"} <= created["responses"]["200"]["headers"].keys()
    assert "Retry-After" in resolved(created["responses"]["503"])["headers"]
    assert {p["$ref"].rsplit("/", 1)[1] for p in created["parameters"]} == {"RequestId", "IdempotencyKey"}
    assert "ETag" in read["responses"]["200"]["headers"]
    assert set(read["responses"]["304"]["headers"]) == {"ETag", "Cache-Control"}


def examples() -> dict[str, list[Any]]:
    """Return the schemas and examples of each route and event."""
    collected: dict[str, list[Any]] = {}
    for method, path in ROUTES:
        described = operation(method, path)
        bodies = (
            [described["requestBody"], *described["responses"].values()]
            if "requestBody" in described
            else [*described["responses"].values()]
        )
        for content in (c for body in bodies for c in body.get("content", {}).values()):
            collected.setdefault(f"{method} {path}", []).append((content["schema"], content["example"]))
    for event, described in DOCUMENT["webhooks"].items():
        content = described["post"]["requestBody"]["content"]["application/json"]
        collected[event] = [(content["schema"], content["example"])]
    return collected


@pytest.mark.parametrize(
    ("name", "shown"), examples().items(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_example_is_one(name: str, shown: list[Any]) -> None:
    assert shown, name
    for schema, example in shown:
        validator(schema).validate(example)


def test_every_request_and_every_answer_has_examples() -> None:
    """Errors have the register's texts; an answer without a body, such as 304, needs no example."""
    bodies = [
        (f"{method} {path}", body)
        for method, path in ROUTES
        for body in (operation(method, path).get("requestBody", {}), *operation(method, path)["responses"].values())
    ]
    contents = [(name, content) for name, body in bodies for content in body.get("content", {}).values()]

    assert [name for name, content in contents if "example" not in content] == []
    assert len(contents) > 1.8 * len(ROUTES)


def test_every_event_is_described_with_its_body_and_the_headers_that_sign_it() -> None:
    described = DOCUMENT["webhooks"]

    assert set(described) == set(get_args(Event))
    for event, path in described.items():
        operation = path["post"]
        assert {p["$ref"].rsplit("/", 1)[1] for p in operation["parameters"]} == {
            "X-Webhook-Event", "X-Webhook-Id", "X-Webhook-Timestamp", "X-Webhook-Signature",
        }  # fmt: skip
        content = operation["requestBody"]["content"]["application/json"]
        validator(content["schema"]).validate(views.trial(event))


@pytest.mark.parametrize(
    ("owner", "field", "item"),
    [
        ("CreatePaymentBatch", "payments", "CreatePayment"),
        ("CreatePayoutBatch", "payouts", "CreatePayout"),
        ("CreateRefundBatch", "refunds", "CreateRefund"),
        ("MassPayout", "payouts", "CreatePayout"),
        ("CreatePayoutLinks", "links", "CreatePayoutLink"),
    ],
)
def test_items_that_are_read_one_by_one_refer_to_their_type(owner: str, field: str, item: str) -> None:
    described = DOCUMENT["components"]["schemas"][owner]["properties"][field]

    assert described["items"] == {"$ref": f"#/components/schemas/{item}"}


def walk(schema: Any) -> Iterator[Any]:
    """Yield each object of a description, itself first; not those of its examples."""
    if isinstance(schema, list):
        for item in schema:
            yield from walk(item)
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key not in {"example", "examples"}:
                yield from walk(value)


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from references(item)
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for value in schema.values():
            yield from references(value)


def test_whatever_is_referred_to_is_there() -> None:
    known = {f"#/components/{kind}/{name}" for kind, named in DOCUMENT["components"].items() for name in named}

    assert set(references(DOCUMENT)) <= known


def test_description_and_types_allow_the_same() -> None:
    schema = DOCUMENT["components"]["schemas"]["CreatePayment"]

    assert schema["required"] == ["amount", "currency"]
    assert schema["properties"]["subtract"]["maximum"] == 100
    assert schema["properties"]["subtract"]["deprecated"] is True
    assert schema["properties"]["order_id"]["maxLength"] == 255
    check = validator({"$ref": "#/components/schemas/CreatePayment"})
    assert check.is_valid({"amount": "1", "currency": "USD", "unknown": 1})
    for bad in (
        {"amount": 1},
        {"amount": "1e3"},
        {"theme": "blue"},
        {"order_id": "refund:1"},
        {"url_return": "javascript:x"},
    ):
        assert not check.is_valid({"amount": "1", "currency": "USD"} | bad), bad


def properties(schema: Any, owner: str) -> Iterator[tuple[str, Any]]:
    """Walk through a schema, as deep as it goes, and yield each property with its name."""
    if isinstance(schema, list):
        for item in schema:
            yield from properties(item, owner)
    if isinstance(schema, dict):
        for name, value in schema.get("properties", {}).items():
            yield f"{owner}.{name}", value
        for key, value in schema.items():
            if key not in {"example", "examples"}:
                yield from properties(value, owner)


def resolved(schema: Any) -> Any:
    """Return the component that a reference names."""
    _, _, kind, name = schema["$ref"].split("/")
    return DOCUMENT["components"][kind][name]


def meaning(schema: Any) -> str:
    """Return a property's description: its own, or that of the object that it refers to."""
    own: str = schema.get("description", "")
    return own or (meaning(resolved(schema)) if "$ref" in schema else "")


def kinds(schema: Any) -> set[str]:
    own = schema.get("type", [])
    return {own} if isinstance(own, str) else set(own)


PROPERTIES = [
    each
    for holder in (DOCUMENT["components"]["schemas"], DOCUMENT["paths"], DOCUMENT["webhooks"])
    for name, schema in holder.items()
    for each in properties(schema, name)
]
# The unit or format that a description must name, by a property's name or type. An amount names its coin.
UNITS = (
    (r"_at$|^at$", r"ISO 8601|Unix seconds"),
    (r"percent", r"[Pp]ercent"),
    (r"amount$|^threshold$", r"currency|coin"),
)
COUNTED = (
    r"(?i)seconds|hours|percent|status|confirmations|blocks|decimal places|places?\b|items|links|payments"
    r"|deposits|rules|attempts|quotes|always"
)


def test_every_property_has_a_description() -> None:
    """A field without: give its type a `Meta(description=…)` in the schemas, or use a type of core/http/fields."""
    assert [name for name, schema in PROPERTIES if not re.fullmatch(r"(?s)\S.*\.", meaning(schema))] == []


def test_every_moment_number_and_amount_has_its_format_or_its_unit() -> None:
    names = [
        name
        for name, schema in PROPERTIES
        for pattern, unit in UNITS
        if re.search(pattern, name.rsplit(".", 1)[1]) and not re.search(unit, meaning(schema))
    ]
    counted = [n for n, s in PROPERTIES if kinds(s) & {"integer", "number"} and not re.search(COUNTED, meaning(s))]

    assert names + counted == []


# The document is read by generators of clients, which write a class for each shape and read it whole at each start.
DOCUMENT_BYTES_MAX = 300_000
SHAPES_MAX = 250


def test_generators_of_clients_read_a_short_document() -> None:
    assert len(json.dumps(DOCUMENT, ensure_ascii=False, separators=(",", ":")).encode()) <= DOCUMENT_BYTES_MAX
    refused = DOCUMENT["components"]["responses"]
    assert len(refused) > 50
    others = DOCUMENT | {"components": DOCUMENT["components"] | {"responses": {}}}
    shapes = [s for s in walk(others) if "$ref" not in s and (s.get("type") == "object" or "enum" in s)]
    assert len(shapes) <= SHAPES_MAX


def test_no_optional_field_has_a_default_that_makes_it_required() -> None:
    assert [schema for schema in walk(DOCUMENT["components"]) if "default" in schema and "type" in schema] == []
    for kind in (endpoint.request for endpoint in ENDPOINTS if endpoint.request is not None):
        described = DOCUMENT["components"]["schemas"][kind.__name__]
        for field in msgspec.structs.fields(kind):
            if field.default not in (None, msgspec.NODEFAULT):
                text = described["properties"][field.name]["description"]
                assert re.search(r"[Dd]efault|[Ww]ithout", text), f"{kind.__name__}.{field.name}"


def test_words_are_at_the_property_and_not_inside_a_choice() -> None:
    """A generator of clients reads no description there."""
    choices = [choice for schema in walk(DOCUMENT) for choice in schema.get("anyOf", ())]

    assert [choice for choice in choices if "description" in choice or "deprecated" in choice] == []


def test_patterns_are_of_ecma_262() -> None:
    patterns = {schema["pattern"] for schema in walk(DOCUMENT["components"]) if isinstance(schema.get("pattern"), str)}
    script = "for (const each of JSON.parse(require('fs').readFileSync(0))) new RegExp(each, 'u')"

    subprocess.run(
        [find_node(os.environ, CACHE), "-e", script], input=json.dumps(sorted(patterns)), text=True, check=True
    )
    assert len(patterns) > 5
    assert DOCUMENT["components"]["schemas"]["CreatePayment"]["properties"]["payer_email"]["format"] == "email"


def test_creations_lead_to_their_readings() -> None:
    names = {endpoint.name: endpoint for endpoint in ENDPOINTS}
    for endpoint in (endpoint for endpoint in ENDPOINTS if endpoint.name in READINGS):
        links = operation(endpoint.method, endpoint.path)["responses"]["200"]["links"]
        (link,) = links.values()
        ((field, place),) = link["requestBody"].items()
        assert field in names[link["operationId"]].request.__struct_fields__
        assert place.rpartition("/")[2] in endpoint.examples["result"]
    assert len(READINGS) == 9


def test_every_tag_says_what_its_endpoints_do() -> None:
    assert [tag["name"] for tag in DOCUMENT["tags"] if not tag["description"].endswith(".")] == []
    assert {tag["name"] for tag in DOCUMENT["tags"]} == {*(endpoint.tag for endpoint in ENDPOINTS), "Events"}
    assert [e.name for e in ENDPOINTS if not e.description] == []


def test_types_are_called_by_their_names_and_not_by_the_files_that_hold_them() -> None:
    assert [name for name in DOCUMENT["components"]["schemas"] if "." in name] == []


def test_no_text_of_the_description_names_a_machine() -> None:
    text = str(DOCUMENT)

    assert not re.search(r"localhost|127\.0\.0\.1", text)
    assert str(ROOT) not in text
