"""Creates payouts once an order_id, from available money; those of a mass call each by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count as count_up
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg2
import pytest

from actors import context
from actors.payouts import gas_reserves
from actors.payouts import orders as payout_orders
from actors.payouts.calls import create_payout, create_payouts, set_payout_fees
from core.errors import (
    ComplianceAddressBlocked,
    DomainError,
    GatewayBusy,
    GatewayInternalError,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    PayoutAmountBelowFee,
    PayoutAssetMismatch,
    PayoutBadAmount,
    PayoutConvertFrozen,
    PayoutConvertInsufficient,
    PayoutDestinationInternal,
    PayoutDuplicateReference,
    PayoutFeeUnavailable,
    PayoutFrozen,
    PayoutFundsMaturing,
    PayoutInsufficientFunds,
    PayoutMemoUnsupported,
    PayoutUnknownCurrency,
)
from models.db.base import (
    DEADLOCK,
    LOCK_NOT_AVAILABLE,
    QUERY_CANCELED,
    StoreUnavailableError,
    execute,
    repeat_on_deadlock,
    rows,
    transaction,
    value,
)
from models.ledger.ledger import AVAILABLE, DEBT, EQUITY, GATEWAY, MATURING, PAYOUT_HELD, Account, Transfer, post
from models.outcomes import endings
from models.payouts import conversion, freezes
from models.payouts import rows as payouts
from models.queue import calls
from models.queue.calls import AbandonedError, CallInfo, ReplayedError, begin
from models.spends import signing_stops, unexplained
from tests.actors.asking import ask, configure
from tests.models.builders import assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import FEE, RECIPIENT, USDT, charge, events_of, fund, rich_shop, stock, trade
from tests.models.queue.builders import info
from tests.models.spends.departures import a_departure

KEY = "pk_creator"
_orders = count_up(1)


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    """Configure a gateway with providers for ethereum and bsc and a fee for USDT."""
    configure(database)
    charge()
    trade(USDT="1", ETH="2000")
    yield
    assert_sound()


@pytest.fixture
def shop() -> UUID:
    """A merchant with 100 USDT."""
    return rich_shop()


def order(**fields: Any) -> dict[str, Any]:
    """Return a body that sends 25 USDT under its own order_id."""
    return {
        "order_id": f"payout-{next(_orders)}",
        "amount": "25",
        "currency": "USDT",
        "network": "ethereum",
        "address": RECIPIENT,
    } | fields


def create(merchant_id: UUID, body: dict[str, Any] | None = None, call: CallInfo | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = ask(create_payout, call or info(merchant_id), order() if body is None else body)
    return answer


def mass(
    merchant_id: UUID, *items: object, call: CallInfo | None = None, source: str | None = None
) -> list[dict[str, Any]]:
    texts = [json.dumps(item) for item in items]
    answer = ask(create_payouts, call or info(merchant_id), {"source": source, "items": texts})
    return cast("list[dict[str, Any]]", answer["items"])


def stored(made: dict[str, Any]) -> payouts.PayoutRow:
    row = payouts.lock(UUID(made["uuid"]))
    assert row is not None
    return row


def count(table: str) -> int:
    return value(f"SELECT count(*) FROM {table}")


# One --------------------------------------------------------------------------------------------------------


def test_a_payout_holds_amount_and_fee_and_is_approved_at_once(shop: UUID, rung: list[str]) -> None:
    made = create(shop, order(order_id="payout-a", priority="high"))

    assert made | {"uuid": "", "created_at": "", "updated_at": ""} == {
        "uuid": "",
        "order_id": "payout-a",
        "amount": "25",
        "currency": "USDT",
        "network": "ethereum",
        "address": RECIPIENT,
        "txid": "",
        "status": "process",
        "is_final": False,
        "approval_required": False,
        "source": "api",
        "memo": "",
        "commission": "1.2",
        "confirmations": 0,
        "error": None,
        "created_at": "",
        "updated_at": "",
    }
    row = stored(made)
    assert (row.status, row.kind, row.funded_from, row.created_by, row.request_id, row.priority) == (
        "approved", "payout", "available", KEY, "r", "high",
    )  # fmt: skip
    assert row.address == RECIPIENT.lower()
    assert balances_of(shop) == {AVAILABLE: 100 * USDT - 25 * USDT - FEE, PAYOUT_HELD: 25 * USDT + FEE}
    assert events_of(row.id) == ["payout.approved"]
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]


@pytest.mark.parametrize(
    ("setting", "asked", "on_top"),
    [(True, None, True), (True, False, False), (False, None, False), (False, True, True)],
)
def test_the_fee_is_paid_on_top_or_from_the_amount(shop: UUID, setting: bool, asked: bool | None, on_top: bool) -> None:  # noqa: FBT001
    ask(set_payout_fees, info(shop), {"is_subtract": setting})

    row = stored(create(shop, order() | ({} if asked is None else {"is_subtract": asked})))

    assert row.amount_units == 25 * USDT
    assert row.to_units == 25 * USDT - (0 if on_top else FEE)
    assert balances_of(shop)[PAYOUT_HELD] == row.held_units == row.to_units + FEE
    assert row.is_fee_on_top is on_top


def test_the_fee_setting_is_returned_and_stored(shop: UUID) -> None:
    assert ask(set_payout_fees, info(shop), {}) == {"is_subtract": True}
    assert ask(set_payout_fees, info(shop), {"is_subtract": False}) == {"is_subtract": False}
    assert ask(set_payout_fees, info(shop), {}) == {"is_subtract": False}


def test_a_repeated_order_id_returns_its_payout_whatever_else_changed(shop: UUID) -> None:
    first = create(shop, order(order_id="once"))

    for changed in ({"amount": "1"}, {"currency": "NONE"}, {"address": "nonsense"}, {"network": "bsc"}, {"memo": "x"}):
        assert create(shop, order(order_id="once") | changed) == first
    assert count("payouts") == 1
    assert balances_of(shop)[PAYOUT_HELD] == 25 * USDT + FEE


def test_an_order_id_stays_used_after_its_payout_failed(shop: UUID) -> None:
    first = create(shop, order(order_id="once"))
    with transaction():
        endings.end(context.context().catalogue, UUID(first["uuid"]), "failed", error="reverted")

    again = create(shop, order(order_id="once"))

    assert (again["uuid"], again["status"], again["error"]) == (first["uuid"], "fail", "reverted")
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_a_refused_order_id_may_be_used_again(shop: UUID) -> None:
    call = info(shop, key="k")
    with pytest.raises(PayoutInsufficientFunds):
        create(shop, order(order_id="again", amount="100"), call)
    assert (count("payouts"), count("calls")) == (0, 0)

    assert create(shop, order(order_id="again"), info(shop, key="k", fingerprint=b"other"))["status"] == "process"


def test_concurrent_calls_with_one_order_id_get_the_same_payout(shop: UUID) -> None:
    answers = at_once(4, lambda _: create(shop, order(order_id="race")))

    assert len({cast("dict[str, Any]", answer)["uuid"] for answer in answers}) == 1
    assert balances_of(shop)[PAYOUT_HELD] == 25 * USDT + FEE


def test_two_payouts_never_spend_the_same_money(shop: UUID) -> None:
    answers = at_once(6, lambda number: create(shop, order(order_id=f"race-{number}")))

    assert sum(isinstance(answer, dict) for answer in answers) == 3
    assert {type(answer) for answer in answers} == {dict, PayoutInsufficientFunds}
    assert balances_of(shop) == {AVAILABLE: 100 * USDT - 3 * (25 * USDT + FEE), PAYOUT_HELD: 3 * (25 * USDT + FEE)}


def test_the_index_is_the_last_guard_against_a_second_payout(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    create(shop, order(order_id="once"))
    monkeypatch.setattr(payouts, "find_by_order", lambda *_: None)

    with pytest.raises(PayoutDuplicateReference):
        create(shop, order(order_id="once"))
    assert balances_of(shop)[PAYOUT_HELD] == 25 * USDT + FEE


def test_a_redelivered_call_is_answered_and_its_key_is_bound_to_its_body(shop: UUID) -> None:
    body, call = order(from_currency="USDT", currency="ETH"), info(shop, key="k")
    charge("ETH", units=10**15)
    stock(10**18, currency="ETH")
    first = create(shop, body | {"amount": "0.01"}, call)
    assert "convert" in first

    for again in (call, info(shop, key="k")):
        with pytest.raises(ReplayedError) as replay:
            create(shop, body, again)
        assert json.loads(replay.value.response or "") == first
    with pytest.raises(IdempotencyKeyReused):
        create(shop, body, info(shop, key="k", fingerprint=b"other"))


def test_a_payout_of_a_co_signing_merchant_waits(shop: UUID, rung: list[str]) -> None:
    execute("UPDATE merchants SET is_cosign_required = true")

    made = create(shop)

    assert (made["status"], made["approval_required"]) == ("awaiting_cosign", False)
    assert events_of(UUID(made["uuid"])) == ["payout.awaiting_cosign"]
    assert balances_of(shop)[PAYOUT_HELD] == 25 * USDT + FEE
    assert rung == ["deliver_webhooks"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"currency": "DOGE"}, PayoutUnknownCurrency),
        ({"currency": "USD"}, PayoutUnknownCurrency),
        ({"network": None}, PayoutAssetMismatch),
        ({"network": "bitcoin"}, PayoutAssetMismatch),
        ({"network": "nowhere"}, PayoutAssetMismatch),
        ({"network": "polygon"}, PayoutAssetMismatch),
        ({"amount": "0"}, PayoutBadAmount),
        ({"amount": "0.000000"}, PayoutBadAmount),
        ({"amount": "1.0000000"}, PayoutBadAmount),
        ({"amount": "0.000001"}, PayoutBadAmount),
        ({"memo": "thanks"}, PayoutMemoUnsupported),
        ({"amount": "1.2", "is_subtract": False}, PayoutAmountBelowFee),
        ({"network": "bsc"}, PayoutFeeUnavailable),
    ],
)
def test_an_invalid_payout_is_refused(shop: UUID, changed: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        create(shop, order() | changed)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


@pytest.mark.parametrize(
    ("to", "least"),
    [
        ("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", 546),
        ("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", 540),
        ("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", 294),
    ],
)
def test_a_dust_amount_for_a_kind_of_bitcoin_address_is_refused(shop: UUID, database: str, to: str, least: int) -> None:
    configure(database, BITCOIN_RPC_URLS="http://127.0.0.1:1")
    charge("BTC", "bitcoin", 400)
    trade(BTC="50000")
    fund(shop, 10_000, currency="BTC")
    body = {"currency": "BTC", "network": "bitcoin", "address": to, "is_subtract": False}

    with pytest.raises(PayoutAmountBelowFee, match="does not carry"):
        create(shop, order(amount=f"{(400 + least - 1) / 10**8:.8f}", **body))
    alone, taken = mass(
        shop,
        order(amount=f"{(400 + least - 1) / 10**8:.8f}", **body),
        order(amount=f"{(400 + least) / 10**8:.8f}", **body),
    )

    assert (alone["success"], taken["success"], count("payouts")) == (False, True, 1)
    assert stored(taken).to_units == least


def test_the_smallest_payout_that_covers_its_fee_is_sent(shop: UUID) -> None:
    row = stored(create(shop, order(amount="1.200001", is_subtract=False)))

    assert row.to_units == 10**12


@pytest.mark.parametrize("age_s", [301, 3000])
def test_a_stale_fee_counts_as_unknown(shop: UUID, age_s: int) -> None:
    execute("UPDATE network_fees SET quoted_at = app_now() - make_interval(secs => %s)", (age_s,))

    with pytest.raises(PayoutFeeUnavailable):
        create(shop)


def test_maturing_funds_and_missing_funds_have_different_errors(shop: UUID) -> None:
    body = order(amount="140")
    with pytest.raises(PayoutInsufficientFunds):
        create(shop, body)

    fund(shop, 50 * USDT, kind=MATURING)
    with pytest.raises(PayoutFundsMaturing):
        create(shop, body)
    with pytest.raises(PayoutInsufficientFunds):
        create(shop, order(amount="150"))
    with transaction():
        post("matured", [Transfer(Account(shop, MATURING, "USDT"), Account(shop, AVAILABLE, "USDT"), 50 * USDT)])
    assert create(shop, body)["status"] == "process"


def test_our_own_addresses_are_refused(shop: UUID) -> None:
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 1, %s)", (RECIPIENT.lower(),))

    with pytest.raises(PayoutDestinationInternal):
        create(shop)


def test_addresses_on_the_deny_list_are_refused(shop: UUID, database: str, tmp_path: Path) -> None:
    listed = tmp_path / "deny"
    listed.write_text(f"{RECIPIENT.lower()}  # whoever that is\n")
    configure(database, DENY_LIST=str(listed))

    with pytest.raises(ComplianceAddressBlocked):
        create(shop)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_a_freeze_refuses_new_payouts_and_still_shows_existing_ones(shop: UUID) -> None:
    first = create(shop, order(order_id="before"))
    freezes.freeze("network", "ethereum", reason="test", frozen_by="test")

    with pytest.raises(PayoutFrozen):
        create(shop)
    assert create(shop, order(order_id="before")) == first | {"waiting_for": "freeze"}
    freezes.unfreeze("network", "ethereum")
    assert create(shop)["status"] == "process"


def test_a_debtor_of_a_coin_pays_none_of_it_out(shop: UUID) -> None:
    charge("ETH", units=10**15)
    stock(10**18, currency="ETH")
    with transaction():
        post("debt", [Transfer(Account(shop, DEBT, "USDT"), Account(GATEWAY, EQUITY, "USDT"), 1)])

    with pytest.raises(PayoutFrozen):
        create(shop)
    # Nor by a conversion into another coin.
    with pytest.raises(PayoutFrozen):
        create(shop, order(currency="ETH", amount="0.01", from_currency="USDT"))


def test_a_balance_that_a_restore_brought_back_is_converted_only_for_a_repeated_payout(shop: UUID) -> None:
    charge("ETH", units=10**15)
    stock(10**18, currency="ETH")
    assert signing_stops.watch("ethereum") is None
    execute("UPDATE database_marks SET timeline = '00000000'")
    body = order(currency="ETH", amount="0.01", from_currency="USDT")
    with pytest.raises(PayoutFrozen):
        create(shop, body)
    with transaction():
        unexplained.note(a_departure(recipient=RECIPIENT.lower(), token_units=10**16))
    create(shop, body)
    assert rows("SELECT status FROM payouts") == [("approved",)]


def test_a_conversion_commits_or_rolls_back_with_its_payout(shop: UUID) -> None:
    charge("ETH", units=10**15)
    stock(10**18, currency="ETH")
    body = order(currency="ETH", from_currency="USDT")

    with pytest.raises(PayoutConvertInsufficient):
        create(shop, body | {"amount": "0.05"})
    made = create(shop, body | {"amount": "0.01", "order_id": "converted"})

    # 0.011 ETH at 2000 USD, half a percent more expensive: 22 / 0.995.
    assert made["convert"] == {
        "from_currency": "USDT",
        "to_currency": "ETH",
        "from_amount": "22.110553",
        "rate": "0.0004975",
    }
    assert balances_of(shop) == {AVAILABLE: 100 * USDT - 22_110_553 * 10**12}
    assert balances_of(shop, "ETH") == {PAYOUT_HELD: 11 * 10**15}
    assert conversion.owned_units("ETH") == 10**18 - 11 * 10**15


def test_conversions_keep_a_reserve_of_the_coin_for_gas(shop: UUID, database: str) -> None:
    """Twenty transfers at the cap of 300 gwei: 0.42 ETH; the catalogue's most expensive coin takes 70 000 gas."""
    charge("ETH", units=10**15)
    fund(shop, 2_000 * USDT)
    stock(42 * 10**16 + 11 * 10**15 - 1, currency="ETH")
    body = order(currency="ETH", from_currency="USDT", amount="0.01")
    with pytest.raises(PayoutConvertFrozen):
        create(shop, body)
    stock(1, currency="ETH")
    create(shop, body)
    assert conversion.owned_units("ETH") == 42 * 10**16
    with pytest.raises(PayoutConvertFrozen):
        create(shop, body | {"order_id": "another"})

    configure(database, GAS_RESERVE_TRANSFERS="0")
    create(shop, body | {"order_id": "another"})


