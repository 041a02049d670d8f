"""Creates batches and does their items: each once, as its own endpoint would, and in order if requested."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from actors.batches import items as batch_items
from actors.batches import ticks
from core.errors import BatchDisabled
from models.addresses.pool import STASH
from models.addresses.reservations import level
from models.batches.items import Leased
from models.db.base import execute, one, rows
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.merchants import rows as merchants
from models.queue.calls import ReplayedError
from tests.actors.batches.world import (
    AGNOSTIC,
    FREE_ADDRESSES,
    PAYMENT,
    PAYOUT,
    configure,
    count,
    items_of,
    key_of,
    pass_by,
    run_all,
    status_of,
    statuses,
    take,
    work_on,
)
from tests.models.builders import Chain, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import paid
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import FEE, RECIPIENT, USDT, events_of, rich_shop, trade
from tests.models.queue.builders import info

pytestmark = pytest.mark.usefixtures("free_addresses")


@pytest.fixture
def shop() -> UUID:
    """A merchant with 100 USDT and an endpoint."""
    return rich_shop()


@pytest.fixture
def key(shop: UUID) -> str:
    return key_of(shop)


def payouts_of(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [PAYOUT | {"order_id": f"salary-{number}"} | more for number in numbers]


def payment_of(shop: UUID, **order: Any) -> InvoiceRow:
    """Create a payment by a batch of its own."""
    batch_id = take(shop, [PAYMENT | order])
    run_all()
    invoice = invoices.find(shop, invoice_id=UUID(items_of(batch_id)[0].result["uuid"]))
    assert invoice is not None
    return invoice


# Creation ---------------------------------------------------------------------------------------------------------


def test_a_batch_is_stored_whole_and_its_actor_is_notified(shop: UUID, rung: list[str]) -> None:
    batch_id = take(shop, [PAYMENT | {"order_id": "a"}, 5, {"order_id": 7}], on_error="stop", principal="pk_me")

    assert rows("SELECT id, kind, on_error, status, count, created_by, request_id FROM batches") == [
        (batch_id, "payment", "stop", "pending", 3, "pk_me", "r")
    ]
    stored = rows("SELECT position, order_id, status FROM batch_items WHERE batch_id = %s ORDER BY 1", (batch_id,))
    assert stored == [(0, "a", "pending"), (1, "", "pending"), (2, "", "pending")]
    assert rung == ["run_batches"]


def test_a_batch_may_have_the_maximum_number_of_items(shop: UUID) -> None:
    batch_id = take(shop, [AGNOSTIC] * 5_000)

    assert one("SELECT count(*), min(position), max(position) FROM batch_items WHERE batch_id = %s", (batch_id,)) == (
        5_000, 0, 4_999,
    )  # fmt: skip


def test_the_same_key_returns_the_same_batch(shop: UUID) -> None:
    batch_id = take(shop, [AGNOSTIC], call=info(shop, "k"))

    with pytest.raises(ReplayedError) as again:
        take(shop, [AGNOSTIC], call=info(shop, "k"))

    assert str(batch_id) in (again.value.response or "")
    assert count("batches") == 1


def test_a_gateway_with_batches_disabled_refuses_new_ones_but_ends_old_ones(database: str, shop: UUID) -> None:
    before = take(shop, [AGNOSTIC], call=info(shop, "k"))
    configure(database, BATCHES_ENABLED="false")

    with pytest.raises(BatchDisabled):
        take(shop, [AGNOSTIC])
    with pytest.raises(ReplayedError):
        take(shop, [AGNOSTIC], call=info(shop, "k"))

    run_all()
    assert count("batches") == 1
    assert statuses(before) == ["success"]


# Payments -----------------------------------------------------------------------------------------------------------


def test_batch_payments_equal_single_ones(shop: UUID) -> None:
    batch_id = take(shop, [PAYMENT | {"order_id": "a"}, AGNOSTIC])

    run_all()

    coin, agnostic = (item.result for item in items_of(batch_id))
    stored = invoices.find(shop, invoice_id=UUID(coin["uuid"]))
    assert stored is not None
    assert (coin["order_id"], coin["payment_status"], coin["address"]) == ("a", "check", stored.address)
    assert agnostic["payment_status"] == "select"
    assert status_of(batch_id) == "completed"
    assert count("calls") == 1, "an item leaves no call behind"


def test_an_order_id_with_a_payment_returns_it(shop: UUID) -> None:
    batch_id = take(shop, [PAYMENT | {"order_id": "a"}] * 3)

    run_all()

    assert len({item.result["uuid"] for item in items_of(batch_id)}) == 1
    assert count("invoices") == 1


def test_an_existing_payment_is_returned_even_if_it_could_not_be_created_now(shop: UUID) -> None:
    take(shop, [PAYMENT | {"order_id": "a"}])
    run_all()
    again = take(shop, [PAYMENT | {"order_id": "a", "amount": "0.01"}])

    run_all()

    assert statuses(again) == ["success"]


def test_an_expired_payment_is_revived_if_requested(shop: UUID) -> None:
    expired, live = (payment_of(shop, order_id=order) for order in ("a", "b"))
    execute("UPDATE invoices SET status = 'expired', is_final = true WHERE id = %s", (expired.id,))
    batch_id = take(shop, [PAYMENT | {"order_id": order, "is_refresh": True} for order in ("a", "b", "c")])

    run_all()

    results = [item.result for item in items_of(batch_id)]
    assert [item["uuid"] for item in results[:2]] == [str(expired.id), str(live.id)]
    assert {item["payment_status"] for item in results} == {"check"}


def test_a_malformed_item_fails_alone_with_its_own_error(shop: UUID) -> None:
    broken = {
        "request.bad_field": [None, 5, "text", [], PAYMENT | {"order_id": "\ud800"}, PAYMENT | {"theme": "blue"}],
        "payment.bad_amount": [{}, PAYMENT | {"amount": 10**40}, PAYMENT | {"amount": "1e3"}],
        "payment.bad_accuracy": [PAYMENT | {"accuracy_payment_percent": float("inf")}],
        "payment.bad_url_callback": [PAYMENT | {"url_callback": "http://127.0.0.1/"}],
        "payment.below_minimum": [PAYMENT | {"amount": "0.01"}],
    }
    batch_id = take(shop, [*(item for items in broken.values() for item in items), PAYMENT])

    run_all()

    assert statuses(batch_id) == [*(code for code, items in broken.items() for _ in items), "success"]
    assert all(item.message for item in items_of(batch_id) if item.code)
    assert count("invoices") == 1


def test_a_batch_leaves_addresses_for_single_payments(database: str, shop: UUID) -> None:
    configure(database, POOL_LOW=str(2 * FREE_ADDRESSES), POOL_HIGH="5000")
    batch_id = take(shop, [PAYMENT, AGNOSTIC])

    run_all()

    assert statuses(batch_id) == ["pending", "success"]
    configure(database, POOL_LOW=str(2 * FREE_ADDRESSES - 2), POOL_HIGH="5000")
    pass_by(2)
    run_all()
    assert statuses(batch_id) == ["success", "success"]


def test_unused_addresses_return_to_the_pool(shop: UUID) -> None:
    take(shop, [PAYMENT | {"order_id": "a"}] * 40)

    run_all()

    # One has an owner, and the process holds at most a stash of them.
    assert level("evm") >= FREE_ADDRESSES - 1 - STASH


# Payouts and refunds ------------------------------------------------------------------------------------------------


def test_batch_payouts_hold_their_money_and_notify_the_signer(shop: UUID, key: str, rung: list[str]) -> None:
    batch_id = take(shop, payouts_of(1, 2), kind="payout", principal=key)

    run_all()

    made = [item.result for item in items_of(batch_id)]
    assert [item["status"] for item in made] == ["process", "process"]
    assert balances_of(shop)["payout_held"] == 2 * (USDT + FEE)
    assert events_of(UUID(made[0]["uuid"])) == ["payout.approved"]
    assert rows("SELECT DISTINCT created_by, request_id FROM payouts") == [(key, "r")]
    assert [bell for bell in rung if bell != "run_batches"] == ["deliver_webhooks", "broadcast:ethereum"] * 2


def test_batch_payouts_fail_one_by_one(shop: UUID, key: str) -> None:
    first = payouts_of(1)[0]
    orders = [
        first,
        first | {"amount": "2"},
        PAYOUT,
        *payouts_of(2, amount="1000"),
        *payouts_of(3, address="0x1"),
        first,
    ]
    batch_id = take(shop, orders, kind="payout", principal=key)

    run_all()

    assert statuses(batch_id) == [
        "success", "success", "payout.order_id_required", "payout.insufficient_funds", "payout.bad_address", "success",
    ]  # fmt: skip
    assert len({item.result["uuid"] for item in items_of(batch_id) if item.result}) == 1
    assert balances_of(shop)["payout_held"] == USDT + FEE


def test_refunds_are_made_once(shop: UUID, key: str) -> None:
    chain = Chain()
    payment = paid(chain, payment_of(shop, order_id="order-1"))
    order = {"order_id": "order-1", "address": RECIPIENT, "amount": "1"}
    batch_id = take(shop, [order, order, {"order_id": "none"}, {"uuid": "x"}], kind="refund", principal=key)

    run_all()

    assert statuses(batch_id) == ["success", "success", "payment.not_found", "payment.bad_uuid"]
    assert {item.result["payment_uuid"] for item in items_of(batch_id)[:2]} == {str(payment.id)}
    assert rows("SELECT count(*) FROM payouts WHERE invoice_id = %s", (payment.id,)) == [(1,)]


def test_an_item_finds_no_object_of_another_merchant(shop: UUID, key: str) -> None:
    other = merchant()
    theirs = paid(Chain(), payment_of(other, order_id="theirs"))
    take(shop, [AGNOSTIC | {"order_id": "mine"}])
    orders = [{"uuid": str(theirs.id), "address": RECIPIENT}, {"order_id": "theirs", "address": RECIPIENT}]
    batch_id = take(shop, orders, kind="refund", principal=key)
    same = take(shop, [PAYMENT | {"order_id": "theirs"}])

    run_all()

    assert statuses(batch_id) == ["payment.not_found"] * 2
    assert items_of(same)[0].result["uuid"] != str(theirs.id)


def test_a_revoked_keys_batch_moves_no_money(shop: UUID, key: str) -> None:
    ids = [
        take(shop, payouts_of(1), kind="payout", principal=key),
        take(shop, [{"order_id": "a"}], kind="refund", principal=key),
        take(shop, [AGNOSTIC], principal=key),
    ]
    merchants.revoke_key(key)

    run_all()

    assert [statuses(batch_id) for batch_id in ids] == [["merchant.unknown_key"], ["merchant.unknown_key"], ["success"]]
    assert "payout_held" not in balances_of(shop)


# In order -----------------------------------------------------------------------------------------------------------


def test_in_order_the_first_failure_skips_the_rest(shop: UUID, key: str) -> None:
    orders = [*payouts_of(1, 2), PAYOUT, *payouts_of(*range(3, 30))]
    batch_id = take(shop, orders, kind="payout", on_error="stop", principal=key)

    run_all()

    assert statuses(batch_id) == ["success", "success", "payout.order_id_required", *["batch.skipped"] * 27]
    assert {(item.message or "").startswith("skipped") for item in items_of(batch_id)[3:]} == {True}
    assert (status_of(batch_id), count("payouts")) == ("completed", 2)


def test_several_workers_keep_the_order(shop: UUID) -> None:
    batch_id = take(shop, [AGNOSTIC] * 40, on_error="stop")

    assert at_once(4, lambda _: work_on()) == [None] * 4

    assert statuses(batch_id) == ["success"] * 40
    # Ids grow with time.
    made = [item.result["uuid"] for item in items_of(batch_id)]
    assert made == sorted(made)
    assert count("invoices") == 40


def test_a_postponed_item_is_not_overtaken_in_order(shop: UUID) -> None:
    ordered = take(shop, [PAYMENT, AGNOSTIC], on_error="stop")
    other = take(shop, [AGNOSTIC])
    execute("DELETE FROM rates WHERE currency = 'USDT'")
    ticks.context().market.forget()

    run_all()

    assert (statuses(ordered), statuses(other)) == (["pending", "pending"], ["success"])
    trade(USDT="1")
    pass_by(2)
    run_all()
    assert statuses(ordered) == ["success", "success"]


# Temporary and lasting failures -----------------------------------------------------------------------------------


def test_a_temporary_failure_is_retried_a_bounded_number_of_times(shop: UUID) -> None:
    execute("DELETE FROM rates WHERE currency = 'USDT'")
    batch_id = take(shop, [PAYMENT, AGNOSTIC])

    for pause_s in ticks.PAUSES_S:
        run_all()
        assert statuses(batch_id) == ["pending", "success"]
        assert status_of(batch_id) == "processing"
        pass_by(pause_s + 1)
    run_all()

    assert statuses(batch_id) == ["invoice.quote_failed", "success"]
    assert status_of(batch_id) == "completed"


def test_a_bug_fails_its_item_alone_and_shows_no_details(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [{"amount": "1"}, AGNOSTIC])
    read = batch_items.read_payment

    def stumble(ctx: Any, item: Leased) -> Any:
        if item.position == 0:
            raise ZeroDivisionError("secret words")
        return read(ctx, item)

    monkeypatch.setattr(batch_items, "read_payment", stumble)
    logged: list[tuple[str, int]] = []
    exception = SimpleNamespace(exception=lambda event, **fields: logged.append((event, fields["position"])))
    monkeypatch.setattr(ticks, "log", exception)
    run_all()

    assert statuses(batch_id) == ["gateway.internal_error", "success"]
    assert "secret words" not in (items_of(batch_id)[0].message or "")
    assert logged == [("batch.item_failed", 0)]
