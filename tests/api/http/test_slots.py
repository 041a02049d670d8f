"""Reads wait for PostgreSQL in slots: one that is slow or silent leaves threads for everything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

from api.app import LARGE_WAITING_MAX
from api.http.dispatch import LARGE_BYTES
from api.http.slots import Slots
from api.routes import ENDPOINTS
from core.errors import GatewayBusy
from core.ids import uuid7
from core.settings.settings import SettingsError
from models.db.paging import Page
from models.invoices import history as invoice_history
from models.invoices.rows import InvoiceRow
from models.merchants.rows import ApiKeyRow
from tests.api.conftest import Client, FakeCaller, Keys, code_of, make_settings

SLOTS = 2
INFO = {"order_id": "nobody"}
PAGE = "/pay/0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


@pytest.mark.usefixtures("database")
def test_reads_that_wait_for_a_silent_postgresql_leave_the_rest_of_the_threads(
    make_client: Callable[..., Client], keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Semaphore(0), threading.Event()
    find = keys.find

    def silent(public_id: str) -> ApiKeyRow | None:
        asked.release()
        answers.wait(60)
        return find(public_id)

    monkeypatch.setattr(keys, "find", silent)
    client = make_client(WEB_THREADS="4", CALL_SLOTS="2", READ_SLOTS=str(SLOTS))
    with ThreadPoolExecutor(SLOTS) as pool:
        waiting = [pool.submit(client.post, "/v1/payment/info", INFO) for _ in range(SLOTS)]
        for _ in waiting:
            assert asked.acquire(timeout=60)
        began_at = time.monotonic()

        refused = client.post("/v1/payment/info", INFO, public_id="pk_payment")
        page = client.simulate_get(PAGE)
        assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (503, "gateway.busy", "1")
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert [client.simulate_get(path).status_code for path in ("/healthz", "/openapi.json")] == [200, 200]
        assert time.monotonic() - began_at < 20
        answers.set()
        assert [code_of(answer.result()) for answer in waiting] == ["payment.not_found"] * SLOTS
    assert client.simulate_get(PAGE).status_code == 404


def test_a_crowd_of_reads_passes_through_few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a thread that has a slot may itself wait for a processor for longer than reads are patient.
    monkeypatch.setattr("api.http.slots.PATIENCE_S", 60)
    slots = Slots(SLOTS)

    def read(_: int) -> bool:
        with slots.taken():
            time.sleep(0.001)
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(read, range(64)))


def test_a_slot_is_free_again_whatever_happened_in_it() -> None:
    slots = Slots(1)
    for _ in range(3):
        with pytest.raises(LookupError), slots.taken():
            raise LookupError
    with slots.taken(), pytest.raises(GatewayBusy), slots.taken():
        pass


def test_one_merchant_s_reads_leave_half_of_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.slots.PATIENCE_S", 0.01)
    slots, mine = Slots(4), uuid7()
    with slots.taken(mine), slots.taken(mine):
        with pytest.raises(GatewayBusy), slots.taken(mine):
            pytest.fail("it has half of them")
        with slots.taken(uuid7()), slots.taken():
            pass


def test_large_requests_of_a_merchant_are_worked_on_one_by_one(
    make_client: Callable[..., Client], caller: FakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As patient as a busy machine takes.
    monkeypatch.setattr("api.app.LARGE_PATIENCE_S", 60)
    client = make_client()
    reached, go_on = threading.Semaphore(0), threading.Event()

    def wait(_: object) -> dict[str, str]:
        reached.release()
        go_on.wait(60)
        return {"uuid": "sold"}

    monkeypatch.setattr(caller, "result", wait)
    large = {"amount": "1", "currency": "USD", "more": "x" * LARGE_BYTES}
    with ThreadPoolExecutor(LARGE_WAITING_MAX + 4) as pool:
        mine = [pool.submit(client.post, "/v1/payment", large) for _ in range(LARGE_WAITING_MAX + 2)]
        assert reached.acquire(timeout=60)
        refused = next(as_completed(mine)).result()
        assert code_of(refused) == "gateway.busy"
        others = [
            pool.submit(client.post, "/v1/payment", large, public_id="pk_payment"),
            pool.submit(client.post, "/v1/payment", large | {"more": ""}),
        ]
        for _ in others:
            assert reached.acquire(timeout=60)
        go_on.set()
        assert [answer.result().status_code for answer in others] == [200, 200]
        assert [answer.result().status_code for answer in mine].count(200) == LARGE_WAITING_MAX + 1


def test_a_merchant_goes_through_few_lists_at_once(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.app.SEARCHES_MAX", 1)
    monkeypatch.setattr("api.app.SEARCHES_WAITING_MAX", 0)
    client, reached, go_on = make_client(), threading.Event(), threading.Event()

    def wait(*_: object, **__: object) -> Page[InvoiceRow]:
        reached.set()
        go_on.wait(60)
        return Page(items=[], next_cursor=None)

    monkeypatch.setattr(invoice_history, "read_page", wait)
    with ThreadPoolExecutor(2) as pool:
        mine = pool.submit(client.post, "/v1/payment/history", {})
        assert reached.wait(60)
        assert code_of(client.post("/v1/payment/history", {})) == "gateway.busy"
        other = pool.submit(client.post, "/v1/payment/history", {}, public_id="pk_payment")
        go_on.set()
        assert [answer.result().status_code for answer in (mine, other)] == [200, 200]


def test_every_list_is_bounded_by_merchant() -> None:
    paged = {"limit", "offset", "cursor"}
    lists = {e.path for e in ENDPOINTS if e.request is not None and paged & set(e.request.__struct_fields__)}

    # Its items are found by their place, and many of them have their merchant's turn.
    assert lists - {e.path for e in ENDPOINTS if e.is_search} == {"/v1/batch/info"}


def test_there_are_fewer_slots_than_threads() -> None:
    assert make_settings(WEB_THREADS="32").reads_max == 24
    assert make_settings(WEB_THREADS="2", CALL_SLOTS="1").reads_max == 1
    with pytest.raises(SettingsError, match="READ_SLOTS"):
        make_settings(WEB_THREADS="32", READ_SLOTS="32")
