"""A database comes back without its last payouts, and no recipient is paid twice.

From a lagging standby that is promoted, and from a disk image. With PostgreSQL's own tools, a real node, the real
actors, and an operator's command line. test_restore_drill does it from backups.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.addresses.fill import fill_pool
from actors.queue.link import RedisLink
from actors.signer import held_keys, rollback
from actors.signer.rollback import Watermark
from core.catalogue.catalogue import load_catalogue
from core.errors import InvoiceAddressFailed
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.evm.anvil import Anvil
from devstack.servers.postgres import Postgres
from devstack.supervise.leash import Leash
from models.addresses.pool import AddressStash
from models.db import base
from models.db.base import execute, rows
from models.payouts.rows import PayoutRow
from models.spends import signing_stops
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.cli.recovery.drill import Drill
from tests.peers.databases.standby import Snapshot, Standby, ask

pytestmark = pytest.mark.fresh_database


@pytest.fixture
def drill(database: str, anvil: Callable[..., Anvil], sluice: CommandLine) -> Iterator[Drill]:
    made = Drill(database, anvil)
    made.sluice = sluice
    for world in made.opened():
        assert world is made
        yield made


@pytest.fixture
def standby(database: str, postgres: Postgres, server_folder: Path, leash: Leash) -> Iterator[Standby]:
    del database  # it exists before the base backup, and its changes are streamed
    server = Standby(server_folder / "standby", postgres, leash)
    server.start()
    yield server
    base.close()
    server.stop()
    shutil.rmtree(server_folder / "standby")


TIMELINE = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"


def identity(server: Postgres) -> tuple[Any, ...]:
    return ask(server, "SELECT system_identifier FROM pg_control_system()")


def test_a_standby_that_lagged_and_is_promoted_pays_nobody_twice(
    standby: Standby, postgres: Postgres, drill: Drill
) -> None:
    people = {name: drill.recipient() for name in ("before", "again", "never again", "on its way", "new")}
    assert signing_stops.renew_pool("evm") is None
    drill.pay_out("before", people["before"])
    standby.follow()
    standby.cut_off()
    again = drill.pay_out("again", people["again"], "20")
    never = drill.pay_out("never again", people["never again"], "30")
    drill.order("on its way", people["on its way"])
    drill.sign()
    assert drill.count("spends") == 4

    standby.promote()
    assert identity(standby) == identity(postgres), "only the timeline tells"
    drill.restore(standby.database_url(drill._database.rsplit("/", 1)[1]))
    assert drill.count("spends") == 1, "the standby had everything, so that it did not lag"
    orders = [drill.order("again", people["again"], "20"), drill.order("on its way", people["on its way"])]
    drill.sign(2)
    assert (drill.stopped(), drill.count("spends")) == (signing_stops.ANOTHER_DATABASE, 1)
    assert rows("SELECT last_value FROM address_claims_evm") == [(1_023,)], "the next address is number 1024"
    assert signing_stops.renew_pool("evm") is None

    drill.catch_up()
    drill.sign(3)
    assert [drill.reread(each).status for each in orders] == ["confirmed", "approved"]
    assert drill.reread(orders[0]).txid == again.txid
    drill.advance()
    drill.sign(2)
    assert drill.unexplained("status", "txid")[:2] == [("adopted", again.txid), ("unexplained", never.txid)]
    assert drill.frozen_by() == ["recovery"]

    # As some explorers write it.
    shown = f"0x{never.txid[2:].upper()}"
    words = ("treasury", "recover", "ethereum", "--adopt", shown, "--merchant", str(drill.shop))
    assert drill.operate(*words, "--order-id", "never again", "--yes").code == 0
    drill.sign(2)
    drill.settle_payouts()
    assert (drill.stopped(), drill.frozen_by()) == ("", [])
    assert drill.reread(orders[1]).status == "confirmed"
    assert drill.pay_out("new", people["new"]).status == "confirmed"
    assert [drill.arrived(to) for to in people.values()] == [10, 20, 30, 10, 10]
    drill.assert_agreed(3)
    assert drill.operate("audit").code == 0


def test_a_promoted_standby_that_lacks_nothing_goes_on_by_itself_once_the_scan_has_looked(
    standby: Standby, drill: Drill
) -> None:
    first, second = drill.recipient(), drill.recipient()
    drill.pay_out("one", first)
    waiting = drill.order("two", second)
    standby.follow()
    standby.cut_off()
    standby.promote()
    drill.restore(standby.database_url(drill._database.rsplit("/", 1)[1]))
    drill.mine()
    drill.sign(2)
    assert (drill.reread(waiting).status, drill.stopped()) == ("approved", signing_stops.ANOTHER_DATABASE)
    drill.catch_up()
    drill.sign(2)
    assert (drill.stopped(), drill.frozen_by(), drill.unexplained()) == ("", [], [])
    drill.settle_payouts()
    assert drill.reread(waiting).status == "confirmed"
    assert [drill.arrived(to) for to in (first, second)] == [10, 10]


@pytest.fixture
def noted(redis_url: str) -> Iterator[None]:
    """Redis keeps how far the database's log was written."""
    link = RedisLink(redis_url)
    rollback.use(Watermark(link, "drill", DEVELOPMENT_SECRET_KEYS))
    yield
    rollback.use(None)
    link.close()


