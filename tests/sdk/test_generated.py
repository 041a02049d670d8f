"""The libraries are those that the API's description makes, and leave no operation out."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

import sluice_client
from core.errors import ERRORS
from sdk import generate
from sluice_client import errors
from tests.sdk.shops import snake

DESCRIBED = generate.document()
OPERATIONS = {call.name: call for call in generate.read_calls(DESCRIBED)}
MADE = generate.files(DESCRIBED)


@pytest.mark.parametrize("path", MADE)
def test_a_file_is_as_the_description_makes_it(path: str) -> None:
    """Run `make sdk` after a change of the API."""
    assert (generate.ROOT / path).read_text(encoding="utf-8") == MADE[path]


def test_no_operation_is_left_out() -> None:
    described = {o["operationId"] for methods in DESCRIBED["paths"].values() for o in methods.values()}
    node = (generate.ROOT / "node/sluice.js").read_text()
    requests = [item["name"] for folder in json.loads(MADE["postman.json"])["item"] for item in folder["item"]]

    assert described - OPERATIONS.keys() == {"getOpenapi"}
    assert [name for name in OPERATIONS if not hasattr(sluice_client.Sluice, snake(name))] == []
    assert [name for name in OPERATIONS if not hasattr(sluice_client.AsyncSluice, snake(name))] == []
    assert [name for name in OPERATIONS if f"  {name}(" not in node] == []
    assert len(requests) == len(OPERATIONS)


def test_each_code_has_the_class_of_its_family() -> None:
    for code in ERRORS:
        kind = errors.family_of(code)
        assert kind.__name__ == f"{code.partition('.')[0].capitalize()}Error"
        assert issubclass(kind, errors.ApiError)
    assert errors.family_of("future.code") is errors.ApiError


def test_calls_that_move_money_are_repeated_only_by_key_or_by_the_same_bytes() -> None:
    repeats = {name: call.repeat for name, call in OPERATIONS.items()}

    assert {name for name in repeats if repeats[name] == "key"} >= {"createPayment", "createPayout", "refundPayment"}
    assert repeats["createPayoutLink"] == repeats["createPayoutLinks"] == "bytes"
    for name in (
        "approvePayout",
        "cancelPayout",
        "claimPayoutLink",
        "resolvePayment",
        "registerWebhook",
        "testWebhook",
    ):
        assert repeats[name] == "no"
    reading = [name for name in repeats if repeats[name] == "read"]
    assert [name for name in reading if not re.match("get|list|calculate|render|set", name)] == []


def test_the_library_imports_nothing_but_the_standard_library() -> None:
    for file in (generate.ROOT / "python/sluice_client").glob("*.py"):
        imported = {
            (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        assert imported <= {"sluice_client", *__import__("sys").stdlib_module_names}, file
    node = (generate.ROOT / "node/sluice.js").read_text()
    assert re.findall(r'from "(.*)"', node) == ["node:crypto"]


def test_every_method_explains_its_fields() -> None:
    text = inspect.getdoc(sluice_client.Sluice.create_payment) or ""

    assert "Create a payment." in text
    assert "lifetime: Seconds until the payment expires" in text
    assert Path(generate.ROOT, "python/sluice_client/py.typed").exists()
