"""Notes in Redis how far the signer has seen the database come, and acts when the database went back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from actors.addresses import fill
from actors.queue.link import LinkDownError, RedisLink
from actors.signer import held_keys, rollback
from actors.signer.rollback import Watermark
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.evm.anvil import Anvil
from models.addresses import reservations
from models.db.base import execute, rows
from models.spends import signing_stops
from tests.actors.recovery.world import RecoveryWorld

pytestmark = pytest.mark.fresh_database
KEY = "test:watermark"
FAR = 10**15


@pytest.fixture
def mark(redis_url: str, database: str) -> Iterator[Watermark]:
    del database
    link = RedisLink(redis_url)
    made = Watermark(link, "test", DEVELOPMENT_SECRET_KEYS)
    rollback.use(made)
    for name in ("ethereum", "bsc"):
        assert signing_stops.watch(name) is None
    assert signing_stops.renew_pool("evm") is None
    yield made
    rollback.use(None)
    link.close()


def stopped() -> list[str]:
    return [each.network for each in signing_stops.listing()]


def looks() -> int:
    return int(rows("SELECT looks FROM database_looks")[0][0])


def test_a_written_database_is_counted_and_nothing_stops(mark: Watermark, redis_url: str) -> None:
    for _ in range(3):
        rollback.look()
        execute("UPDATE app_clock SET ahead = ahead")
    assert rollback.is_current()
    database = signing_stops.age().database
    assert (looks(), mark.noted(), signing_stops.watch("ethereum")) == (3, {database: 3}, None)
    with redis.Redis.from_url(redis_url) as server:
        assert database in (server.get(KEY) or b"").decode()


def test_an_idle_database_is_counted_once_and_again_after_redis_lost_the_note(mark: Watermark, redis_url: str) -> None:
    execute("CHECKPOINT")  # PostgreSQL has written all that it writes by itself
    for _ in range(20):
        rollback.look()
    assert looks() < 5
    with redis.Redis.from_url(redis_url) as server:
        server.delete(KEY)
    rollback.look()
    assert list(mark.noted().values()) == [looks()]


@pytest.mark.usefixtures("mark")
def test_two_signers_that_look_in_turn_raise_no_alarm(redis_url: str, mark: Watermark) -> None:
    link = RedisLink(redis_url)
    other = Watermark(link, "test", DEVELOPMENT_SECRET_KEYS)
    for each in (mark, other, mark, other):
        rollback.use(each)
        rollback.look()
        assert rollback.is_current()
    link.close()
    assert list(mark.noted().values()) == [looks()]


def test_an_older_state_stops_every_network_and_skips_addresses_once(mark: Watermark) -> None:
    before = reservations.skip_ahead("evm")
    mark.note(signing_stops.age().database, FAR)
    # However much the older database has written by itself since.
    execute("UPDATE app_clock SET ahead = ahead")
    assert not rollback.is_current()
    rollback.look()
    assert rollback.is_current()
    assert [signing_stops.watch(each) is None for each in ("ethereum", "bsc")] == [False, False]
    assert stopped() == ["bsc", "ethereum"]
    [(ordinal,)] = rows("SELECT last_value FROM address_claims_evm")
    assert ordinal >= before - 1 + reservations.SKIPPED
    rollback.look()
    assert rows("SELECT last_value FROM address_claims_evm") == [(ordinal,)]


def test_a_stop_restored_with_an_older_state_has_to_catch_up_again(mark: Watermark) -> None:
    signing_stops.stop("ethereum", reason="a test")
    signing_stops.note_caught_up("ethereum")
    execute("UPDATE signing_stops SET stopped_at = stopped_at - interval '1 day'")
    mark.note(signing_stops.age().database, FAR)
    rollback.look()
    assert [(stop.is_caught_up, stop.age_s < 60) for stop in signing_stops.listing()] == [(False, True)]


def test_a_database_without_a_pool_skips_addresses_that_the_lost_one_may_have_shown(mark: Watermark) -> None:
    execute("DELETE FROM database_marks")
    mark.note(signing_stops.age().database, FAR)
    rollback.look()
    assert rows("SELECT last_value FROM address_claims_evm")[0][0] >= reservations.SKIPPED - 1


def test_addresses_are_skipped_before_one_can_be_given_out(mark: Watermark, monkeypatch: pytest.MonkeyPatch) -> None:
    mark.note(signing_stops.age().database, FAR)

    def die(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(signing_stops, "renew_pool", die)
        with pytest.raises(RuntimeError):
            rollback.look()
    assert not rollback.is_current()


@pytest.mark.usefixtures("mark")
@pytest.mark.parametrize("forged", [b"", b"x", b'kid:00 ["a", 1]', b"\xff\xfe \xff"])
def test_a_forged_note_stops_nothing(redis_url: str, forged: bytes) -> None:
    with redis.Redis.from_url(redis_url) as server:
        server.set(KEY, forged)
    rollback.look()
    assert (rollback.is_current(), signing_stops.watch("ethereum")) == (True, None)


@pytest.mark.usefixtures("mark")
def test_a_note_with_a_changed_count_does_not_count(redis_url: str) -> None:
    rollback.look()
    with redis.Redis.from_url(redis_url) as server:
        stamp = (server.get(KEY) or b"").split(b" ")[0]
        server.set(KEY, stamp + b' ["' + signing_stops.age().database.encode() + b'", 1000000000000000]')
    assert rollback.is_current()


def test_another_databases_note_does_not_count(mark: Watermark) -> None:
    mark.note("another:00000001", FAR)
    assert rollback.is_current()


def test_without_redis_nothing_is_noticed_and_nothing_stops(database: str) -> None:
    del database
    link = RedisLink("redis://127.0.0.1:1/0")
    rollback.use(Watermark(link, "test", DEVELOPMENT_SECRET_KEYS))
    try:
        rollback.look()
        assert rollback.is_current()
    finally:
        rollback.use(None)


def test_a_count_that_redis_did_not_take_is_noted_at_the_next_look(
    mark: Watermark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise LinkDownError("away")

    with monkeypatch.context() as patch:
        patch.setattr(mark, "note", away)
        rollback.look()
    assert (looks(), mark.noted(), rollback.is_current()) == (1, {}, True)

    rollback.look()

    assert (looks(), mark.noted()) == (2, {signing_stops.age().database: 2})


@pytest.mark.usefixtures("mark")
def test_addresses_are_skipped_once_for_each_stop_by_the_chain() -> None:
    signing_stops.stop("ethereum", reason="the next slot is beyond")
    first = signing_stops.renew_pool("evm")
    assert first is not None
    assert signing_stops.renew_pool("evm") is None
    execute("DELETE FROM signing_stops")
    assert signing_stops.renew_pool("evm") is None


@pytest.fixture
def world(mark: Watermark, database_url: str, anvil: Callable[..., Anvil]) -> Iterator[RecoveryWorld]:
    del mark
    yield from RecoveryWorld(database_url, anvil).opened()


@pytest.mark.parametrize("step", ["broadcast", "treasury", "pool"])
def test_the_signer_looks_before_each_step(world: RecoveryWorld, mark: Watermark, step: str) -> None:
    steps: dict[str, Callable[[], Any]] = {
        "broadcast": world.sign, "treasury": world.keep, "pool": lambda: fill.fill_address_pool("evm"),
    }  # fmt: skip
    order = world.order("one", world.recipient())
    mark.note(signing_stops.age().database, FAR)
    held_keys.keys.cache_clear()
    steps[step]()
    assert rollback.is_current()
    world.sign()
    assert (world.reread(order).status, world.stopped()) == ("approved", signing_stops.ANOTHER_DATABASE)
    world.catch_up()
    world.sign(2)
    assert world.stopped() == ""


def test_addresses_are_skipped_before_a_stop_by_the_chains_count_can_end(world: RecoveryWorld) -> None:
    """Redis lost the note, or went back too: only the chain reveals the copy, which lacks an address."""
    backup = world.copy()
    to = world.recipient()
    world.pay_out("lost", to)
    world.restore(backup)
    world.order("lost", to)
    world.catch_up()
    before = rows("SELECT last_value FROM address_claims_evm")[0][0]
    world.sign(2)
    world.settle_payouts()
    assert (world.stopped(), world.unexplained()) == ("", [("adopted",)])
    assert rows("SELECT last_value FROM address_claims_evm")[0][0] >= before + reservations.SKIPPED - 1


@pytest.mark.usefixtures("mark")
def test_a_pool_without_a_mark_is_skipped_too_if_the_chain_reveals_it() -> None:
    execute("DELETE FROM database_marks")
    signing_stops.stop("ethereum", reason="the next slot is beyond")
    assert signing_stops.renew_pool("evm") is not None
    assert signing_stops.renew_pool("evm") is None
