import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devstack.supervise.leash import MARK, Leash
from devstack.supervise.process import Child
from devstack.supervise.watchdog import carriers
from tests.devstack.waiting import is_running, wait_for

LOG = Path("/dev/null")

# Starts a child, which starts a grandchild in a session of its own, and says its mark; then waits to be killed.
HOLDER = """
import sys, time
from pathlib import Path
from devstack.supervise.leash import Leash
from devstack.supervise.process import Child
leash = Leash()
env = {**leash.env, "PATH": "/usr/bin:/bin"}
Child("sh", ["/bin/sh", "-c", "setsid sleep 300 & exec sleep 300"], env=env, log=Path("/dev/null"))
print(leash.mark, flush=True)
time.sleep(300)
"""


def test_after_sigkill_of_the_holder_nothing_is_left() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert holder.stdout is not None
    mark = f"{MARK}={holder.stdout.readline().decode().strip()}".encode()
    wait_for(lambda: len(carriers(mark)) == 2)

    holder.kill()
    holder.wait()

    wait_for(lambda: not carriers(mark))
    holder.stdout.close()


def test_release_stops_remaining_processes_even_if_they_ignore_the_signal(tmp_path: Path) -> None:
    leash = Leash()
    stubborn = "trap '' INT TERM; echo ready; while :; do sleep 1; done"
    log = tmp_path / "log"
    child = Child("sh", ["/bin/sh", "-c", stubborn], env={**leash.env, "PATH": "/usr/bin:/bin"}, log=log)
    wait_for(lambda: "ready" in log.read_text())

    leash.release()

    wait_for(lambda: child.exit_code() == -signal.SIGKILL)


def test_a_stopped_process_is_stopped_for_good() -> None:
    leash = Leash()
    child = Child("sleep", ["/bin/sleep", "300"], env=leash.env, log=LOG)
    os.kill(child.pid, signal.SIGSTOP)

    leash.release()

    wait_for(lambda: child.exit_code() is not None)


def test_processes_without_the_mark_are_left_alone() -> None:
    leash, other = Leash(), Leash()
    stranger = Child("sleep", ["/bin/sleep", "300"], env=other.env, log=LOG)

    leash.release()

    assert is_running(stranger.pid)
    other.release()
    wait_for(lambda: stranger.exit_code() is not None)


def test_a_dead_watchdog_is_replaced() -> None:
    leash = Leash()
    assert leash.check() is False
    os.kill(leash._watchdog.pid, signal.SIGKILL)
    wait_for(leash.check)
    child = Child("sleep", ["/bin/sleep", "300"], env=leash.env, log=LOG)

    leash.release()

    wait_for(lambda: child.exit_code() is not None)


def test_the_watchdog_holds_the_folders_lock_until_its_work_is_done(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    leash = Leash(inherit=(descriptor,))
    os.close(descriptor)

    with path.open() as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        leash.release()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
