"""The servers that tests run against: real ones, one set per test process, started by the first test that asks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import hypothesis
import psycopg2
import pytest
import redis
import structlog
from psycopg2.extensions import parse_dsn
from pytest_socket import socket_allow_hosts
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from chains.net import at_once
from core.logs import counters, outages
from devstack.bitcoin.node import BitcoinNode
from devstack.evm.anvil import Anvil
from devstack.servers.postgres import Postgres
from devstack.servers.valkey import Valkey
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from models.addresses import pool as address_pool
from models.db import counts
from tests import coverage
from tests.models.builders import Chain
from tests.peers.databases.owner import OWNER, as_owner, make_owner
from tests.peers.databases.worker_database import WorkerDatabase, admin, copy_database, drop_database

ROOT: Final = Path(__file__).parents[1]
TEMPLATE: Final = "sluice_template"
MEMORY: Final = "/dev/shm"  # noqa: S108  a file system, not a file
MEMORY_MIN_BYTES: Final = 4 * 1024**3
# Folders and files that take minutes: those that wait most, and those that reckon most.
FIRST: Final = frozenset({"flows", "test_stack"})
SECOND: Final = frozenset({"test_money_machine", "test_fuzz"})
# Its files go to one process, which starts one stack for all of them.
ONE_STACK: Final = "tests/flows/one_stack"
_names = (f"test_{number}" for number in itertools.count(1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests recorded, as the weights of pages."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    for name, figure in sorted(figures for report in reports for figures in report.user_properties):
        terminalreporter.write_line(f"{name}: {figure}")


def pytest_configure(config: pytest.Config) -> None:
    """Measure what tests reach where that is asked for, and let the errors that they provoke be plain text."""
    if coverage.IS_ON:
        config.pluginmanager.register(coverage)
    # How long an example takes says how busy the machine is.
    hypothesis.settings.register_profile("house", deadline=None)
    hypothesis.settings.load_profile("house")
    # Drawing them with all their variables outlasts transactions.
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.fixture(autouse=True)
def _logs_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a command under test does to the logs: a later test would wait in vain for an event of theirs."""
    before, configure = structlog.get_config(), structlog.configure
    # A logger that was used once would keep the settings of that moment for good.
    monkeypatch.setattr(
        structlog, "configure", lambda **options: configure(**options | {"cache_logger_on_first_use": False})
    )
    yield
    configure(**before)


@pytest.fixture(autouse=True)
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the notifications of actors, "actor:argument"; they reach no actor unless a test sends them."""
    bells: list[str] = []
    monkeypatch.setattr("models.db.after_commit._Process.quiet_until", 0.0)
    monkeypatch.setattr("models.db.after_commit._Process.send", lambda *bell: bells.append(":".join(bell)))
    return bells


@pytest.fixture(autouse=True)
def _counts_from_zero(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count from zero in each test, whose database has no counts either, and let no thread write them after it."""
    monkeypatch.setattr(counters._Process, "counters", counters.Counters())
    monkeypatch.setattr("models.db.counts._Process.reporter", counts.Reporter("tests"))
    monkeypatch.setattr("models.db.counts._Process.ended", None)
    yield
    if counts._Process.ended is not None:
        counts._Process.ended.set()


@pytest.fixture(autouse=True)
def _no_lines_of_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the lines by which a process reports a store's outage; their own tests have them."""
    monkeypatch.setattr(outages._Process, "away", {})
    monkeypatch.setattr("core.logs.outages._Process.throttle.allows", lambda _key: False)


@pytest.fixture(autouse=True)
def _no_signer_fills_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for addresses that no signer makes."""
    monkeypatch.setattr(address_pool, "WAIT_S", 0.0)


@pytest.fixture(autouse=True)
def _no_node_is_slow_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hear every node, however busy the machine is; tests of slow nodes name them."""
    monkeypatch.setattr(at_once, "PATIENCE_S", 60.0)


