"""The servers lose nothing if they are killed, and refuse connections without the password."""

import contextlib
import os
import signal
from pathlib import Path

import psycopg2
import pytest
import redis

from devstack.servers.postgres import Postgres
from devstack.servers.valkey import Valkey
from devstack.supervise.leash import MARK, Leash
from devstack.supervise.ports import free_port
from devstack.supervise.process import StartError
from devstack.supervise.program import Program
from devstack.supervise.watchdog import carriers
from tests.devstack.waiting import wait_for


def kill(server: Program) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: server.child is not None and server.child.exit_code() is not None)


def restart(server: Program) -> None:
    """As the supervisor does: the killed server's own children may still be on their way out."""
    for _ in range(20):
        with contextlib.suppress(StartError):
            server.start()
            return
    raise AssertionError("it did not come back")


@contextlib.contextmanager
def cursor(url: str):  # noqa: ANN201
    with contextlib.closing(psycopg2.connect(url)) as session:
        session.autocommit = True
        with session.cursor() as opened:
            yield opened


def test_postgresql_keeps_every_commit_through_sigkill(open_folder: Path, leash: Leash) -> None:
    server = Postgres(open_folder, port=free_port(), leash=leash)
    server.start()
    with cursor(server.url) as sql:
        sql.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000)")
        sql.execute("SHOW fsync")
        assert sql.fetchone() == ("on",)

    kill(server)
    restart(server)

    with cursor(server.url) as sql:
        sql.execute("SELECT count(*) FROM kept")
        assert sql.fetchone() == (1000,)
    server.stop()


def test_postgresql_wants_its_password(open_folder: Path, leash: Leash) -> None:
    server = Postgres(open_folder, port=free_port(), leash=leash, durable=False)
    server.start()

    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(server.url.replace("sluice:", "sluice:not"))
    assert (open_folder / "postgres.password").stat().st_mode & 0o777 == 0o600
    server.stop()


def test_postgresql_listens_on_loopback_alone(open_folder: Path, leash: Leash) -> None:
    server = Postgres(open_folder, port=free_port(), leash=leash, durable=False)
    server.start()
    with cursor(server.url) as sql:
        sql.execute("SELECT current_setting('listen_addresses'), current_setting('unix_socket_directories')")
        assert sql.fetchone() == ("127.0.0.1", "")
    server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account")
def test_root_runs_postgresql_from_a_closed_folder(tmp_path: Path, leash: Leash) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = Postgres(closed, port=free_port(), leash=leash, durable=False)
    server.start()
    assert server.pid is not None
    assert Path(f"/proc/{server.pid}").stat().st_uid != 0
    with cursor(server.url) as sql:
        sql.execute("CREATE TABLE old ()")
    server.stop()

    # Given the folder was removed, then a new stack there has nothing of the old one.
    (closed / "postgres.password").unlink()
    again = Postgres(closed, port=free_port(), leash=leash, durable=False)
    again.start()
    with cursor(again.url) as sql:
        sql.execute("SELECT to_regclass('old')")
        assert sql.fetchone() == (None,)
    again.stop()


def test_an_initialisation_that_was_cut_short_begins_again(open_folder: Path, leash: Leash) -> None:
    half = open_folder / "postgres"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    server = Postgres(open_folder, port=free_port(), leash=leash, durable=False)
    server.start()

    assert server.is_ready()
    server.stop()


def test_data_of_another_version_is_named_and_not_touched(open_folder: Path, leash: Leash) -> None:
    server = Postgres(open_folder, port=free_port(), leash=leash, durable=False)
    server.start()
    server.stop()
    (open_folder / "postgres" / "PG_VERSION").write_text("9\n")

    with pytest.raises(StartError, match="PostgreSQL 9"):
        Postgres(open_folder, port=free_port(), leash=leash).start()
    assert (open_folder / "postgres" / "base").is_dir()


def test_a_server_bears_the_mark_of_its_leash_for_as_long_as_it_runs(open_folder: Path, leash: Leash) -> None:
    valkey = Valkey(open_folder / "redis", port=free_port(), password="secret", leash=leash, durable=False)
    for server in (valkey, Postgres(open_folder, port=free_port(), leash=leash, durable=False)):
        server.start()

        assert server.pid in carriers(f"{MARK}={leash.mark}".encode())
        server.stop()


def test_valkey_keeps_every_write_through_sigkill(tmp_path: Path, leash: Leash) -> None:
    server = Valkey(tmp_path / "redis", port=free_port(), password="secret", leash=leash)
    server.start()
    with contextlib.closing(redis.Redis.from_url(server.url)) as client:
        for number in range(100):
            client.rpush("kept", number)

    kill(server)
    restart(server)

    with contextlib.closing(redis.Redis.from_url(server.url)) as client:
        assert client.llen("kept") == 100
    server.stop()


def test_valkey_wants_its_password(tmp_path: Path, leash: Leash) -> None:
    server = Valkey(tmp_path / "redis", port=free_port(), password="secret", leash=leash, durable=False)
    server.start()

    with (
        contextlib.closing(redis.Redis.from_url(server.url.replace(":secret@", ""))) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()
    assert b"secret" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    server.stop()
