"""A text that is one of a few in the code is one of the same few in its table."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from models.db.base import rows
from models.ledger import ledger
from tests.models.db.test_table import declared

CHECKS = """
SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname, a.attname,
    pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND k.conkey = ARRAY[a.attnum] WHERE k.contype = 'c'
"""


def kinds_of(hint: Any) -> set[str]:
    """Return the texts of a Literal, or of one that may be missing."""
    parts = [hint, *get_args(hint)] if get_origin(hint) is not Literal else [hint]
    return {text for part in parts if get_origin(part) is Literal for text in get_args(part)}


def checked() -> dict[tuple[str, str], set[str]]:
    """Return the texts that the checks of each column admit."""
    return {
        (table, name): set(re.findall(r"'([^']*)'::text", check))
        for table, name, check in rows(CHECKS)
        if " ANY (ARRAY[" in check or re.search(r"= '[^']*'::text", check)
    }


@pytest.mark.usefixtures("database")
def test_a_table_takes_the_kinds_that_the_code_knows() -> None:
    admitted = checked()
    known = {
        (model.TABLE, name): kinds
        for model in declared()
        for name, hint in get_type_hints(model).items()
        if name in model._meta.fields and (kinds := kinds_of(hint))
    }

    assert known
    assert {column: admitted.get(column) for column in known} == known


@pytest.mark.usefixtures("database")
def test_an_account_has_a_kind_of_the_ledger() -> None:
    names = {name for name, value in vars(ledger).items() if isinstance(value, str) and re.fullmatch(r"[A-Z_]+", name)}
    kinds = {getattr(ledger, name) for name in names if re.fullmatch(r"[a-z_]+", getattr(ledger, name))}

    assert checked()["accounts", "kind"] == kinds
