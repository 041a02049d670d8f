"""Cold reads that peewee builds: the same rows as by SQL text, in the same transaction."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.ids import uuid7
from models.db.base import db, transaction
from models.db.query import Query, among, comes_before, descending, is_null, number, total
from models.db.table import BY_DATABASE, Big, Table, derived
from models.merchants.rows import Merchant
from models.treasury.rows import Move, Topup

AT = datetime(2030, 1, 1, tzinfo=UTC)


class Mark(
    Table,
    table="address_marks m",
    joins="LEFT JOIN address_marks o ON (o.marked_at, o.ordinal) = (m.marked_at, m.ordinal + 1)",
):
    family: str
    marked_at: datetime = BY_DATABASE
    ordinal: Big
    later: str | None = derived("o.family")


def write(*names: str) -> None:
    Mark.write_all([Mark(family=name, marked_at=AT, ordinal=at) for at, name in enumerate(names)])


def families() -> Query[str]:
    return Mark.select(Mark.family).where(Mark.marked_at == AT)


@pytest.mark.usefixtures("database")
def test_whole_rows_come_as_by_text() -> None:
    write("a", "b", "c")

    falling = Mark.select().where(Mark.marked_at == AT, Mark.ordinal >= 1).order_by(descending(Mark.ordinal))

    assert falling.all() == Mark.read("m.marked_at = %s AND m.ordinal >= 1 ORDER BY m.ordinal DESC", (AT,))
    assert [(row.family, row.later) for row in falling.all()] == [("c", None), ("b", "c")]
    assert falling.limit(1, offset=1).all() == [falling.all()[1]]
    assert falling.first() == falling.all()[0]
    assert falling.where(Mark.family == "z").first() is None
    assert falling.where(Mark.family == "c").exists()
    assert not falling.where(Mark.family == "z").exists()


@pytest.mark.usefixtures("database")
def test_some_columns_come_as_values() -> None:
    write("a", "b", "b2")
    by_family = families().order_by(Mark.family)
    numbers = Mark.select(Mark.marked_at, number(), total(Mark.ordinal)).where(Mark.marked_at == AT)

    assert by_family.all() == ["a", "b", "b2"]
    assert Mark.select(Mark.family, Mark.ordinal).where(Mark.marked_at == AT, Mark.ordinal == 2).all() == [("b2", 2)]
    assert by_family.where(among(Mark.family, ["a", "z"])).all() == ["a"]
    assert by_family.where(among(Mark.family, [])).all() == []
    assert by_family.where((Mark.family == "a") | (Mark.ordinal > 1), Mark.family != "a").all() == ["b2"]
    assert by_family.where(comes_before((Mark.marked_at, Mark.ordinal), (AT, 1))).all() == ["a"]
    assert by_family.where(is_null(Mark.ordinal)).all() == []
    assert families().where(Mark.ordinal > 0).count() == 2
    assert numbers.group_by(Mark.marked_at).all() == [(AT, 3, 3)]


@pytest.mark.usefixtures("database")
def test_a_condition_that_is_true_anyway_requires_nothing() -> None:
    write("a", "b")
    wanted: str | None = None

    assert families().where(wanted is None or Mark.family == wanted).count() == 2
    wanted = "b"
    assert families().where(wanted is None or Mark.family == wanted).count() == 1


@pytest.mark.usefixtures("database")
def test_a_query_runs_in_the_open_transaction() -> None:
    def write_and_leave() -> None:
        with transaction():
            write("a")
            assert families().all() == ["a"]
            raise LookupError

    with pytest.raises(LookupError):
        write_and_leave()
    assert families().all() == []


def test_no_condition_is_lost_without_a_sign() -> None:
    """`a and b` would be b alone, and so would a chain: the merchant would be missing from the query."""
    for lost in (
        lambda: Merchant.id == uuid7() and Merchant.name == "x",
        lambda: (Merchant.id == uuid7()) & (Merchant.name == "x") and Merchant.name == "y",
        lambda: not Merchant.name == "x",  # noqa: SIM201 - the mistake itself
        lambda: 1 < Topup.block_height < 5,
    ):
        with pytest.raises(TypeError, match="join it by & and"):
            lost()
    with pytest.raises(TypeError, match="ask is_null"):
        _ = Merchant.id == None  # noqa: E711 - the mistake itself


def test_money_in_a_condition_is_int() -> None:
    for units in (1.0, True):
        with pytest.raises(TypeError, match="units are int"):
            Move.select().where(Move.units == units).all()


def test_a_column_is_written_with_the_alias_of_its_table() -> None:
    assert db.get_sql_context().parse(Merchant.name) == ('"m"."name"', [])
    assert db.get_sql_context().parse(Move.txid) == ('"treasury_moves"."txid"', [])
