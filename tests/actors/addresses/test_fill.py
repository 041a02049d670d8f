"""The signer fills the address pool, and maintenance returns lost reservations."""

import time
from collections.abc import Iterator

import pytest
import structlog

from actors import context
from actors.addresses import fill as address_fill
from actors.addresses.fill import fill_address_pool, fill_pool
from actors.addresses.reclaim import reclaim_addresses
from actors.signer import ability, failed_start, held_keys
from chains.keys import Keys
from chains.keystore import KeystoreError
from core.catalogue.catalogue import load_catalogue
from core.settings.settings import SettingsError, load_settings
from models.addresses.pool import AddressStash, fill
from models.addresses.reservations import CHUNK, level, next_chunk, reserve
from models.db.base import execute, one, rows
from models.spends import signer_states

pytestmark = pytest.mark.usefixtures("database")

MNEMONIC = "abandon " * 11 + "about"
KEYS = Keys(MNEMONIC)
ETHEREUM = load_catalogue("development").networks["ethereum"]


@pytest.fixture(autouse=True)
def signer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The process keeps its pace, which an earlier test's database set.
    monkeypatch.setattr(address_fill, "_demand", address_fill._Demand())
    monkeypatch.setattr(ability, "_Noted", type("_Noted", (ability._Noted,), {}))
    configure(KEYS.pool_public_key)
    yield
    held_keys.keys.cache_clear()


def configure(public_key: str) -> None:
    env = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1/unused",
        "REDIS_URL": "redis://127.0.0.1/unused",
        "WALLET_MNEMONIC": MNEMONIC,
        "POOL_LOW": "100",
        "POOL_HIGH": "200",
        "ADDRESS_PUBLIC_KEY": public_key,
    }
    context.configure(load_settings(env, role="signer"))
    held_keys.keys.cache_clear()


def test_an_empty_pool_is_filled_to_the_high_mark() -> None:
    fill_address_pool("evm")

    assert 200 <= level("evm") < 200 + CHUNK


def test_the_pool_has_the_wallets_addresses_in_order() -> None:
    fill_address_pool("evm")
    stash = AddressStash(KEYS.pool_public_key)

    assert [stash.take("evm") for _ in range(70)] == list(enumerate(KEYS.deposit_addresses(ETHEREUM, range(70))))


def test_a_pool_above_the_low_mark_is_not_filled() -> None:
    fill_address_pool("evm")
    before = next_chunk("evm")
    reserve("evm", level("evm") - 100)

    fill_address_pool("evm")

    assert (level("evm"), next_chunk("evm")) == (100, before)


def test_a_pool_below_the_low_mark_is_filled_again() -> None:
    fill_address_pool("evm")
    reserve("evm", level("evm") - 99)

    fill_address_pool("evm")

    assert 200 <= level("evm") < 200 + CHUNK


