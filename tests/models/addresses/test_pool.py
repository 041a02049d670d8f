"""The pool of deposit addresses: each has one owner and the signer's signature, and none is lost."""

import base64
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psycopg2
import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from core.addresses.evm import checksum_evm
from core.errors import InvoiceAddressFailed
from core.ids import uuid7
from models.addresses import pool as address_pool
from models.addresses import reservations
from models.addresses.pool import STASH, AddressStash, chunk_message, fill
from models.addresses.reservations import CHUNK, level, next_chunk, reclaim, reserve
from models.db.base import StoreUnavailableError, close, column, connect, execute, one, rows, transaction
from models.spends import signing_stops

pytestmark = pytest.mark.usefixtures("database")

SIGNER = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
PUBLIC_KEY = base64.b64encode(SIGNER.public_key().public_bytes_raw()).decode()


def addresses_of(chunk: int) -> list[str]:
    return [f"0x{ordinal:040x}" for ordinal in range(chunk * CHUNK, (chunk + 1) * CHUNK)]


def add_chunk(chunk: int, addresses: Sequence[str] | None = None, signer: Ed25519PrivateKey = SIGNER) -> bool:
    chosen = addresses_of(chunk) if addresses is None else addresses
    return fill("evm", chunk, chosen, signer.sign(chunk_message("evm", chunk, chosen)))


def give_to_an_owner(ordinal: int) -> None:
    execute(
        "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id) VALUES ('evm', %s, 'invoice', %s)",
        (ordinal, uuid7()),
    )


def age_everything() -> None:
    """Make all marks and reservations of returned ordinals an hour older."""
    execute("UPDATE address_marks SET marked_at = marked_at - interval '1 hour' WHERE marked_at <> 'epoch'")
    execute("UPDATE address_returns SET taken_at = taken_at - interval '1 hour'")


def returned() -> list[int]:
    return column("SELECT ordinal FROM address_returns WHERE taken_at IS NULL ORDER BY ordinal")


# Filling -----------------------------------------------------------------------------------------------------


def test_an_empty_pool_has_no_addresses() -> None:
    assert level("evm") == 0
    assert next_chunk("evm") == 0


def test_a_chunk_fills_the_pool() -> None:
    assert add_chunk(0)
    assert add_chunk(1)

    assert level("evm") == 2 * CHUNK
    assert next_chunk("evm") == 2
    assert rows("SELECT ordinal, address FROM pool_addresses ORDER BY ordinal") == list(
        enumerate(addresses_of(0) + addresses_of(1))
    )


def test_an_existing_chunk_is_not_written_again() -> None:
    add_chunk(0)

    assert not add_chunk(0, [f"0x{number:040x}" for number in range(10**6, 10**6 + CHUNK)])
    assert one("SELECT count(*), min(address) FROM pool_addresses") == (CHUNK, f"0x{0:040x}")


def test_a_chunk_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="64 addresses"):
        fill("evm", 0, addresses_of(0)[:-1], b"")


def test_an_address_is_in_the_pool_once() -> None:
    add_chunk(0)

    with pytest.raises(psycopg2.errors.UniqueViolation):
        add_chunk(1, addresses_of(0))
    assert next_chunk("evm") == 1


def test_two_signers_fill_the_pool_without_waiting(database: str) -> None:
    with psycopg2.connect(database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('address_pool:evm', 0))")
        # A signer that waited would end with an error of lock_timeout.
        assert not add_chunk(0)
        other.rollback()
    assert next_chunk("evm") == 0


def test_concurrent_signers_write_every_chunk_once() -> None:
    def fill_all() -> None:
        # As a signer does: if another one writes the chunk, it writes nothing and reads the next number.
        while (chunk := next_chunk("evm")) < 8:
            add_chunk(chunk)
        close()

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(fill_all) for _ in range(4)]:
            future.result()

    counts = one("SELECT count(*), count(DISTINCT address) FROM pool_addresses")
    assert counts is not None
    assert counts[0] == counts[1] == next_chunk("evm") * CHUNK


# Reserving ---------------------------------------------------------------------------------------------------------


def test_ordinals_are_reserved_in_order_and_once() -> None:
    add_chunk(0)

    assert reserve("evm", 3) == [0, 1, 2]
    assert reserve("evm", 2) == [3, 4]
    assert level("evm") == CHUNK - 5


