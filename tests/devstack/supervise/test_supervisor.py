"""Who dies is started again, and the file of pids says who runs."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.supervise.app import App
from devstack.supervise.leash import Leash
from devstack.supervise.supervisor import Supervisor
from tests.devstack.waiting import is_running, wait_for

PATH = "/usr/bin:/bin"


class Watched:
    """A supervisor in a folder, what it said, and steps until something holds."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.lines: list[str] = []
        self.folder, self.env = folder, env
        self.supervisor = Supervisor(folder / "pids.json", say=self.lines.append)

    def run(self, name: str, command: str) -> App:
        app = App(name, command, env={**self.env, "PATH": PATH}, cwd=self.folder, log=self.folder / f"{name}.log")
        self.supervisor.watch(app, app.launch())
        self.supervisor.step()
        return app

    def pids(self) -> dict[str, list[int]]:
        answer: dict[str, list[int]] = json.loads((self.folder / "pids.json").read_text())
        return answer

    def step_until(self, condition: Callable[[], bool], *, limit_s: float = 60) -> None:
        def stepped() -> bool:
            self.supervisor.step()
            return condition()

        wait_for(stepped, limit_s=limit_s)


@pytest.fixture
def watched(tmp_path: Path, leash: Leash) -> Iterator[Watched]:
    watched_ = Watched(tmp_path, leash.env)
    yield watched_
    watched_.supervisor.stop(list(watched_.pids()))


def test_a_killed_program_runs_again_under_a_new_pid(watched: Watched) -> None:
    app = watched.run("web", "sleep 300")
    before = app.pid
    assert watched.pids() == {"web": [before]}

    os.kill(before, signal.SIGKILL)

    watched.step_until(lambda: watched.pids()["web"] not in ([], [before]))
    assert watched.lines[0] == "web was killed by SIGKILL; starting it again in 0.2 s"
    assert watched.lines[1] == f"web runs again, pid {watched.pids()['web'][0]}"


def test_a_program_is_not_listed_while_it_is_down(watched: Watched) -> None:
    app = watched.run("web", "sleep 300")

    os.kill(app.pid or 0, signal.SIGKILL)

    watched.step_until(lambda: watched.pids() == {"web": []})


def test_workers_are_listed_after_their_master(watched: Watched) -> None:
    app = watched.run("web", "sh -c 'sleep 300 & sleep 300 & wait'")

    watched.step_until(lambda: len(watched.pids()["web"]) == 3)

    assert watched.pids()["web"][0] == app.pid


def test_a_program_that_keeps_dying_waits_longer_each_time(watched: Watched) -> None:
    watched.run("web", "false")

    watched.step_until(lambda: watched.supervisor.deaths("web") == 3)

    waits = [line.rsplit(" in ", 1)[1] for line in watched.lines if "starting it again" in line]
    assert waits == ["0.2 s", "0.4 s", "0.8 s"]
    assert "web ended with code 1" in watched.lines[0]


def test_a_program_that_ran_steadily_restarts_at_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devstack.supervise.supervisor.STEADY_S", 0.0)
    watched.run("web", "false")

    watched.step_until(lambda: len([line for line in watched.lines if "starting" in line]) == 3)

    assert watched.supervisor.deaths("web") == 1


def test_stop_lets_every_program_finish(watched: Watched) -> None:
    watched.run("a", "sh -c 'trap \"sleep 0.3; echo finished; exit\" TERM; echo up; while :; do sleep 0.05; done'")
    log = watched.folder / "a.log"
    wait_for(lambda: "up" in log.read_text())

    watched.supervisor.stop(["a"])

    assert "finished" in log.read_text()
    assert watched.pids() == {}


def test_stop_asks_all_at_once(watched: Watched) -> None:
    names = ["a", "b", "c", "d"]
    # Each ends when all have been asked.
    asked = " && ".join(f"[ -e {name}.asked ]" for name in names)
    for name in names:
        ending = f"touch {name}.asked; until {asked}; do sleep 0.05; done; echo finished; exit"
        watched.run(name, f"sh -c 'trap \"{ending}\" TERM; echo up; while :; do sleep 0.05; done'")
    logs = [watched.folder / f"{name}.log" for name in names]
    wait_for(lambda: all("up" in log.read_text() for log in logs))

    watched.supervisor.stop(names)

    assert all("finished" in log.read_text() for log in logs)


def test_a_stopped_program_still_ends_when_asked(watched: Watched) -> None:
    app = watched.run("web", "sh -c 'trap \"echo finished; exit\" TERM; echo up; while :; do sleep 0.05; done'")
    log = watched.folder / "web.log"
    wait_for(lambda: "up" in log.read_text())
    os.killpg(app.pid or 0, signal.SIGSTOP)

    watched.supervisor.stop(["web"])

    assert "finished" in log.read_text()


def test_stopping_kills_the_workers_of_a_master_that_forgot_them(watched: Watched) -> None:
    watched.run("web", "sh -c 'trap exit TERM; sleep 300 & wait'")
    watched.step_until(lambda: len(watched.pids()["web"]) == 2)
    worker = watched.pids()["web"][1]

    watched.supervisor.stop(["web"])

    wait_for(lambda: not is_running(worker))


def test_the_file_of_pids_is_replaced_and_never_half_written(watched: Watched) -> None:
    watched.run("web", "sleep 300")
    before = (watched.folder / "pids.json").stat().st_ino

    watched.run("chain", "sleep 300")

    assert (watched.folder / "pids.json").stat().st_ino != before
    assert sorted(path.name for path in watched.folder.glob("*.json")) == ["pids.json"]
