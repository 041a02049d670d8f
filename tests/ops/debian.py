"""A Debian of its own on this machine: systemd as its first process, and a root that keeps its changes over a restart.

It has the machine's network, so its services take the usual ports. Needs root and debootstrap.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.ops.programs import program

# Set by `make deploy-drill`.
WANTED: Final = "DEPLOY_DRILL"
SUITE: Final = "bookworm"
INCLUDED: Final = "systemd,systemd-sysv,dbus,ca-certificates"
AUTHORITIES: Final = Path("/usr/local/share/ca-certificates")
START_LIMIT_S: Final = 60.0
BLOCK_LIMIT_S: Final = 600.0
# The folder of the layers, and the root of the packages.
_BOOT: Final = """
set -eu
R=$1/root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/changes,workdir=$1/work" "$R"
mount -t proc proc "$R/proc"
mount -t sysfs -o ro sysfs "$R/sys"
mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup" || mount --rbind /sys/fs/cgroup "$R/sys/fs/cgroup"
for place in run dev tmp; do mount -t tmpfs tmpfs "$R/$place"; done
for name in null zero full random urandom tty; do touch "$R/dev/$name"; mount --bind "/dev/$name" "$R/dev/$name"; done
mkdir "$R/dev/pts" "$R/dev/shm"
mount -t devpts devpts "$R/dev/pts" -o newinstance,ptmxmode=0666
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
cd "$R"
# Not by chroot, inside which no user namespace can be made.
pivot_root . mnt
umount --lazy /mnt
# As systemd does it on a machine: credentials reach a service by propagation.
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""
_SPACES: Final = ("--mount", "--pid", "--uts", "--ipc", "--cgroup")


def bare_root(cache: Path) -> Path:
    """Return the folder of a Debian without further packages; made once."""
    if WANTED not in os.environ:
        pytest.skip("it takes the machine's usual ports: make deploy-drill runs it")
    if os.geteuid() != 0:
        pytest.skip("a Debian of its own needs root")
    folder = cache / f"debian-{SUITE}"
    if not folder.exists():
        draft = cache / f"draft-{uuid4()}"
        subprocess.run(
            [program("debootstrap"), "--variant=minbase", f"--include={INCLUDED}", SUITE, str(draft)], check=True
        )
        # Those of the machine: its way to the world may need them.
        if AUTHORITIES.is_dir():
            shutil.copytree(AUTHORITIES, draft / AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
            subprocess.run([program("chroot"), str(draft), "update-ca-certificates"], check=True)
        draft.rename(folder)
    return folder


class Debian:
    """One machine in one folder."""

    def __init__(self, folder: Path, bare: Path) -> None:
        self._folder, self._bare = folder, bare
        for name in ("root", "changes", "work"):
            (folder / name).mkdir()
        self.files = folder / "changes"
        (self.files / "etc").mkdir()
        shutil.copy("/etc/resolv.conf", self.files / "etc" / "resolv.conf")
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Start systemd, and return once it takes orders."""
        command = ["/bin/sh", "-c", _BOOT, "boot", str(self._folder), str(self._bare)]
        with (self._folder / "boot.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program("unshare"), *_SPACES, "--fork", "--kill-child", "--propagation=private", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_LIMIT_S
        while self._asked("systemctl is-system-running").strip() not in {"running", "degraded"}:
            assert self._process.poll() is None, (self._folder / "boot.log").read_text()
            assert time.monotonic() < deadline, "systemd does not start"
            time.sleep(0.5)

    def stop(self) -> None:
        """End every process at once, as if the power had failed."""
        if self._process is not None:
            for pid in self._first():
                os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def _first(self) -> list[int]:
        """Return the id of systemd; nothing before it runs."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in children.read_text().split()] if children.exists() else []

    def inside(self, *command: str) -> list[str]:
        """Return the command line that runs a command in this machine."""
        (pid,) = self._first()
        return [program("nsenter"), "--target", str(pid), *_SPACES, *command]

    def _asked(self, script: str) -> str:
        if not self._first():
            return ""
        return subprocess.run(
            self.inside("/bin/sh", "-c", script), capture_output=True, text=True, check=False, cwd="/"
        ).stdout

    @contextmanager
    def shell(self, **variables: str) -> Iterator[Shell]:
        """Open a shell of its superuser."""
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            **variables,
        }
        log = self._folder / f"shell-{uuid4()}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.inside("/bin/bash"),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd="/",
            )
        try:
            yield Shell(process, log)
        finally:
            process.kill()
            process.communicate()


class Shell:
    """An open shell: its variables and folder stay from one script to the next."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def run(self, script: str) -> str:
        """Run a script and return its output. After `set -e` the shell ends where a command fails."""
        mark, begun = f"done-{uuid4()}", self._log.stat().st_size
        assert self._process.stdin is not None
        self._process.stdin.write(f"{script}\necho {mark} $?\n".encode())
        self._process.stdin.flush()
        deadline = time.monotonic() + BLOCK_LIMIT_S
        while mark not in (output := self._log.read_bytes()[begun:].decode(errors="replace")):
            assert self._process.poll() is None, f"{script}\n\n{output}"
            assert time.monotonic() < deadline, f"{script}\n\n{output}"
            time.sleep(0.2)
        text, _, code = output.partition(mark)
        assert code.split()[:1] == ["0"], f"{script}\n\n{output}"
        return text