def test_a_reservation_ends_at_the_end_of_the_pool() -> None:
    add_chunk(0)

    assert reserve("evm", CHUNK + 10) == list(range(CHUNK))
    assert reserve("evm", 1) == []
    assert level("evm") == 0


def test_reservations_continue_without_a_gap_after_the_pool_grew() -> None:
    add_chunk(0)
    reserve("evm", CHUNK + 10)
    add_chunk(1)

    assert reserve("evm", 1) == [CHUNK]


def test_ordinals_beyond_the_end_wait_for_their_chunk() -> None:
    # Given two processes that reached the end of the pool at once
    add_chunk(0)
    reserve("evm", CHUNK - 1)
    execute("SELECT nextval('address_claims_evm') FROM generate_series(1, 3)")
    reservations.give_back("evm", CHUNK)
    reservations.give_back("evm", CHUNK + 1)

    assert reserve("evm", 5) == []
    add_chunk(1)
    assert sorted(reserve("evm", 5)) == [CHUNK, CHUNK + 1, CHUNK + 2, CHUNK + 3, CHUNK + 4]


def test_concurrent_reservations_beyond_the_end_lose_no_ordinal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both processes read the sequence before either moves it.
    add_chunk(0)
    reserve("evm", CHUNK - 2)
    monkeypatch.setattr(reservations, "last_reserved", lambda _: CHUNK - 6)

    assert reserve("evm", 5) == [CHUNK - 2, CHUNK - 1]
    assert returned() == [CHUNK, CHUNK + 1, CHUNK + 2]


def test_reservations_of_eight_threads_are_all_different() -> None:
    for chunk in range(10):
        add_chunk(chunk)

    def reserve_some() -> list[int]:
        ordinals = [ordinal for _ in range(5) for ordinal in reserve("evm", 16)]
        close()
        return ordinals

    with ThreadPoolExecutor(8) as pool:
        reserved = [ordinal for future in [pool.submit(reserve_some) for _ in range(8)] for ordinal in future.result()]

    assert len(reserved) == 8 * 5 * 16
    assert sorted(reserved) == list(range(10 * CHUNK))


def test_a_returned_ordinal_is_reserved_before_new_ones() -> None:
    add_chunk(0)
    reserve("evm", 10)
    reservations.give_back("evm", 4)
    reservations.give_back("evm", 7)

    assert level("evm") == CHUNK - 8
    assert sorted(reserve("evm", 3)) == [4, 7, 10]
    assert reserve("evm", 1) == [11]
    assert level("evm") == CHUNK - 12


def test_a_returned_ordinal_is_reserved_by_one_thread() -> None:
    add_chunk(0)
    for ordinal in reserve("evm", CHUNK):
        reservations.give_back("evm", ordinal)
    together = threading.Barrier(8)

    def reserve_some() -> list[int]:
        together.wait()
        ordinals = reserve("evm", 16)
        close()
        return ordinals

    with ThreadPoolExecutor(8) as pool:
        reserved = [ordinal for future in [pool.submit(reserve_some) for _ in range(8)] for ordinal in future.result()]

    assert len(reserved) == len(set(reserved))
    # A reservation skips rows locked by others, so a thread may have got fewer than there were.
    assert sorted(reserved + reserve("evm", CHUNK)) == list(range(CHUNK))


def test_a_returned_ordinal_with_an_owner_is_not_reserved_again() -> None:
    # The connection broke at the commit: the caller could not know that it had succeeded.
    add_chunk(0)
    reserve("evm", 1)
    give_to_an_owner(0)
    reservations.give_back("evm", 0)

    assert reserve("evm", 1) == [1]
    assert level("evm") == CHUNK - 2


def test_an_address_has_one_owner_for_ever() -> None:
    add_chunk(0)
    give_to_an_owner(0)

    with pytest.raises(psycopg2.errors.UniqueViolation):
        give_to_an_owner(0)


def test_a_family_without_a_pool_raises() -> None:
    with pytest.raises(KeyError):
        reserve("unknown", 1)


# Reclaiming --------------------------------------------------------------------------------------------------


def test_a_young_reservation_is_not_reclaimed() -> None:
    add_chunk(0)
    reserve("evm", 5)
    reclaim("evm")

    assert reclaim("evm") == 0
    assert returned() == []