def test_a_pool_emptied_faster_is_filled_further(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(address_fill, "monotonic", lambda: clock[0])
    fill_address_pool("evm")
    reserve("evm", 150)
    clock[0] += 1

    fill_address_pool("evm")

    # At 150 a second: the addresses of ten seconds, refilled after five.
    assert 1500 <= level("evm") < 1500 + CHUNK
    reserve("evm", level("evm") - 749)
    clock[0] += 1000
    fill_address_pool("evm")
    assert level("evm") >= 749
    for _ in range(100):
        clock[0] += 1
        fill_address_pool("evm")
    reserve("evm", level("evm") - 100)
    clock[0] += 1_000_000
    fill_address_pool("evm")
    assert level("evm") == 100, "addresses taken long ago do not count"


def test_two_concurrent_fillings_leave_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another signer writes the second chunk while this one derives it.
    def interrupted(family: str, chunk: int, addresses: tuple[str, ...], signature: bytes) -> bool:
        if chunk == 1:
            assert fill(family, chunk, addresses, signature)
        return fill(family, chunk, addresses, signature)

    monkeypatch.setattr(address_fill, "fill", interrupted)

    assert fill_pool(ETHEREUM, KEYS, low=100, high=200) == CHUNK
    assert next_chunk("evm") == 2
    assert one("SELECT count(*) FROM pool_addresses") == (2 * CHUNK,)


def test_a_signer_that_can_sign_says_so_in_its_row_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    fill_address_pool("evm")
    assert rows("SELECT problem FROM signer_states") == [("",)]
    assert signer_states.problems() == []

    execute("UPDATE signer_states SET noted_at = noted_at - interval '16 s'")
    fill_address_pool("evm")
    assert one("SELECT noted_at < clock_timestamp() - interval '15 s' FROM signer_states") == (True,)
    monkeypatch.setattr(ability._Noted, "due_at", 0.0)
    fill_address_pool("evm")
    assert one("SELECT noted_at < clock_timestamp() - interval '15 s' FROM signer_states") == (False,)


def test_a_signer_without_its_passphrase_says_so_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Keys:
        raise KeystoreError("wrong passphrase")

    monkeypatch.setattr(ability, "keys", fail)
    fill_address_pool("evm")

    assert signer_states.problems() == ["wrong passphrase"]
    monkeypatch.setattr(ability, "keys", held_keys.keys)
    fill_address_pool("evm")
    assert signer_states.problems() == []


def test_a_signer_of_another_hot_wallet_says_so_in_its_row() -> None:
    execute("INSERT INTO treasury_addresses (network, role, address) VALUES ('ethereum', 'hot', '0xother')")
    context.configure(context.context().settings.model_copy(update={"rpc_urls": {"ethereum": ("http://127.0.0.1:1",)}}))

    fill_address_pool("evm")

    assert signer_states.problems() == ["the hot wallet of ethereum is not of this keystore"]
    execute("UPDATE treasury_addresses SET address = %s", (KEYS.hot_address(ETHEREUM),))
    fill_address_pool("evm")
    assert signer_states.problems() == []


def test_a_signer_with_another_wallet_writes_nothing() -> None:
    configure(Keys("test " * 11 + "junk").pool_public_key)

    with structlog.testing.capture_logs() as logs:
        fill_address_pool("evm")

    assert level("evm") == 0
    assert [entry["log_level"] for entry in logs] == ["critical"]
    assert signer_states.problems() == ["ADDRESS_PUBLIC_KEY does not belong to this keystore"]


def test_a_signer_works_without_the_public_key() -> None:
    configure("")

    fill_address_pool("evm")

    assert level("evm") >= 200


def test_no_secret_is_logged_or_stored() -> None:
    with structlog.testing.capture_logs() as logs:
        fill_address_pool("evm")

    assert logs
    assert "abandon" not in repr(logs)
    stored = one("SELECT string_agg(c::text, ' ') FROM address_chunks c")
    assert stored is not None
    assert "abandon" not in stored[0]


def test_the_wallet_is_opened_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(held_keys, "load_keys", lambda settings: opened.append(settings) or KEYS)  # type: ignore[func-returns-value]
    for _ in range(3):
        fill_address_pool("evm")

    assert len(opened) == 1


def test_filling_is_fast_enough_for_a_new_gateway() -> None:
    started = time.process_time()
    fill_pool(ETHEREUM, KEYS, low=1, high=1_000)

    # About 10,000 addresses a second were measured; a tenth of that would be enough.
    assert time.process_time() - started < 1.0


def test_lost_reservations_are_returned() -> None:
    fill_address_pool("evm")
    reserve("evm", 5)
    reclaim_addresses()
    execute("UPDATE address_marks SET marked_at = marked_at - interval '1 hour' WHERE marked_at <> 'epoch'")
    before = level("evm")

    reclaim_addresses()

    assert level("evm") == before + 5


def test_a_problem_that_lasts_is_recorded_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(Keys("test " * 11 + "junk").pool_public_key)
    fill_address_pool("evm")
    execute("UPDATE signer_states SET noted_at = noted_at - interval '16 s'")

    fill_address_pool("evm")
    assert one("SELECT noted_at < clock_timestamp() - interval '15 s' FROM signer_states") == (True,)
    monkeypatch.setattr(ability._Noted, "due_at", 0.0)
    fill_address_pool("evm")
    assert one("SELECT noted_at < clock_timestamp() - interval '15 s' FROM signer_states") == (False,)


@pytest.mark.parametrize("url", ["", "postgresql://127.0.0.1/unused"])
def test_a_signer_that_refuses_to_start_says_so_where_it_can(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    connected: list[str] = []
    monkeypatch.setattr(failed_start.base, "connect", lambda url, **_: connected.append(url))
    monkeypatch.setattr(failed_start.base, "close", lambda: connected.append("closed"))

    failed_start.report(SettingsError(["SIGNER_RATES: is required", "WALLET_KEYSTORE: is no file"], database_url=url))

    assert connected == [*([url] if url else []), "closed"]
    assert signer_states.problems() == ["SIGNER_RATES: is required; WALLET_KEYSTORE: is no file"]