def test_every_served_network_with_a_coin_for_gas_has_a_reserve(database: str) -> None:
    configure(database, BASE_RPC_URLS="http://127.0.0.1:1", ETHEREUM_GAS_CAP_GWEI="10")
    reserves = [gas_reserves.reserve_units(context.context(), coin) for coin in ("ETH", "BNB", "POL", "USDT")]
    assert reserves == [20 * 70_000 * (10 + 20) * 10**9, 20 * 70_000 * 20 * 10**9, 0, 0]


# Mass calls -------------------------------------------------------------------------------------------------


def test_items_of_a_mass_call_succeed_or_fail_alone_in_the_calls_order(shop: UUID, rung: list[str]) -> None:
    good, poor, last = order(), order(amount="90"), order(source="manual")

    items = mass(shop, good, {"order_id": "bare"}, poor, 7, None, [], {"order_id": ["x"]}, last, source="manual")

    assert [item["success"] for item in items] == [True, False, False, False, False, False, False, True]
    assert [item["order_id"] for item in items] == [
        good["order_id"], "bare", poor["order_id"], "", "", "", "", last["order_id"],
    ]  # fmt: skip
    assert items[0].keys() == {"success", "order_id", "uuid", "status", "is_final", "approval_required"}
    assert (items[0]["status"], items[0]["is_final"], items[0]["approval_required"]) == ("process", False, False)
    assert items[1] == {"success": False, "order_id": "bare", "message": "amount: is missing"}
    assert items[2]["message"] == PayoutInsufficientFunds.text
    assert [stored(items[index]).source for index in (0, 7)] == ["manual", "manual"]
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]