def test_an_old_reservation_without_owner_is_reclaimed() -> None:
    add_chunk(0)
    reserve("evm", 5)
    for ordinal in (0, 2, 3):
        give_to_an_owner(ordinal)
    reclaim("evm")
    age_everything()

    assert reclaim("evm") == 2
    assert returned() == [1, 4]
    assert sorted(reserve("evm", 3)) == [1, 4, 5]


def test_reservations_made_after_the_mark_wait_for_the_next() -> None:
    add_chunk(0)
    reserve("evm", 2)
    reclaim("evm")
    age_everything()
    reserve("evm", 2)

    assert reclaim("evm") == 2
    assert returned() == [0, 1]


def test_every_ordinal_is_examined_once() -> None:
    add_chunk(0)
    reserve("evm", 5)
    reclaim("evm")
    age_everything()
    reclaim("evm")
    # In a stash again, reserved a moment ago: it must not count as lost.
    assert sorted(reserve("evm", 5)) == [0, 1, 2, 3, 4]
    age_marks = "UPDATE address_marks SET marked_at = marked_at - interval '1 hour' WHERE marked_at <> 'epoch'"
    execute(age_marks)

    assert reclaim("evm") == 0
    assert reserve("evm", 1) == [5]


def test_a_reclaimed_ordinal_that_is_lost_again_is_reclaimed_again() -> None:
    add_chunk(0)
    reserve("evm", 1)
    reservations.give_back("evm", 0)
    assert reserve("evm", 1) == [0]
    assert reserve("evm", 1) == [1]
    age_everything()

    assert reserve("evm", 1) == [0]


def test_a_long_pause_is_caught_up_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "RECLAIM_STEP", 4)
    add_chunk(0)
    reserve("evm", 10)
    reclaim("evm")
    age_everything()

    assert [reclaim("evm") for _ in range(4)] == [4, 4, 2, 0]
    assert returned() == list(range(10))


def test_marks_and_returned_ordinals_are_removed() -> None:
    add_chunk(0)
    for ordinal in reserve("evm", 3):
        reservations.give_back("evm", ordinal)
    for ordinal in reserve("evm", 3):
        give_to_an_owner(ordinal)
    for _ in range(5):
        reclaim("evm")
        age_everything()
    reclaim("evm")

    # The cursor, and the mark of this run.
    assert one("SELECT count(*) FROM address_marks WHERE family = 'evm'") == (2,)
    assert one("SELECT count(*) FROM address_returns") == (0,)


def test_only_one_process_reclaims_at_a_time(database: str) -> None:
    add_chunk(0)
    reserve("evm", 5)
    reclaim("evm")
    age_everything()
    with psycopg2.connect(database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('address_reclaim:evm', 0))")

        assert reclaim("evm") == 0
        other.rollback()
    assert reclaim("evm") == 5


def test_advancing_the_gateways_clock_does_not_age_reservations() -> None:
    # `sluice clock advance` moves hours in a moment, while stashes keep their real age.
    add_chunk(0)
    reserve("evm", 5)
    reservations.give_back("evm", 0)
    reserve("evm", 1)
    reclaim("evm")
    execute("UPDATE app_clock SET ahead = interval '1 day'")

    assert reclaim("evm") == 0
    assert reserve("evm", 1) == [5]


# The stash ---------------------------------------------------------------------------------------------------


def test_the_stash_gives_ordinals_with_their_addresses() -> None:
    add_chunk(0)
    add_chunk(1)
    stash = AddressStash(PUBLIC_KEY)

    assert [stash.take("evm") for _ in range(CHUNK + 3)] == [
        (ordinal, f"0x{ordinal:040x}") for ordinal in range(CHUNK + 3)
    ]


def test_the_stash_reserves_many_ordinals_in_one_query() -> None:
    add_chunk(0)
    add_chunk(1)
    # One ordinal out of step, so that the stash's first reservation reaches into the second chunk, and so do the next
    # ones.
    assert 0 in reserve("evm", 1)
    stash = AddressStash(PUBLIC_KEY)
    stash.take("evm")
    close()
    execute("DELETE FROM pool_addresses WHERE ordinal IN (63, 127)")  # A second reading would find it broken.

    assert [stash.take("evm")[0] for _ in range(STASH)] == list(range(2, STASH + 2))


