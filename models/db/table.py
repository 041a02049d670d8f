"""Declares a table once: an annotated class, whose instances are the rows that people read.

- A table is a class in models/<noun>/rows.py, or in the one module that knows it: `class WalletRow(Table,
  table="wallets w")`. Its annotations are the columns: name, type, and `| None` for what may be null. Keys, checks and
  defaults are the migrations'. A test compares every class with the migrated schema, and requires a class for every
  table; so a new column needs a migration, and a line here.
- `Big`, `Small`, `Units` and `Numeric` are int in Python, and otherwise called in PostgreSQL.
- `= derived("sql")` is read with the row and is no column; `joins` brings what it needs, and all know the table by the
  alias behind its name; with `made=` of what PostgreSQL tells, once for each row that is read. `= BY_DATABASE` may be
  left out of a new row: the table's default fills it.
- Reading: `WalletRow.read("w.id = %s", …)` and `.first(…)`, or `rows_of(sql)` with `WalletRow.LIST` in it. Cold reads:
  `WalletRow.select().where(WalletRow.id == …)`, see models.db.query.
- Writing: `WalletRow(id=…, …).write("ON CONFLICT DO NOTHING")`, whose parameters mypy knows; `.stored()` gives the row
  back as it is stored, `WalletRow.write_all([…])` and `.store_all([…])` write several. SQL text for the rest.

Hot statements are text, as peewee's builder costs too much there: docs/decisions/libraries.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from uuid import UUID

import peewee
import psycopg2
from psycopg2 import extensions
from psycopg2.extras import Json

from models.db.base import Params, db, execute, rows
from models.db.query import Query, comparison

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

Big = Annotated[int, "bigint"]
Small = Annotated[int, "smallint"]
Units = Annotated[int, "units"]
Numeric = Annotated[int, "numeric"]

BY_DATABASE: Final[Any] = object()
"""The value of a column that a new row leaves to its table."""

_REQUIRED: Final = object()
_TYPES: Final[dict[object, str]] = {
    UUID: "uuid",
    str: "text",
    int: "integer",
    bool: "boolean",
    bytes: "bytea",
    datetime: "timestamp with time zone",
    timedelta: "interval",
    Decimal: "numeric",
    list[str]: "text[]",
    list[UUID]: "uuid[]",
    dict[str, Any]: "jsonb",
    list[dict[str, Any]]: "jsonb",
    list[list[Any]]: "jsonb",
    dict[str, int]: "jsonb",
}


def _bytes(text: Any, cursor: Any) -> bytes | None:
    return None if text is None else bytes(psycopg2.BINARY(text, cursor))


extensions.register_type(extensions.new_type((17,), "BYTES", _bytes))


class _Derived(NamedTuple):
    sql: str
    made: Callable[[Any], object] | None


def derived(sql: str, *, made: Callable[[Any], object] | None = None) -> Any:
    """Declare what is read with a row and is no column of its table. made: makes the value of what the SQL gives."""
    return _Derived(sql, made)


class _Accessor:
    """Gives a class its column. A row holds its values itself, where they hide this and cost no call."""

    def __init__(self, _model: object, field: Column, name: str) -> None:
        self._field, self._name = field, name

    def __get__(self, row: object, _model: object = None) -> Column:
        if row is not None:
            raise AttributeError(f"{self._name} is not known before the row is read")
        return self._field


class Column(peewee.Field):
    """A column, by the name that PostgreSQL has for its type."""

    accessor_class = _Accessor
    __hash__ = peewee.Field.__hash__
    __eq__: ClassVar[Any] = comparison(peewee.OP.EQ)
    __ne__: ClassVar[Any] = comparison(peewee.OP.NE)
    __lt__: ClassVar[Any] = comparison(peewee.OP.LT)
    __le__: ClassVar[Any] = comparison(peewee.OP.LTE)
    __gt__: ClassVar[Any] = comparison(peewee.OP.GT)
    __ge__: ClassVar[Any] = comparison(peewee.OP.GTE)

    def __init__(self, kind: str, *, null: bool = False) -> None:
        super().__init__(null=null)
        self.kind = kind

    def __sql__(self, ctx: Any) -> Any:
        """Write the column with its table's alias, as SQL text does."""
        return ctx.sql(peewee.Entity(self.model.ALIAS, self.name))

    def db_value(self, value: Any) -> Any:
        """Refuse money that is not int, bool included: PostgreSQL would accept what is not exact."""
        if self.kind == "units" and value is not None and type(value) is not int:
            raise TypeError(f"units are int, not {type(value).__name__}")
        return Json(value) if self.kind == "jsonb" and value is not None else value


