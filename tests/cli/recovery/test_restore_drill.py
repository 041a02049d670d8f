"""`make restore-drill`: docs/backup.md is played as printed, and no recipient is paid twice.

Payouts are made after the backup and lost with the database. It comes back from a dump, and from a base backup with the
archive of the log. With PostgreSQL's own programs, a real node, the real actors, and an operator's command line.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from devstack.evm.anvil import Anvil
from devstack.servers import postgres as server_postgres
from devstack.servers.postgres import Postgres
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from models.db import base
from models.db.base import execute, rows
from models.db.migrate import migrate
from models.spends import signing_stops
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.cli.recovery.drill import Drill
from tests.devstack.waiting import wait_for
from tests.peers.databases.owner import OWNER, as_owner, make_owner
from tests.peers.databases.standby import ask
from tests.peers.databases.worker_database import admin

pytestmark = pytest.mark.fresh_database

PAGE: Final = (Path(__file__).parents[3] / "docs" / "backup.md").read_text(encoding="utf-8")
NAME: Final = "sluice"
ON_ETHEREUM: Final = "payouts on ethereum"
QUIET_S: Final = 600
STEP_S: Final = 30


class Machine:
    """PostgreSQL's machine, on which commands of the page run as PostgreSQL's own account."""

    def __init__(self, folder: Path, sluice: CommandLine) -> None:
        self._sluice = sluice
        self.env: dict[str, str] = {"BACKUP": str(folder / "backup")}
        folder.mkdir()
        self._account = server_postgres.server_account()
        (folder / "backup").mkdir(mode=0o700)
        self.own(folder, folder / "backup")

    def own(self, *paths: Path) -> None:
        """Give files to PostgreSQL's account, which a test that is run by root starts it under."""
        for path in paths if self._account is not None else ():
            shutil.chown(path, self._account.uid, self._account.gid)

    def play(self, heading: str, number: int = 0) -> None:
        """Run the commands of a block below a heading of the page, as printed."""
        section = PAGE.partition(f"\n### {heading}\n")[2].partition("\n#")[0]
        block = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)[number]
        for line in block.splitlines():
            if " sluice " in f" {line}":
                self._operate(line)
            else:
                self._run(line)

    def _run(self, line: str) -> None:
        account: dict[str, Any] = {}
        if self._account is not None:
            account = {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}
        path = f"{server_postgres._programs()}:{os.environ['PATH']}"
        env = {"PATH": path, "LC_ALL": "C", **self.env}
        subprocess.run(["bash", "-euc", line], check=True, env=env, timeout=120, cwd="/", **account)

    def _operate(self, line: str) -> None:
        setting, program, *words = shlex.split(line)
        assert (setting, program) == ("DATABASE_URL=$RESTORED_URL", "sluice")
        self._sluice.env["DATABASE_URL"] = self.env["RESTORED_URL"]
        outcome = self._sluice(*words)
        assert outcome.code == 0, outcome


class Restored(Postgres):
    """A cluster whose data folder the page fills, on a machine that has none."""

    def __init__(self, folder: Path, machine: Machine, lost: Postgres, leash: Leash) -> None:
        super().__init__(folder, port=free_port(), leash=leash, durable=False)
        self._machine, self._lost = machine, lost

    def _initialise(self) -> None:
        self._machine.own(self._home)
        self._machine.env["PGDATA"] = str(self._data)
        self._machine.play("From a base backup and the archive")
        self._password_file.write_text(urlsplit(self._lost.url).password or "", encoding="ascii")


@pytest.fixture
def machine(server_folder: Path, sluice: CommandLine, request: pytest.FixtureRequest) -> Iterator[Machine]:
    folder = server_folder / f"machine-{request.node.name}"
    yield Machine(folder, sluice)
    shutil.rmtree(folder)


@pytest.fixture
def cluster(server_folder: Path, leash: Leash) -> Iterator[Postgres]:
    """A cluster of its own, which a test may restart and lose."""
    server = Postgres(server_folder / "own", port=free_port(), leash=leash, durable=False)
    server.start()
    with admin(server) as cursor:
        make_owner(cursor, server)
        cursor.execute(f"CREATE DATABASE {NAME} OWNER {OWNER}")
    yield server
    base.close()
    server.stop()
    shutil.rmtree(server_folder / "own", ignore_errors=True)


@pytest.fixture
def restored(server_folder: Path, leash: Leash, machine: Machine, cluster: Postgres) -> Iterator[Restored]:
    """A cluster that the page fills at its first start."""
    server = Restored(server_folder / "restored", machine, cluster, leash)
    yield server
    base.close()
    server.stop()
    shutil.rmtree(server_folder / "restored", ignore_errors=True)


def opened(url: str, anvil: Callable[..., Anvil], sluice: CommandLine) -> Iterator[Drill]:
    made = Drill(url, anvil)
    made.sluice = sluice
    for world in made.opened():
        assert world is made
        yield made


