"""PostgreSQL's own state: whether it takes writes, and how many connections it has left."""

from __future__ import annotations

from contextlib import closing

import psycopg2
import pytest

from actors.upkeep.clock import watch_clock
from models.db import base, server

pytestmark = pytest.mark.usefixtures("database")


def make_old(seconds: int) -> None:
    base.execute("UPDATE write_mark SET written_at = clock_timestamp() - make_interval(secs => %s)", (seconds,))


def test_a_tick_writes_the_row_whose_age_shows_that_writes_work() -> None:
    make_old(3600)
    assert server.writing().age_s > 3599

    watch_clock()

    assert server.writing().age_s < 60
    assert not server.writing().is_read_only


def fail_on_a_full_disk() -> None:
    base.execute(
        "DO $$ BEGIN RAISE EXCEPTION 'could not write to file: No space left on device'"
        " USING ERRCODE = 'disk_full', HINT = 'more'; END $$"
    )


def test_a_young_row_is_believed_and_an_old_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    make_old(31)
    with monkeypatch.context() as patch:
        patch.setattr(server, "take_space", fail_on_a_full_disk)
        assert server.refusal() == "PostgreSQL refuses a write: could not write to file: No space left on device"
    assert server.writing().age_s > server.WRITE_AGE_MAX_S

    assert server.refusal() == ""
    assert server.writing().age_s < server.WRITE_AGE_MAX_S
    monkeypatch.setattr(server, "take_space", fail_on_a_full_disk)
    assert server.refusal() == "", "nothing is written while the row is young"


def test_a_read_only_server_is_named_at_once() -> None:
    base.execute("SET default_transaction_read_only = on")

    assert server.refusal() == "PostgreSQL is read-only"


def test_a_write_asks_for_space_in_the_tablespace_of_the_tables(database_url: str) -> None:
    """A limit of nothing shows that a file would be written; the limit itself refuses no gateway."""
    with closing(psycopg2.connect(database_url)) as session, session.cursor() as cursor:
        cursor.execute("SELECT set_config('work_mem', %s, true)", (server.SPACE_MEMORY,))
        cursor.execute("SET LOCAL temp_file_limit = 0")
        with pytest.raises(psycopg2.errors.ConfigurationLimitExceeded):
            cursor.execute(f"SELECT count(*) FROM generate_series(1, {server.SPACE_ROWS})")

    make_old(3600)
    base.execute("SET temp_file_limit = 0")
    server.note_write()
    assert server.writing().age_s < 60


def test_places_are_those_of_the_nearest_limit(database_url: str) -> None:
    nearest, shared = server.places()
    assert 0 < nearest.used < nearest.limit == shared

    name = database_url.rpartition("/")[2]
    base.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 7')
    try:
        nearest, shared = server.places()
    finally:
        base.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT -1')

    assert (nearest.limit, shared, nearest.left) == (7, 7, 7 - nearest.used)