def test_stashes_of_eight_threads_and_two_processes_share_no_address() -> None:
    for chunk in range(8):
        add_chunk(chunk)
    processes = [AddressStash(PUBLIC_KEY) for _ in range(2)]

    def take_some(stash: AddressStash) -> list[tuple[int, str]]:
        addresses = [stash.take("evm") for _ in range(50)]
        close()
        return addresses

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(take_some, processes[number % 2]) for number in range(8)]
        taken = [addresses for future in futures for addresses in future.result()]

    assert len(taken) == 400
    assert len({ordinal for ordinal, _ in taken}) == 400
    assert len({address for _, address in taken}) == 400


def test_an_empty_pool_fails_the_invoice_until_it_is_filled() -> None:
    stash = AddressStash(PUBLIC_KEY)
    with pytest.raises(InvoiceAddressFailed):
        stash.take("evm")

    add_chunk(0)

    assert stash.take("evm") == (0, f"0x{0:040x}")


def test_a_call_waits_for_a_chunk_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_pool, "WAIT_S", 30.0)
    monkeypatch.setattr(address_pool, "time", SimpleNamespace(sleep=lambda _: add_chunk(0)))

    assert AddressStash(PUBLIC_KEY).take("evm") == (0, f"0x{0:040x}")


def test_callers_of_an_unfilled_pool_wait_only_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(address_pool, "WAIT_S", 0.2)
    monkeypatch.setattr(address_pool, "monotonic", lambda: clock[0])
    # Not the module's own function: other threads of the process use it too.
    monkeypatch.setattr(address_pool, "time", SimpleNamespace(sleep=sleep))
    stash = AddressStash(PUBLIC_KEY)

    def waits(family: str = "evm") -> bool:
        slept.clear()
        with pytest.raises(InvoiceAddressFailed):
            stash.take(family)
        return bool(slept)

    assert [waits(), waits()] == [True, False]
    assert [waits("tron"), waits("tron")] == [True, False], "each family has a pool of its own"
    clock[0] += address_pool.HOPELESS_S
    assert [waits(), waits()] == [True, False]


def test_an_unused_address_is_given_out_again() -> None:
    add_chunk(0)
    stash = AddressStash(PUBLIC_KEY)
    ordinal, address = stash.take("evm")
    stash.give_back("evm", ordinal)

    assert AddressStash(PUBLIC_KEY).take("evm") == (ordinal, address)


def test_a_failure_to_give_back_is_logged_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise StoreUnavailableError

    monkeypatch.setattr(reservations, "give_back", unreachable)

    with structlog.testing.capture_logs() as logs:
        AddressStash(PUBLIC_KEY).give_back("evm", 5)
    assert [entry["ordinal"] for entry in logs] == [5]


def test_a_stale_stash_is_dropped_before_its_ordinals_are_reclaimed(monkeypatch: pytest.MonkeyPatch) -> None:
    add_chunk(0)
    add_chunk(1)
    stash = AddressStash(PUBLIC_KEY)
    now = time.monotonic()
    monkeypatch.setattr(address_pool, "monotonic", lambda: now)
    stash.take("evm")
    now += address_pool.STASH_S

    assert stash.take("evm")[0] == STASH


def test_a_stash_lives_at_most_half_as_long_as_a_reservation() -> None:
    assert address_pool.STASH_S <= reservations.RECLAIM_AFTER_S / 2