def _column(hint: Any) -> Column:
    """Return the column that an annotation means."""
    is_null = NoneType in get_args(hint)
    kind = next(arg for arg in get_args(hint) if arg is not NoneType) if is_null else hint
    if get_origin(kind) is Annotated:
        return Column(get_args(kind)[1], null=is_null)
    return Column("text" if get_origin(kind) is Literal else _TYPES[kind], null=is_null)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Table(peewee.Model):
    """Base of the rows. They do not change, and two are equal whose values are."""

    LIST: ClassVar[str]
    """The columns, and what is derived with them, as a SELECT or RETURNING names them."""
    SELECT: ClassVar[str]
    """Reads rows; conditions follow it."""
    TABLE: ClassVar[str] = ""
    ALIAS: ClassVar[str]
    """What statements call the table."""
    # The table with its alias, and with what the derived columns need.
    _plain: ClassVar[Any]
    _joined: ClassVar[Any]
    # The beginning of a row's INSERT; the SQL after its values may use the table's alias.
    _into: ClassVar[str]
    _names: ClassVar[tuple[str, ...]]
    # The columns that a new row may be given, with their defaults.
    _given: ClassVar[dict[str, object]]
    _required: ClassVar[frozenset[str]]
    # What its table fills.
    _left: ClassVar[frozenset[str]]
    # What makes a value of what was read.
    _made: ClassVar[tuple[tuple[str, Callable[[Any], object]], ...]]

    class Meta:
        database = db
        primary_key = False
        table_function = staticmethod(lambda model: model.TABLE)

    def __init_subclass__(cls, *, table: str, joins: str = "") -> None:
        """Make the annotations columns, before peewee looks for them."""
        cls.TABLE, _, alias = table.partition(" ")
        cls.ALIAS = alias or cls.TABLE
        cls._into = f"INSERT INTO {cls.TABLE} AS {alias}" if alias else f"INSERT INTO {cls.TABLE}"
        columns = {name: vars(cls).get(name, _REQUIRED) for name in cls.__annotations__}
        hints = get_type_hints(cls, include_extras=True)
        texts = {
            name: f"{value.sql} AS {name}" if isinstance(value, _Derived) else f"{cls.ALIAS}.{name}"
            for name, value in columns.items()
        }
        cls._names = tuple(columns)
        cls._given = {name: value for name, value in columns.items() if not isinstance(value, _Derived)}
        cls._required = frozenset(name for name, value in columns.items() if value is _REQUIRED)
        cls._left = frozenset(name for name, value in columns.items() if value is BY_DATABASE)
        cls._made = tuple(
            (name, value.made) for name, value in columns.items() if isinstance(value, _Derived) and value.made
        )
        cls.LIST = ", ".join(texts.values())
        cls.SELECT = f"SELECT {cls.LIST} FROM {table} {joins}"
        cls._plain, cls._joined = peewee.SQL(table), peewee.SQL(f"{table} {joins}")
        for name in columns:
            setattr(cls, name, _column(hints[name]) if name in cls._given else _Accessor(cls, Column(""), name))

    def __init__(self, **values: object) -> None:
        """Make a new row. Raises TypeError for missing and for unknown columns."""
        fields = self._given | values
        wrong = (self._required - values.keys()) | (values.keys() - self._given.keys())
        if wrong:
            raise TypeError(f"{type(self).__name__} lacks, or does not know: {', '.join(sorted(wrong))}")
        for name in self._left - values.keys():
            del fields[name]
        vars(self).update(fields)

    @classmethod
    def rows_of(cls, sql: str, params: Params = ()) -> list[Self]:
        """Return the rows that a statement gives, which names LIST."""
        return [cls._of(values) for values in rows(sql, params)]

    @classmethod
    def read(cls, condition: str, params: Params = ()) -> list[Self]:
        """Return the rows that a condition names, which may go on with ORDER BY, LIMIT and FOR UPDATE."""
        return cls.rows_of(f"{cls.SELECT} WHERE {condition}", params)

    @classmethod
    def first(cls, condition: str, params: Params = ()) -> Self | None:
        """Return the first of them, or None."""
        matches = cls.read(condition, params)
        return matches[0] if matches else None

    # Not peewee's own query, which returns Any and knows nothing of steps and lost connections.
    @overload  # type: ignore[override]
    @classmethod
    def select(cls) -> Query[Self]: ...

    @overload
    @classmethod
    def select(cls, only: A, /) -> Query[A]: ...

    @overload
    @classmethod
    def select(cls, first: A, second: B, /) -> Query[tuple[A, B]]: ...

    @overload
    @classmethod
    def select(cls, first: A, second: B, third: C, /) -> Query[tuple[A, B, C]]: ...

    @classmethod
    def select(cls, *columns: object) -> Query[Any]:
        """Begin a query for whole rows, for the values of one column, or for tuples of several.

        For cold reads alone: models.db.query.
        """
        if not columns:
            return Query(peewee.Select([cls._joined], [peewee.SQL(cls.LIST)]), cls._of)
        return Query(peewee.Select([cls._plain], columns), tuple if len(columns) > 1 else itemgetter(0))

    @classmethod
    def _of(cls, values: tuple[Any, ...]) -> Self:
        row = object.__new__(cls)
        fields = row.__dict__
        fields.update(zip(cls._names, values, strict=True))
        for name, made in cls._made:
            fields[name] = made(fields[name])
        return row

    def write(self, then: str = "", params: Params = ()) -> int:
        """Insert this row, with what is to follow the values; return how many were written."""
        return self.write_all([self], then, params)

    def stored(self, then: str = "", params: Params = ()) -> Self | None:
        """Insert this row and return it with what the database gave it; None if what follows the values kept it out."""
        written = self.store_all([self], then, params)
        return written[0] if written else None

    @classmethod
    def write_all(cls, new: Sequence[Self], then: str = "", params: Params = ()) -> int:
        """Insert rows that are alike in what they leave to the table, in one statement; return how many were."""
        if not new:
            return 0
        sql, values = cls._insertion(new)
        return execute(f"{sql} {then}", (*values, *params))

    @classmethod
    def store_all(cls, new: Sequence[Self], then: str = "", params: Params = ()) -> list[Self]:
        """Write as write_all() does, and return them as stored() does, in no order."""
        if not new:
            return []
        sql, values = cls._insertion(new)
        return cls.rows_of(f"{sql} {then} RETURNING {cls.LIST}", (*values, *params))

    @classmethod
    def _insertion(cls, new: Sequence[Self]) -> tuple[str, list[object]]:
        """Return the INSERT of some rows and its parameters."""
        fields = {name: cls._meta.fields[name] for name in vars(new[0])}
        marks = f"({', '.join(['%s'] * len(fields))})"
        return (
            f"{cls._into} ({', '.join(fields)}) VALUES {', '.join([marks] * len(new))}",
            [field.db_value(vars(row)[name]) for row in new for name, field in fields.items()],
        )

    def but(self, **values: object) -> Self:
        """Return this row with other values."""
        row = object.__new__(type(self))
        row.__dict__.update(vars(self) | values)
        return row

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: a row does not change")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(next(iter(vars(self).values())))

    def __str__(self) -> str:
        return str(vars(self))