@pytest.fixture
def snapshot(database: str, postgres: Postgres, server_folder: Path, leash: Leash) -> Iterator[Snapshot]:
    """A disk image, taken by the first start()."""
    del database
    server = Snapshot(server_folder / "snapshot", postgres, leash)
    yield server
    base.close()
    server.stop()
    shutil.rmtree(server_folder / "snapshot")


@pytest.mark.usefixtures("noted")
def test_a_disk_image_that_goes_back_gives_no_address_away_twice_and_pays_nobody_twice(
    snapshot: Snapshot, postgres: Postgres, drill: Drill
) -> None:
    people = {name: drill.recipient() for name in ("before", "again", "waiting")}
    fill_pool(load_catalogue("development").networks["ethereum"], held_keys.keys(), low=64, high=128)
    stash = AddressStash(held_keys.keys().pool_public_key, is_current=rollback.is_current)
    drill.pay_out("before", people["before"])
    snapshot.start()
    shown = {stash.take("evm") for _ in range(20)}
    again = drill.pay_out("again", people["again"], "20")

    drill.restore(snapshot.database_url(drill._database.rsplit("/", 1)[1]))
    assert identity(snapshot) == identity(postgres)
    assert ask(snapshot, TIMELINE) == ask(postgres, TIMELINE)
    worker = AddressStash(held_keys.keys().pool_public_key, is_current=rollback.is_current)
    with pytest.raises(InvoiceAddressFailed):
        worker.take("evm")
    orders = [drill.order("again", people["again"], "20"), drill.order("waiting", people["waiting"])]
    drill.sign(2)
    assert (drill.stopped(), drill.count("spends")) == (signing_stops.ANOTHER_DATABASE, 1)

    fill_pool(load_catalogue("development").networks["ethereum"], held_keys.keys(), low=64, high=128)
    seen = {AddressStash(held_keys.keys().pool_public_key, is_current=rollback.is_current).take("evm")}
    assert not seen & shown
    assert min(ordinal for ordinal, _ in seen) >= 1_024

    drill.catch_up()
    drill.sign(3)
    drill.settle_payouts()
    assert [drill.reread(each).status for each in orders] == ["confirmed", "confirmed"]
    assert drill.reread(orders[0]).txid == again.txid
    assert [drill.arrived(to) for to in people.values()] == [10, 20, 10]
    assert (drill.stopped(), drill.frozen_by()) == ("", [])