def test_later_reservations_of_a_stash_expire_later(monkeypatch: pytest.MonkeyPatch) -> None:
    add_chunk(0)
    add_chunk(1)
    stash = AddressStash(PUBLIC_KEY)
    now = time.monotonic()
    monkeypatch.setattr(address_pool, "monotonic", lambda: now)
    for _ in range(STASH // 2):
        stash.take("evm")
    now += address_pool.STASH_S - 1
    stash._fill_and_draw()
    now += 1

    assert stash.take("evm")[0] == STASH


def test_callers_of_an_empty_stash_wait_for_one_reservation() -> None:
    add_chunk(0)
    add_chunk(1)
    stash = AddressStash(PUBLIC_KEY)
    together = threading.Barrier(8)

    def take_one() -> int:
        together.wait()
        ordinal, _ = stash.take("evm")
        close()
        return ordinal

    with ThreadPoolExecutor(8) as pool:
        taken = [future.result() for future in [pool.submit(take_one) for _ in range(8)]]

    assert sorted(taken) == list(range(8))
    assert level("evm") == 2 * CHUNK - STASH


# Filling ahead -----------------------------------------------------------------------------------------------


def test_the_stash_is_refilled_when_half_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    add_chunk(0)
    add_chunk(1)
    drawn: list[str] = []
    monkeypatch.setattr(address_pool, "qr_data_uri", drawn.append)
    stash = AddressStash(PUBLIC_KEY)
    for left in range(STASH - 1, STASH // 2, -1):
        stash.take("evm")
        stash._fill_and_draw()
        assert level("evm") == 2 * CHUNK - STASH, left
    stash.take("evm")
    stash._fill_and_draw()

    assert level("evm") == 2 * CHUNK - STASH - STASH // 2
    # In their shown form; the first one's image was drawn for its caller before the thread could.
    assert drawn == [checksum_evm(f"0x{ordinal:040x}") for ordinal in range(1, STASH * 3 // 2)]
    assert [stash.take("evm")[0] for _ in range(STASH)] == list(range(STASH // 2, STASH * 3 // 2))


class Filled(AddressStash):
    """A stash whose thread reserves made-up ordinals when the test allows it."""

    def __init__(self) -> None:
        super().__init__("")
        self.may_go_on = threading.Event()
        self.reserving = threading.Semaphore(0)
        self.failures: list[Exception] = []
        self.given = 0
        self.fill_ahead()

    def _reserve(self, _family: str, limit: int) -> list[tuple[int, str]]:
        if threading.current_thread().name == "addresses":
            self.reserving.release()
            assert self.may_go_on.wait(20)
            if self.failures:
                raise self.failures.pop()
        self.given += limit
        return [(ordinal, f"0x{ordinal:040x}") for ordinal in range(self.given - limit, self.given)]


def wait_until(holds: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_callers_do_not_wait_for_the_thread_that_fills_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(address_pool, "qr_data_uri", drawn.append)
    stash = Filled()
    taken = [stash.take("evm")[0]]
    # All ordinals that the first call left are drawn at once, although they are much more than half.
    wait_until(lambda: len(drawn) == STASH - 1)
    taken += [stash.take("evm")[0] for _ in range(STASH // 2 - 1)]
    assert stash.reserving.acquire(timeout=20)

    taken += [stash.take("evm")[0] for _ in range(STASH // 2)]
    stash.may_go_on.set()

    # The next caller finds the stash empty and waits for the reservation under way.
    taken += [stash.take("evm")[0] for _ in range(STASH)]
    assert taken == list(range(2 * STASH))


def test_a_family_with_an_empty_pool_delays_no_caller_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def reserve_of(_stash: AddressStash, family: str, limit: int) -> list[tuple[int, str]]:
        if family == "tron":
            asked.set()
            may_go_on.wait(20)
        return [(ordinal, f"0x{ordinal:040x}") for ordinal in range(limit)]

    monkeypatch.setattr(AddressStash, "_reserve", reserve_of)
    stash, took = AddressStash(PUBLIC_KEY), list[str]()
    waiting = threading.Thread(target=lambda: took.append(stash.take("tron")[1]))
    waiting.start()
    assert asked.wait(20)
    stash.take("evm")
    assert took == [], "the other family still waits"
    may_go_on.set()
    waiting.join()


def test_a_failure_to_fill_ahead_is_logged_and_the_next_take_tries_again() -> None:
    stash = Filled()
    stash.failures = [StoreUnavailableError("away"), StoreUnavailableError("still")]
    stash.may_go_on.set()

    with structlog.testing.capture_logs() as logs:
        stash.take("evm")
        wait_until(lambda: not stash._undrawn)
        for _ in range(STASH // 2 - 1):
            stash.take("evm")
        wait_until(lambda: bool(logs))
        assert stash.reserving.acquire()
        assert not stash.reserving.acquire(timeout=0.2), "tried again without a take"
        stash.take("evm")
        wait_until(lambda: len(logs) == 2)

    pairs = {(entry["event"], entry["log_level"]) for entry in logs}
    assert pairs == {("address_pool.not_filled_ahead", "warning")}


def test_taking_inside_a_transaction_raises() -> None:
    add_chunk(0)

    with pytest.raises(RuntimeError, match="step inside a step"), transaction():
        AddressStash(PUBLIC_KEY).take("evm")


# Signatures --------------------------------------------------------------------------------------------------


def expect_refused(stash: AddressStash) -> None:
    with structlog.testing.capture_logs() as logs, pytest.raises(InvoiceAddressFailed):
        stash.take("evm")
    assert "critical" in {entry["log_level"] for entry in logs}


def test_a_chunk_signed_by_another_key_is_refused() -> None:
    add_chunk(0, signer=Ed25519PrivateKey.from_private_bytes(b"\2" * 32))

    expect_refused(AddressStash(PUBLIC_KEY))


@pytest.mark.parametrize(
    "changes",
    [
        [f"UPDATE pool_addresses SET address = '0x{'ee' * 20}' WHERE ordinal = 0"],
        ["DELETE FROM pool_addresses WHERE ordinal = 63"],
        ["UPDATE pool_addresses SET address = 'ä\n€' WHERE ordinal = 0"],
        [
            "UPDATE pool_addresses SET address = address || 'x' WHERE ordinal IN (0, 1)",
            f"UPDATE pool_addresses SET address = '0x{1:040x}' WHERE ordinal = 0",
            f"UPDATE pool_addresses SET address = '0x{0:040x}' WHERE ordinal = 1",
        ],
    ],
    ids=["replaced", "missing", "odd letters", "swapped"],
)
def test_a_chunk_with_changed_addresses_is_refused(changes: list[str]) -> None:
    add_chunk(0)
    for sql in changes:
        execute(sql)

    expect_refused(AddressStash(PUBLIC_KEY))


def test_a_chunk_copied_to_another_position_is_refused() -> None:
    add_chunk(0)
    signature = SIGNER.sign(chunk_message("evm", 5, addresses_of(0)))
    execute("UPDATE address_chunks SET signature = %s", (signature,))

    expect_refused(AddressStash(PUBLIC_KEY))


def test_a_process_without_the_public_key_gives_out_no_address() -> None:
    add_chunk(0)

    expect_refused(AddressStash(""))


def test_an_invalid_public_key_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        AddressStash("c2hvcnQ=")


def test_the_pool_continues_after_a_bad_chunk() -> None:
    add_chunk(0, signer=Ed25519PrivateKey.from_private_bytes(b"\2" * 32))
    add_chunk(1)
    stash = AddressStash(PUBLIC_KEY)
    for _ in range(CHUNK // STASH):
        expect_refused(stash)

    assert stash.take("evm")[0] == CHUNK


def test_the_cache_of_verified_chunks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_pool, "VERIFIED_CHUNKS_MAX", 2)
    for chunk in range(5):
        add_chunk(chunk)
    stash = AddressStash(PUBLIC_KEY)
    for _ in range(5 * CHUNK):
        stash.take("evm")

    assert len(stash._verified["evm"]) == 2


def test_reservations_continue_after_the_server_closed_the_connection(database: str) -> None:
    add_chunk(0)
    stash = AddressStash(PUBLIC_KEY)
    with psycopg2.connect(database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    # The first step may be the one that notices it.
    try:
        stash.take("evm")
    except StoreUnavailableError:
        connect(database)

    assert stash.take("evm")[1].startswith("0x")


# A restored database ---------------------------------------------------------------------------------------


def test_after_a_restore_no_address_shown_to_a_buyer_is_given_out_again() -> None:
    for chunk in range(2):
        add_chunk(chunk)
    assert signing_stops.renew_pool("evm") is None
    taken = reserve("evm", 3)
    reservations.give_back("evm", taken[0])
    age_everything()
    execute("UPDATE database_marks SET system_identifier = 'another'")
    first = signing_stops.renew_pool("evm")
    assert first == 2 * CHUNK + reservations.SKIPPED
    assert signing_stops.renew_pool("evm") is None
    assert (level("evm"), reserve("evm", 9)) == (-reservations.SKIPPED, [])
    reclaim("evm")
    age_everything()
    reclaim("evm")
    assert reserve("evm", 9) == []

    for chunk in range(2, 2 + reservations.SKIPPED // CHUNK + 1):
        add_chunk(chunk)
    assert reserve("evm", 2) == [first, first + 1]
