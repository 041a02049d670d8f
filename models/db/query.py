"""Builds cold reads of one table by peewee: `Move.select().where(Move.to_network == network).order_by(Move.id).all()`.

A class's columns have the types of its rows for mypy, so it compares conditions and knows each answer's type. Which
reads are built and which are SQL text: docs/decisions/libraries.md. Used by models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Generic, NoReturn, TypeVar, cast

import peewee

from models.db.base import db, is_true, one, rows, value

R = TypeVar("R")
V = TypeVar("V")

_ONE: Final = peewee.SQL("1")
_NUMBER: Final = peewee.SQL("count(*)")


class Condition(peewee.Expression):
    """A comparison with a column. For mypy it is a bool; at run time it has no value."""

    def __bool__(self) -> NoReturn:
        # `and` would keep the last condition alone, and drop the one that names the merchant.
        raise TypeError("a condition has no value before the query runs: join it by & and |, not by and, or, not")

    def __and__(self, other: object) -> Condition:
        return Condition(self, peewee.OP.AND, other)

    def __or__(self, other: object) -> Condition:
        return Condition(self, peewee.OP.OR, other)


def comparison(operator: str) -> Any:
    """Return the method of a column that makes a condition. It raises TypeError for None, which no value equals."""

    def compared(column: object, other: object) -> Condition:
        if other is None:
            raise TypeError("no value equals None: ask is_null()")
        return Condition(column, operator, other)

    return compared


class Query(Generic[R]):
    """A SELECT. It does not change: each method returns another one, and all(), first() and the like run it."""

    def __init__(self, select: Any, made: Callable[[tuple[Any, ...]], R]) -> None:
        self._select, self._made = select, made

    def where(self, *conditions: bool) -> Query[R]:
        """Require these conditions too. True requires nothing: `not network or Move.to_network == network`."""
        wanted = [condition for condition in conditions if condition is not True]
        return Query(self._select.where(*wanted), self._made) if wanted else self

    def group_by(self, *columns: object) -> Query[R]:
        """Make one row of those that have the same values in some columns."""
        return Query(self._select.group_by(*columns), self._made)

    def order_by(self, *columns: object) -> Query[R]:
        """Order the rows by columns, each rising, or falling as descending() has it."""
        return Query(self._select.order_by(*columns), self._made)

    def limit(self, most: int, *, offset: int = 0) -> Query[R]:
        """Return at most that many rows, after passing over `offset` of them."""
        limited = self._select.limit(most)
        return Query(limited.offset(offset) if offset else limited, self._made)

    def all(self) -> list[R]:
        """Run the query and return its rows."""
        return [self._made(row) for row in rows(*_text(self._select))]

    def first(self) -> R | None:
        """Run the query and return its first row, or None."""
        row = one(*_text(self._select.limit(1)))
        return None if row is None else self._made(row)

    def count(self) -> int:
        """Run the query and return the number of its rows. It has neither groups nor a limit."""
        return cast("int", value(*_text(self._select.columns(_NUMBER))))

    def exists(self) -> bool:
        """Run the query and return True if it has a row."""
        return is_true(*_text(self._select.columns(_ONE).limit(1)))


def among(column: V, values: Collection[V]) -> bool:
    """Return the condition that a column has one of some values; none of an empty collection."""
    return cast("bool", Condition(column, peewee.OP.IN, list(values)))


def is_null(column: object) -> bool:
    """Return the condition that a column has no value."""
    return cast("bool", Condition(column, peewee.OP.IS, None))


def comes_before(columns: tuple[object, ...], values: tuple[object, ...]) -> bool:
    """Return the condition that a row is before a place, in the order of some columns."""
    return cast("bool", Condition(peewee.Tuple(*columns), peewee.OP.LT, peewee.Tuple(*values)))


def descending(column: object) -> object:
    """Return the falling order of a column."""
    return cast("peewee.Field", column).desc()


def total(column: int) -> int:
    """Return the sum of a column over each group."""
    return cast("int", peewee.fn.SUM(column))


def number() -> int:
    """Return the number of each group's rows."""
    return cast("int", _NUMBER)


def _text(select: Any) -> tuple[str, list[object]]:
    sql, params = db.get_sql_context().parse(select)
    return sql, params