def test_the_calls_source_applies_only_to_items_without_one(shop: UUID) -> None:
    items = mass(shop, order(source="api"), order(), source="manual")

    assert [stored(item).source for item in items] == ["api", "manual"]


def test_an_item_with_unstorable_text_fails_alone(shop: UUID) -> None:
    items = mass(shop, order(order_id="\ud800"), order(memo="\udfff"), order(order_id="x" * 300), order())

    assert [item["success"] for item in items] == [False, False, False, True]
    assert [item["order_id"] for item in items][:3:2] == ["?", "x" * 255]


def test_an_order_id_twice_in_one_call_makes_one_payout(shop: UUID) -> None:
    first, second, third = mass(shop, order(order_id="once"), order(order_id="once", amount="1"), order())

    assert first == second
    assert third["uuid"] != first["uuid"]
    assert count("payouts") == 2


def test_a_mass_call_with_a_key_is_stored_with_its_refusals(shop: UUID) -> None:
    items = [order(), order(amount="0")]
    first = mass(shop, *items, call=info(shop, key="k"))

    with pytest.raises(ReplayedError) as replay:
        mass(shop, *items, call=info(shop, key="k"))
    assert json.loads(replay.value.response or "") == {"items": first}
    with pytest.raises(IdempotencyKeyReused):
        mass(shop, order(), call=info(shop, key="k", fingerprint=b"other"))
    assert count("payouts") == 1


