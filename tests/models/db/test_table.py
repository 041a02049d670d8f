"""Every table has a class that declares it as it is, and rows are values."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

import models
from core.ids import uuid7
from models.db.base import rows
from models.db.table import BY_DATABASE, Big, Column, Table, Units, derived

_COLUMNS = """
SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname, a.attname,
    format_type(a.atttypid, NULL), NOT a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname IN ('public', 'signer') AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
"""

Columns = set[tuple[str, str, bool]]


def declared() -> list[type[Table]]:
    for module in pkgutil.walk_packages(models.__path__, "models."):
        importlib.import_module(module.name)
    return [table for table in Table.__subclasses__() if table.__module__.startswith("models.")]


def columns(model: type[Table]) -> Columns:
    return {(field.name, field.kind, field.null) for field in model._meta.sorted_fields}


@pytest.mark.usefixtures("database")
def test_classes_and_tables_have_the_same_columns() -> None:
    stored: dict[str, Columns] = {}
    for table, *column in rows(_COLUMNS):
        name, kind, is_null = column
        stored.setdefault(table, set()).add((name, kind, is_null))

    assert stored
    assert {model.TABLE: columns(model) for model in declared()} == stored


def test_a_table_has_one_class() -> None:
    names = [model.TABLE for model in declared()]

    assert sorted(names) == sorted(set(names))


class Thing(Table, table="merchants t"):
    id: UUID
    units: Units
    place: Big | None = None
    created: int = BY_DATABASE
    twice: int = derived("2 * t.units")


def test_a_class_declares_how_it_is_read() -> None:
    assert Thing.LIST == "t.id, t.units, t.place, t.created, 2 * t.units AS twice"
    assert columns(Thing) == {
        ("id", "uuid", False), ("units", "units", False), ("place", "bigint", True), ("created", "integer", False),
    }  # fmt: skip


def test_a_new_row_has_given_values_and_defaults() -> None:
    key = uuid7()
    thing = Thing(id=key, units=5)

    assert vars(thing) == {"id": key, "units": 5, "place": None}
    for values in ({"id": key}, {"id": key, "units": 5, "other": 1}, {"id": key, "units": 5, "twice": 10}):
        with pytest.raises(TypeError, match=r"Thing lacks, or does not know: (units|other|twice)$"):
            Thing(**values)
    for unknown in ("created", "twice"):
        with pytest.raises(AttributeError, match=f"{unknown} is not known"):
            getattr(thing, unknown)


def test_rows_are_compared_by_value() -> None:
    key = uuid7()
    thing = Thing(id=key, units=5)

    assert thing == Thing(id=key, units=5) != thing.but(units=6)
    assert {thing: 1}[Thing(id=key, units=5)] == 1
    assert "'units': 5" in str(thing)
    with pytest.raises(AttributeError, match="units: a row does not change"):
        thing.units = 6  # type: ignore[misc]


def test_units_accept_only_int() -> None:
    assert [Column("units").db_value(value) for value in (0, 10**77, None)] == [0, 10**77, None]
    for value in (1.0, "1", Decimal(1), True, b"1"):
        with pytest.raises(TypeError, match="units are int"):
            Column("units").db_value(value)


class Mark(Table, table="address_marks m"):
    family: str
    marked_at: datetime = BY_DATABASE
    ordinal: Big
    next: int = derived("m.ordinal + 1")
    words: tuple[str, ...] = derived("ARRAY[m.family, m.ordinal::text]", made=tuple)


@pytest.mark.usefixtures("database")
def test_rows_are_written_one_by_one_or_together() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    known, *others = (Mark(family=f"f{n}", marked_at=at, ordinal=n) for n in range(3))
    upsert = "ON CONFLICT (family, marked_at) DO UPDATE SET ordinal = m.ordinal + %s"

    assert known.write() == 1
    assert known.write("ON CONFLICT DO NOTHING") == 0
    assert Mark.write_all([known, *others], upsert, (5,)) == 3
    assert [(mark.family, mark.ordinal) for mark in Mark.read("m.marked_at = %s ORDER BY m.family", (at,))] == [
        ("f0", 5), ("f1", 1), ("f2", 2),
    ]  # fmt: skip
    assert Mark.write_all([]) == 0


@pytest.mark.usefixtures("database")
def test_a_written_row_is_returned_as_stored() -> None:
    new = Mark(family="f", ordinal=7)

    stored = new.stored()
    assert stored is not None
    assert (stored.family, stored.ordinal, stored.next, stored.words) == ("f", 7, 8, ("f", "7"))
    assert Mark.first("m.family = 'f'") == stored
    assert stored.words is stored.words, "the class is compiled once"
    assert new.but(marked_at=stored.marked_at).stored("ON CONFLICT DO NOTHING") is None