@pytest.fixture(autouse=True)
def _no_post_office(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no e-mails, unless a test gives the actors a mail server."""
    monkeypatch.setattr("models.merchants.emails._Process.post", None)


def pytest_collection(session: pytest.Session) -> None:
    """Collect no garbage while ten thousand tests are gathered: it would find nothing, and take half of the time."""
    gc.disable()
    if isinstance(worker := getattr(session.config, "workerinput", None), dict):
        _import_share(session.config.args, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def _import_share(args: Sequence[str], number: int, workers: int) -> None:
    """Import every n-th test file before the others, so that on a fresh checkout one process rewrites it for all."""
    places = [ROOT / arg.partition("::")[0] for arg in args]
    files = sorted({file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))})
    for file in files[number::workers]:
        # Collecting the file reports any error.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole stories, then the other long files, so that the run does not end with a single long one."""
    gc.freeze()
    gc.enable()
    items.sort(key=lambda item: (not FIRST & {*item.path.parts, item.path.stem}, item.path.stem not in SECOND))


class _ByFile(LoadFileScheduling):
    def _assign_work_unit(self, node: WorkerController) -> None:
        """Keep the first process at the stories, which wait most, and the others at what reckons."""
        tells = node is self.nodes[0]
        fitting = (scope for scope in self.workqueue if tells == bool(FIRST & {*Path(scope).parts, Path(scope).stem}))
        self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return ONE_STACK if nodeid.startswith(ONE_STACK) else super()._split_scope(nodeid)


# Not called without xdist.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile:
    """Give one process what shares a stack, and else a file."""
    return _ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup() -> None:
    """Let no test speak to anything but this machine."""
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@pytest.fixture(scope="session")
def leash() -> Iterator[Leash]:
    """Stops every server that this test process started, in whatever way the process ends."""
    made = Leash()
    yield made
    made.release()


@pytest.fixture(scope="session")
def server_folder(leash: Leash) -> Iterator[Path]:
    """A folder that PostgreSQL's account can reach too, unlike pytest's own."""
    del leash  # it must outlive the folder's servers
    folder = Path(tempfile.mkdtemp(prefix="sluice-test-", dir=_roomy_memory()))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _roomy_memory() -> str | None:
    """Memory in which every test's database is copied several times faster; None where there is little of it."""
    try:
        is_roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_MIN_BYTES
    except OSError:
        return None
    return MEMORY if is_roomy else None


@pytest.fixture(scope="session")
def postgres(server_folder: Path, leash: Leash) -> Iterator[Postgres]:
    """A PostgreSQL with a database that has all migrations and belongs to OWNER: TEMPLATE."""
    from models.db.grants import unlisted  # noqa: PLC0415  tests of lower rooms need no models
    from models.db.migrate import migrate  # noqa: PLC0415

    server = Postgres(server_folder, port=free_port(), leash=leash, durable=False)
    server.start()
    with admin(server) as cursor:
        # Statistics that come by themselves would change the plans of some tests on some days.
        cursor.execute("ALTER SYSTEM SET autovacuum = off")
        cursor.execute("SELECT pg_reload_conf()")
        # Each session proves its password again: four thousand rounds of it take longer than most tests.
        cursor.execute("SET scram_iterations = 1")
        cursor.execute("ALTER ROLE CURRENT_USER PASSWORD %s", (parse_dsn(server.url)["password"],))
        make_owner(cursor, server)
        cursor.execute(f"CREATE DATABASE {TEMPLATE} OWNER {OWNER}")
    migrate(as_owner(server.database_url(TEMPLATE)))
    with contextlib.closing(psycopg2.connect(server.database_url(TEMPLATE))) as session:
        forgotten = unlisted(session)
    assert not forgotten, f"no process was given rights to {forgotten}: say in models/db/grants.py who needs which"
    yield server
    server.stop()


@pytest.fixture(scope="session")
def worker_database(postgres: Postgres) -> Iterator[WorkerDatabase]:
    """The one database that this process's tests use in turn."""
    shared = WorkerDatabase(postgres, template=TEMPLATE)
    yield shared
    shared.close()


@contextlib.contextmanager
def _own_database(postgres: Postgres) -> Iterator[str]:
    """A migrated database that no other test ever sees."""
    from models.db import base  # noqa: PLC0415  tests of lower rooms need no models

    name = next(_names)
    with admin(postgres) as cursor:
        copy_database(cursor, name, TEMPLATE)
    yield postgres.database_url(name)
    base.close()
    with admin(postgres) as cursor:
        drop_database(cursor, name)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A migrated database with nothing in it: this process's, or one of its own for a test that is fresh_database."""
    from models.db import base  # noqa: PLC0415  tests of lower rooms need no models

    if request.node.get_closest_marker("fresh_database"):
        with _own_database(request.getfixturevalue("postgres")) as url:
            yield url
        return
    shared: WorkerDatabase = request.getfixturevalue("worker_database")
    yield shared.fresh()
    base.close()
    shared.end_sessions()


@pytest.fixture(scope="module")
def module_database(postgres: Postgres) -> Iterator[str]:
    """A database that a file's tests share, with models.db.base connected to it: for those that write nothing."""
    from models.db import base  # noqa: PLC0415  tests of lower rooms need no models

    with _own_database(postgres) as url:
        base.connect(url)
        yield url


@pytest.fixture
def database(database_url: str) -> str:
    """As database_url, with models.db.base of this process already connected to it."""
    from models.db import base  # noqa: PLC0415  tests of lower rooms need no models

    base.connect(database_url)
    return database_url


@pytest.fixture
def shop(database: str) -> UUID:
    """A merchant."""
    from tests.models.builders import merchant  # noqa: PLC0415  tests of lower rooms need no models

    del database
    return merchant()


@pytest.fixture
def shop_endpoint(shop: UUID) -> None:
    """Let events of the shop be written."""
    from tests.models.builders import endpoint  # noqa: PLC0415  tests of lower rooms need no models

    endpoint(shop)


@pytest.fixture
def chain(database: str) -> Chain:
    """A chain whose blocks the test makes, with no node behind it."""
    from tests.models.builders import Chain  # noqa: PLC0415  tests of lower rooms need no models

    del database
    return Chain()


@pytest.fixture
def sound(database: str) -> Iterator[None]:
    """Fail a test that leaves books which break an invariant."""
    from tests.models.builders import assert_sound  # noqa: PLC0415  tests of lower rooms need no models

    del database
    yield
    assert_sound()


@pytest.fixture(scope="session")
def valkey(server_folder: Path, leash: Leash) -> Iterator[Valkey]:
    """A Redis-compatible server."""
    server = Valkey(server_folder / "redis", port=free_port(), password="testing", leash=leash, durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """The server's address, with no key in it."""
    with contextlib.closing(redis.Redis.from_url(valkey.url)) as client:
        client.flushall()
    return valkey.url


@pytest.fixture(scope="session")
def anvil_program() -> Path:
    """The anvil program; a developer without one skips these tests, CI must have one."""
    from devstack.evm.anvil_binary import NoAnvilError, find_anvil  # noqa: PLC0415  most tests need no chain

    try:
        return find_anvil(os.environ, ROOT / ".sluice" / "cache")
    except NoAnvilError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def bitcoind_program() -> Path:
    """Return a real bitcoind: from BITCOIND, PATH, or unpacked from Debian; if none can be had, our own node."""
    from devstack.bitcoin.program import OWN, find_node  # noqa: PLC0415  as above
    from tests.peers.bitcoind.debian import NoBitcoindError, debians_bitcoind  # noqa: PLC0415  as above

    cache = ROOT / ".sluice" / "cache"
    node = find_node(os.environ, cache)
    if node != OWN:
        return node
    try:
        return debians_bitcoind(cache)
    except NoBitcoindError as error:
        print(f"no real bitcoind, so our own stands in: {error}")  # noqa: T201  the run's log says which it was
        return OWN


@pytest.fixture
def bitcoind(bitcoind_program: Path, tmp_path: Path, leash: Leash) -> Iterator[Callable[[], BitcoinNode]]:
    """Starts real nodes on regtest: bitcoind() answers at .url, and makes a block on request."""
    yield from _bitcoin_nodes(bitcoind_program, tmp_path / "real", leash)


@pytest.fixture
def regtest(tmp_path: Path, leash: Leash) -> Iterator[Callable[[], BitcoinNode]]:
    """Starts our own nodes on regtest, which replace real ones on a machine without bitcoind."""
    from devstack.bitcoin.program import OWN  # noqa: PLC0415  most tests need no chain

    yield from _bitcoin_nodes(OWN, tmp_path / "own", leash)


def _bitcoin_nodes(program: Path, folder: Path, leash: Leash) -> Iterator[Callable[[], BitcoinNode]]:
    from devstack.bitcoin.node import BitcoinNode  # noqa: PLC0415  most tests need no chain

    started: list[BitcoinNode] = []

    def start() -> BitcoinNode:
        place = folder / str(len(started))
        node = BitcoinNode(program, place, network="bitcoin", port=free_port(), leash=leash)
        node.start()
        started.append(node)
        return node

    yield start
    for node in started:
        node.stop()


@pytest.fixture
def anvil(anvil_program: Path, tmp_path: Path, leash: Leash) -> Iterator[Callable[..., Anvil]]:
    """Starts chains: anvil("ethereum") answers at .url; block_time_s=None makes a block for each transaction."""
    from core.catalogue.catalogue import load_catalogue  # noqa: PLC0415
    from devstack.evm.anvil import Anvil  # noqa: PLC0415  most tests need no chain

    started: list[Anvil] = []

    def start(network: str = "ethereum", *, chain_id: int | None = None, block_time_s: int | None = 1) -> Anvil:
        number = int(load_catalogue("development").networks[network].chain_identity) if chain_id is None else chain_id
        chain = Anvil(
            anvil_program,
            tmp_path / f"{network}-{len(started)}",
            network=network,
            chain_id=number,
            port=free_port(),
            leash=leash,
            block_time_s=block_time_s,
        )
        chain.start()
        started.append(chain)
        return chain

    yield start
    for chain in started:
        chain.stop()