def test_a_mass_calls_key_is_locked_while_it_works(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[Exception | Any] = []
    create_one = payout_orders.create

    def meanwhile(*args: Any, **kwargs: Any) -> dict[str, Any]:
        def try_it(_: int) -> None:
            with transaction():
                begin(info(shop, key="k", fingerprint=b"another body"))

        refused.extend(at_once(1, try_it))
        refused.extend(at_once(1, lambda _: mass(shop, order(), call=info(shop, key="k", fingerprint=b"o"))))
        return create_one(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(payout_orders, "create", meanwhile)
        items = mass(shop, order(), call=info(shop, key="k"))

    assert [type(error) for error in refused] == [IdempotencyInProgress, IdempotencyInProgress]
    assert items[0]["success"]
    assert count("payouts") == 1


def test_a_merchant_has_one_mass_call_at_a_time_and_delays_no_others(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, create_one = merchant(), payout_orders.create
    fund(other, 100 * USDT)
    outcomes: list[Any] = []

    def meanwhile(*args: Any, **kwargs: Any) -> dict[str, Any]:
        if not outcomes:
            outcomes.append(None)
            outcomes.extend(at_once(1, lambda _: mass(shop, order())))
            outcomes.extend(at_once(1, lambda _: mass(other, order())))
            outcomes.extend(at_once(1, lambda _: create(other)))
        return create_one(*args, **kwargs)

    monkeypatch.setattr(payout_orders, "create", meanwhile)
    assert mass(shop, order())[0]["success"]

    assert isinstance(outcomes[1], GatewayBusy)
    assert outcomes[2][0]["success"]
    assert outcomes[3]["status"] == "process"
    assert count("payouts") == 3


def test_a_redelivered_mass_call_makes_no_payout_twice(shop: UUID) -> None:
    call, items = info(shop), [order(), order()]
    first = mass(shop, *items, call=call)

    with pytest.raises(ReplayedError) as replay:
        mass(shop, *items, call=call)

    assert json.loads(replay.value.response or "") == {"items": first}
    assert count("payouts") == 2


def test_an_interrupted_mass_call_leaves_no_payout_and_its_repetition_makes_all(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, call = [order(), order(), order()], info(shop, key="k")
    create_one, made = payout_orders.create, count_up(1)

    def dies(*args: Any, **kwargs: Any) -> dict[str, Any]:
        if next(made) == 3:
            execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return create_one(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(payout_orders, "create", dies)
        with pytest.raises(StoreUnavailableError):
            mass(shop, *items, call=call)
    assert (count("payouts"), count("calls"), count("webhook_deliveries")) == (0, 0, 0)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}

    again = mass(shop, *items, call=info(shop, key="k"))

    assert [item["success"] for item in again] == [True, True, True]
    assert {item["uuid"] for item in again} == {str(payout_id) for (payout_id,) in rows("SELECT id FROM payouts")}


def test_a_mass_call_whose_caller_got_503_leaves_no_payout_funded(shop: UUID) -> None:
    call = info(shop)
    assert calls.abandon(call) is None

    with pytest.raises(AbandonedError):
        mass(shop, order(), order(), call=call)

    assert count("payouts") == 0
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_a_deadlock_restarts_the_whole_call_and_fails_no_item(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    create_one, tries = payout_orders.create, count_up(1)

    def victim(*args: Any, **kwargs: Any) -> dict[str, Any]:
        if next(tries) == 2:
            execute(raised(DEADLOCK))
        return create_one(*args, **kwargs)

    monkeypatch.setattr(payout_orders, "create", victim)
    items = repeat_on_deadlock(lambda: mass(shop, order(), order()))

    assert [item["success"] for item in items] == [True, True]
    assert count("payouts") == 2


def raised(code: str) -> str:
    """Return a statement that fails with a code of PostgreSQL."""
    return f"DO $$ BEGIN RAISE EXCEPTION 'failed' USING ERRCODE = '{code}'; END $$"


@pytest.mark.parametrize(
    ("broken", "refusal"),
    [
        ("SELECT 1 / 0", GatewayInternalError),
        (raised(LOCK_NOT_AVAILABLE), GatewayBusy),
        (raised(QUERY_CANCELED), GatewayBusy),
    ],
)
def test_an_item_with_a_database_error_fails_alone(
    shop: UUID, monkeypatch: pytest.MonkeyPatch, broken: str, refusal: type[DomainError]
) -> None:
    create_one = payout_orders.create

    def breaks(ctx: Any, asker: Any, body: Any, **others: Any) -> dict[str, Any]:
        if body.memo == "broken":
            execute(broken)
        return create_one(ctx, asker, body, **others)

    monkeypatch.setattr(payout_orders, "create", breaks)
    items = mass(shop, order(), order(memo="broken"), order())

    assert [item["success"] for item in items] == [True, False, True]
    assert items[1]["message"] == refusal().message


def test_an_error_without_a_code_fails_the_whole_call(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_args: Any, **_others: Any) -> None:
        raise psycopg2.DatabaseError("SSL SYSCALL error: EOF detected")

    monkeypatch.setattr(payout_orders, "create", cut)
    with pytest.raises(psycopg2.DatabaseError, match="EOF"):
        mass(shop, order(), order())

    assert count("payouts") == 0


# The signer's limit -----------------------------------------------------------------------------------------


def test_a_payout_above_the_signers_limit_is_refused(shop: UUID, database: str) -> None:
    """The signer would never sign it, and its money would be held for good."""
    configure(database, SIGNER_PAYOUT_MAX_USD="25")
    trade(USDT="1.01")
    with pytest.raises(PayoutBadAmount, match="25 USD"):
        create(shop)
    (answer,) = mass(shop, order(amount="24.8"))[:1]
    (refused,) = mass(shop, order(amount="24.76"))[:1]

    assert (answer["success"], refused["success"]) == (False, False)
    assert create(shop, order(amount="24.75"))["status"] == "process"
    assert balances_of(shop)[AVAILABLE] == 100 * USDT - stored_units(shop)


def stored_units(shop: UUID) -> int:
    return int(value("SELECT sum(held_units) FROM payouts WHERE merchant_id = %s", (shop,)))


def test_a_coin_without_a_rate_is_not_refused_by_the_limit(shop: UUID, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="0")
    execute("DELETE FROM rates")
    assert create(shop)["status"] == "process"