def test_an_unclaimed_departure_is_written_off_by_command(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    backup = drill.copy()
    drill.pay_out("lost", drill.recipient())
    drill.restore(backup)
    drill.catch_up()
    drill.sign(2)
    words = ("treasury", "writeoff", "ethereum", "USDT")
    reason = ("--reason", "the merchant is gone")
    assert "moved 10 USDT" in drill.operate(*words, "9", *reason, "--yes").err
    assert "lacks 0 USDT" in drill.operate(*words, "11", *reason, "--yes").err
    assert "nothing to write off" in drill.operate("treasury", "writeoff", "ethereum", "ETH", "0", *reason).err
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert drill.operate(*words, "10", *reason).code == 1
    assert drill.unexplained() == [("unexplained",)]
    assert drill.operate(*words, "10", *reason, "--yes", "--json").json["amount"] == "10"
    drill.sign(3)
    drill.advance()
    drill.reconcile(2)
    assert (drill.stopped(), drill.findings()) == ("", [])
    assert drill.operate("audit").code == 0
    lines = drill.operate("treasury", "recover", "ethereum").out
    assert "ethereum is signed for" in lines
    assert "the merchant is gone, by operator" in lines


def written_off(drill: Drill, to: str) -> PayoutRow:
    """Lose a payout with a restore, and write its transaction off; returns it as it was."""
    backup = drill.copy()
    lost = drill.pay_out("lost", to)
    drill.restore(backup)
    drill.catch_up()
    drill.sign(2)
    done = drill.operate("treasury", "writeoff", "ethereum", "USDT", "10", "--reason", "nobody's", "--yes")
    assert "for 7 days a payout that asks for the same waits" in done.out
    drill.sign(3)
    assert (drill.stopped(), drill.frozen_by()) == ("", [])
    return lost


def test_an_order_repeated_after_its_writeoff_waits_and_is_adopted(drill: Drill) -> None:
    to = drill.recipient()
    before = drill.equity()
    lost = written_off(drill, to)
    others = [drill.order("more", to, "15"), drill.order("elsewhere", drill.recipient())]
    repeated = drill.order("lost", to)
    drill.sign(2)
    drill.settle_payouts()
    assert [drill.reread(each).status for each in others] == ["confirmed", "confirmed"], "honest orders go on"
    assert (drill.reread(repeated).status, drill.reread(repeated).waiting_for) == ("approved", "freeze")
    assert drill.arrived(to) == 10 + 15

    words = ("treasury", "recover", "ethereum", "--adopt", lost.txid, "--merchant", str(drill.shop))
    assert drill.operate(*words, "--order-id", "lost", "--yes").code == 0
    stored = drill.reread(repeated)
    assert (stored.status, stored.txid, stored.block_height) == ("confirmed", lost.txid, lost.block_height)
    assert drill.operate(*words, "--order-id", "another", "--yes").code == 1, "it is adopted once"
    assert drill.pay_out("the same again", to).status == "confirmed"
    assert (drill.arrived(to), before - drill.equity()) == (10 + 15 + 10, 0)
    assert acted() == [("departure.written_off", "ethereum"), ("departure.adopted", f"ethereum {lost.txid}")]
    drill.bury()
    drill.assert_agreed(3)
    assert drill.operate("audit").code == 0


def test_another_order_of_the_sum_that_was_written_off_is_released(drill: Drill) -> None:
    to = drill.recipient()
    written_off(drill, to)
    first, second = drill.order("the same again", to), drill.order("and again", to)
    drill.sign(2)
    drill.settle_payouts()
    assert drill.arrived(to) == 10
    assert drill.operate("payouts", "release", str(first.id), "--yes").code == 0
    drill.settle_payouts()
    drill.settle_payouts()
    assert [drill.reread(each).status for each in (first, second)] == ["confirmed", "approved"]
    assert acted() == [("departure.written_off", "ethereum"), ("payout.released", str(first.id))]
    assert drill.operate("payouts", "release", str(first.id), "--yes").code == 1
    execute("UPDATE unexplained_departures SET settled_at = settled_at - interval '7 days'")
    drill.sign()
    drill.settle_payouts()
    assert (drill.reread(second).status, drill.arrived(to)) == ("confirmed", 30), "after a week none is a repeat"


def test_addresses_are_skipped_by_command(drill: Drill) -> None:
    skipped = drill.operate("treasury", "skip-addresses", "evm", "--yes", "--json").json
    assert skipped["first"] >= 1_024
    assert drill.operate("treasury", "skip-addresses", "nowhere", "--yes").code == 1
