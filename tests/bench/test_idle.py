"""The usage of an idle gateway is read from its processes and its servers."""

import os
from pathlib import Path

import psycopg2
import pytest

from actors.queue.link import RedisLink
from bench.idle import PROCFILE, Usage, connections, pss_mb, running, usages
from devstack.supervise.files import write_json
from devstack.supervise.procfile import read_procfile


def test_the_memory_of_a_process_is_its_share_and_that_of_an_ended_one_nothing() -> None:
    ended = 2**22 + 1

    assert 1 < pss_mb([os.getpid(), ended]) < 10_000
    assert pss_mb([ended]) == 0


def test_processes_of_the_procfile_count_and_servers_do_not(tmp_path: Path) -> None:
    first, second = list(read_procfile(PROCFILE))[:2]
    write_json(tmp_path / "pids.json", {"postgres": [1], first: [2, 3], second: []})

    assert running(tmp_path) == {first: [2, 3]}


def test_the_processor_time_is_that_between_two_readings() -> None:
    assert usages({"web": 100.0}, {"web": 160.0}, {"web": 7.0}, 60.0) == [Usage(cpu_ms=1.0, memory_mb=7.0)]


@pytest.mark.usefixtures("database")
def test_connections_of_others_are_listed_by_name_and_the_bench_s_own_are_not(
    database_url: str, redis_url: str
) -> None:
    before = connections(database_url, redis_url)
    session = psycopg2.connect(database_url, application_name="tested")
    link = RedisLink(redis_url, client_name="tested")
    try:
        with session.cursor() as cursor:
            cursor.execute("SELECT  1")
        link.run([("PING",)])
        after = connections(database_url, redis_url)
    finally:
        session.close()
        link.close()

    assert [(each.store, each.last) for each in after if each.process == "tested"] == [
        ("PostgreSQL", "SELECT 1"),
        ("Redis", "ping"),
    ]
    assert len(after) == len(before) + 2
