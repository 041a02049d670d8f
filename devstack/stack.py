"""Runs the whole gateway on one machine: servers, chains, processes, accounts. Used by `dev` and `demo`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import psycopg2

from core.catalogue.catalogue import Network, load_catalogue
from devstack import chains, clock
from devstack.chains import DevelopmentChain, Site
from devstack.environment import app_environment, settings_environment
from devstack.plan import CACHE, ROOT, Plan
from devstack.running import state
from devstack.servers.logins import make_logins, url_of
from devstack.servers.postgres import Postgres
from devstack.servers.valkey import Valkey
from devstack.story.accounts import Accounts, ensure_accounts
from devstack.story.console import Console
from devstack.story.desk import Desk
from devstack.story.identity import load_identity
from devstack.supervise import readiness
from devstack.supervise.app import App
from devstack.supervise.data_folder import DataFolder
from devstack.supervise.files import write_json
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK, KeptPorts, is_free
from devstack.supervise.process import StartError
from devstack.supervise.procfile import read_procfile
from devstack.supervise.program import Program
from devstack.supervise.supervisor import Supervisor
from models.db import base, migrate
from models.deposits import cursors

PORT_PREFERRED: Final = 8000
STEP_S: Final = 0.1
READY_LIMIT_S: Final = 90.0
# A process that dies this often before the stack has ever served will not recover.
EARLY_DEATHS_MAX: Final = 4


class Stack:
    """A stack: boot, step, stop, all in one thread. All that it started ends with it, even if it is killed."""

    accounts: Accounts

    def __init__(self, plan: Plan, *, inherited: Mapping[str, str], console: Console) -> None:
        self.plan = plan
        self._inherited = inherited
        self._console = console
        self._folder = DataFolder(plan.data)
        self._leash = Leash(inherit=(self._folder.lock_fd,))
        self._supervisor = Supervisor(self._folder.path / "pids.json", say=console.warn)
        self._ports = KeptPorts(self._folder.path / "ports.json")
        self._identity = load_identity(self._folder.path)
        self._apps: list[str] = []
        self.chains: list[DevelopmentChain] = []
        self._servers: list[Program] = []
        self._desk: Desk | None = None
        self._has_own_database = False
        self._logins: Mapping[str, str] = {}
        self.port = self._web_port()
        self.base_url = f"http://{LOOPBACK}:{self.port}"

    def boot(self) -> None:
        """Start everything and return once the stack serves. Raises StartError."""
        self._forget_ready()
        networks = [load_catalogue("development").networks[code] for code in self.plan.networks]
        # If a program is missing, the stack ends before it has made a database.
        programs = self._find_programs({network.family for network in networks})
        self._start_servers()
        self._migrate()
        with self._console.step("chains") as step:
            self._start_chains(networks, programs)
            step.detail = ", ".join(f"{chain.network} {chain.url}" for chain in self.chains)
        self._desk = Desk(self.chains, advance=functools.partial(clock.advance_all, self.rpc_urls()))
        self._desk.open()
        self._start_apps()
        with self._console.step("merchants") as step:
            self.accounts = ensure_accounts(self._folder.path, self._identity.secret_keys)
            step.detail = "Demo shop (keys main, approver), Other shop"
        with self._console.step("processes") as step:
            self._await_serving()
            step.detail = " ".join(self._apps)
        for path in self._ready_files():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, self.ready())

    def run_until(self, done: Callable[[], bool]) -> None:
        """Keep everything running until done() is true."""
        while not done():
            self._step()
            time.sleep(STEP_S)

    def stop(self) -> None:
        """End the processes, then the servers, then all other processes with our mark."""
        (self._folder.path / state.FILE_NAME).unlink(missing_ok=True)
        if self._desk is not None:
            self._desk.close()
        base.close()
        with self._console.step("stopped") as step:
            self._supervisor.stop(self._apps)
            self._supervisor.stop([server.name for server in self._servers])
            step.detail = "everything"
        self.release()

    def release(self) -> None:
        """Kill the processes that still run, and release the folder."""
        self._leash.release()
        self._folder.close()

    def ready(self) -> dict[str, object]:
        """Return the ready file's content, with which a program uses this stack."""
        return {
            "base_url": self.base_url,
            "pay_url": self.base_url,
            "public_id": self.accounts.merchant.public_id,
            "secret": self.accounts.merchant.secret,
            "approver": vars(self.accounts.approver),
            "other_merchant": vars(self.accounts.other_merchant),
            "rpc": self.rpc_urls(),
            "tokens": {chain.network: chain.tokens for chain in self.chains},
            "buyer_key": self._identity.buyer_key,
            "database_url": self.database_url,
            "redis_url": self.redis_url,
            "webhook_allow_private": True,
            "env": self.environment(),
        }

    def rpc_urls(self) -> dict[str, str]:
        """Return the chains' addresses by network."""
        return {chain.network: chain.url for chain in self.chains}

    def environment(self) -> dict[str, str]:
        """Return the environment of every process but the signer, which also has the wallet."""
        return settings_environment(
            base_url=self.base_url,
            port=self.port,
            database_url=self.database_url,
            redis_url=self.redis_url,
            rpc_urls=self.rpc_urls(),
            identity=self._identity,
            desk_url="" if self._desk is None else self._desk.url,
        )

    def _ready_files(self) -> list[Path]:
        """Return the files that exist while the stack serves: the folder's own, and the one that was asked for."""
        own = self._folder.path / state.FILE_NAME
        return [own] if self.plan.ready_file is None else [own, self.plan.ready_file]

    def _forget_ready(self) -> None:
        for path in self._ready_files():
            path.unlink(missing_ok=True)

    def _web_port(self) -> int:
        wanted = self.plan.port
        if wanted:
            if not is_free(wanted):
                raise StartError(f"port {wanted} is taken: --port 0 finds a free one")
            return self._ports.take("web", wanted=wanted)
        usual = PORT_PREFERRED if wanted is None and is_free(PORT_PREFERRED) else 0
        return self._ports.take("web", wanted=usual)

    def _start_servers(self) -> None:
        folder, ports = self._folder.path, self._ports
        if given := self._inherited.get("DATABASE_URL"):
            self.database_url = given
        else:
            with self._console.step("postgresql") as step:
                postgres = Postgres(folder, port=ports.take("postgres"), leash=self._leash)
                self._start(postgres)
                self.database_url = postgres.url
                self._has_own_database = True
                step.detail = postgres.place
        if given := self._inherited.get("REDIS_URL"):
            self.redis_url = given
        else:
            with self._console.step("valkey") as step:
                password = self._identity.redis_password
                valkey = Valkey(folder / "redis", port=ports.take("redis"), password=password, leash=self._leash)
                self._start(valkey)
                self.redis_url = valkey.url
                step.detail = valkey.place

    def _migrate(self) -> None:
        with self._console.step("migrations") as step:
            try:
                applied = migrate.migrate(self.database_url)
            except psycopg2.OperationalError as error:
                raise StartError(f"DATABASE_URL cannot be used: {error}") from error
            if self._has_own_database:
                self._logins = make_logins(self.database_url)
            step.detail = f"{len(applied)} applied, up to {applied[-1]}" if applied else "none pending"
        base.connect(self.database_url, application_name="sluice-dev")
        if self._has_own_database:
            # The chains stopped with the stack, so no payment was missed and no scan has to wait.
            cursors.note_looks()

    def _find_programs(self, families: Collection[str]) -> dict[str, Path]:
        programs = {}
        for family in sorted(families):
            development = chains.development(family)
            with self._console.step(development.name) as step:
                programs[family] = development.find(self._inherited, CACHE)
                step.detail = str(programs[family])
        return programs

    def _start_chains(self, networks: Sequence[Network], programs: Mapping[str, Path]) -> None:
        for network in networks:
            site = Site(
                network=network,
                pairs=load_catalogue("development").pairs_on(network.code),
                program=programs[network.family],
                folder=self._folder.path / "chains" / network.code,
                port=self._ports.take(f"chain:{network.code}"),
                leash=self._leash,
                buyer_key=self._identity.buyer_key,
            )
            chain = chains.development(network.family).chain(site)
            self._start(chain)
            self.chains.append(chain)
        for chain in self.chains:
            chain.equip()

    def _start(self, server: Program) -> None:
        server.start()
        if server.child is not None:
            self._servers.append(server)
            self._supervisor.watch(server, server.child)

    def _start_apps(self) -> None:
        for name, command in read_procfile(ROOT / self.plan.procfile).items():
            env = app_environment(
                name,
                inherited=self._inherited,
                settings=self._settings_of(name),
                leash=self._leash,
                mnemonic=self._identity.mnemonic,
            )
            app = App(name, command, env=env, cwd=ROOT, log=self._folder.logs / f"{name}.log")
            self._apps.append(name)
            self._supervisor.watch(app, app.launch())

    def _settings_of(self, name: str) -> dict[str, str]:
        """Return the settings of one process: the common ones, and a login with only the rights it needs."""
        variables = self.environment()
        return variables | {"DATABASE_URL": url_of(name, self._logins)} if self._logins else variables

    def _await_serving(self) -> None:
        waiting = dict(readiness.conditions(self.base_url, self.plan.networks))
        deadline = time.monotonic() + READY_LIMIT_S
        while waiting:
            self._step()
            self._give_up_on_failing()
            waiting = {name: holds for name, holds in waiting.items() if not readiness.holds(holds)}
            if waiting and time.monotonic() > deadline:
                raise StartError(f"not serving after {READY_LIMIT_S:.0f} s: {', '.join(waiting)}; see {self.logs}")
            time.sleep(STEP_S / 2)

    def _give_up_on_failing(self) -> None:
        for name in self._apps:
            if self._supervisor.deaths(name) >= EARLY_DEATHS_MAX:
                tail = (self._folder.logs / f"{name}.log").read_text(errors="replace")[-2000:]
                raise StartError(f"{name} does not stay up; the end of its log:\n{tail}")

    def _step(self) -> None:
        if self._leash.check():
            self._console.warn("the watchdog was gone and has been started again")
        self._supervisor.step()

    @property
    def logs(self) -> str:
        """Return the folder of the processes' logs."""
        return str(self._folder.logs)