class Story:
    """Payouts before and after a backup, and the way back by the page's steps."""

    def __init__(self, drill: Drill) -> None:
        self.drill = drill
        names = ("before", "again", "never again", "new")
        self.people: Mapping[str, str] = {name: drill.recipient() for name in names}

    def begin(self) -> None:
        self.drill.pay_out("before", self.people["before"])

    def lose(self) -> None:
        """Pay more, which the backup lacks."""
        self.again = self.drill.pay_out("again", self.people["again"], "20")
        self.never = self.drill.pay_out("never again", self.people["never again"], "30")

    def come_back(self, url: str) -> None:
        """Follow the page from step 4 on: the signer stops, one order is repeated, another one is named."""
        drill = self.drill
        drill.restore(url)
        assert drill.count("spends") == 1, "the backup lacks the last payouts"
        order = drill.order("again", self.people["again"], "20")
        drill.sign()
        assert (drill.stopped(), drill.count("spends")) == (signing_stops.ANOTHER_DATABASE, 1)
        answer = drill.operate("doctor", "--json").json["findings"]
        assert {f["verdict"] for f in answer if f["check"] == "signing"} == {"fail"}

        drill.catch_up()
        drill.sign(3)
        stored = drill.reread(order)
        assert (stored.status, stored.txid) == ("confirmed", self.again.txid)
        # Books and chain differ by the payout that no one has repeated.
        drill.reconcile(4)
        assert drill.frozen_by() == ["recovery", "reconciler"]
        self._explain()

    def _explain(self) -> None:
        """Step 7: list the open departures first, and name the order of one."""
        drill, never = self.drill, self.never
        listed = drill.operate("treasury", "recover", "ethereum", "--json").json
        assert [(u["txid"], u["status"], u["amount"], u["currency"]) for u in listed["departures"]] == [
            (never.txid, "unexplained", "30", "USDT"),
            (self.again.txid, "adopted", "20", "USDT"),
        ]
        words = ("treasury", "recover", "ethereum", "--adopt", never.txid, "--merchant", str(drill.shop))
        assert drill.operate(*words).code == 1, "an order is missing"
        done = drill.operate(*words, "--order-id", "never again", "--yes", "--json").json
        drill.sign(2)
        repeated = drill.order("never again", self.people["never again"], "30")
        assert (str(repeated.id), repeated.status, repeated.txid) == (done["payout"], "confirmed", never.txid)
        assert drill.stopped() == ""

    def end(self) -> None:
        """Step 8: compare, lift the reconciler's freeze by hand, and see payouts leave; nothing is frozen again."""
        drill = self.drill
        drill.bury()
        drill.assert_agreed(3)
        assert drill.frozen_by() == ["reconciler"], "the stop ends by itself, the reconciler's freeze does not"
        assert drill.operate("payouts", "unfreeze", "--network", "ethereum").code == 0
        assert drill.pay_out("new", self.people["new"]).status == "confirmed"
        assert [drill.arrived(to) for to in self.people.values()] == [10, 20, 30, 10]
        for _ in range(QUIET_S // STEP_S):
            execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (STEP_S,))
            drill.advance()
            drill.sign()
            drill.reconcile()
            assert (drill.stopped(), drill.frozen_by()) == ("", [])
        drill.assert_agreed(1)
        audit = drill.operate("audit", "--full", "--json")
        assert (audit.code, audit.json["ok"]) == (0, True)
        assert "nothing is frozen" in drill.operate("payouts", "frozen").out
        settled = rows(
            "SELECT settled_by LIKE 'operator%%', reason FROM unexplained_departures WHERE status = 'adopted'"
            " ORDER BY settled_by"
        )
        assert settled == [(True, "order never again"), (False, "it is a payout")]
        assert acted() == [("departure.adopted", f"ethereum {self.never.txid}"), ("payouts.unfrozen", ON_ETHEREUM)]


@pytest.mark.soak
def test_from_a_dump(
    database: str, anvil: Callable[..., Anvil], sluice: CommandLine, machine: Machine, cluster: Postgres
) -> None:
    for drill in opened(database, anvil, sluice):
        story = Story(drill)
        story.begin()
        machine.env |= {"DATABASE_URL": as_owner(database), "RESTORED_URL": as_owner(cluster.database_url(NAME))}
        machine.play("A dump")
        story.lose()
        machine.play("From a dump")
        story.come_back(cluster.database_url(NAME))
        story.end()


def test_from_a_base_backup_and_the_archive(
    anvil: Callable[..., Anvil], sluice: CommandLine, machine: Machine, cluster: Postgres, restored: Restored
) -> None:
    machine.env |= {"ADMIN_URL": cluster.url}
    machine.play("A base backup and the archive", 0)
    cluster.stop()
    cluster.start()
    migrate(as_owner(cluster.database_url(NAME)))
    machine.play("A base backup and the archive", 1)
    base.connect(cluster.database_url(NAME))
    for drill in opened(cluster.database_url(NAME), anvil, sluice):
        story = Story(drill)
        story.begin()
        kept = archived(cluster, machine)
        story.lose()
        base.close()
        cluster.stop()
        lose_after(kept)
        restored.start()
        wait_for(lambda: ask(restored, "SELECT pg_is_in_recovery()") == (False,))
        machine.env["RESTORED_URL"] = as_owner(restored.database_url(NAME))
        machine.play("From a base backup and the archive", 1)
        story.come_back(restored.database_url(NAME))
        story.end()


def lose_after(kept: Path) -> None:
    """Lose the files that the archive got after another one: they were still on their way."""
    for file in kept.parent.iterdir():
        if file.name > kept.name:
            file.unlink()


def archived(server: Postgres, machine: Machine) -> Path:
    """Return the archive's file with all commits so far, once it is there."""
    (name,) = ask(server, "SELECT pg_walfile_name(pg_switch_wal())")
    file = Path(machine.env["BACKUP"]) / "archive" / name
    wait_for(file.exists)
    return file
