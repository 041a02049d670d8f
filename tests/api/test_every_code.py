"""Every error that an endpoint declares is reached over HTTP, with the real actors.

CASES has a request for each (endpoint, code) of the endpoints' own errors. The common errors of all endpoints of a kind
are tested on each of them below. An endpoint or a code without a case fails here.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from typing import Any, Final

import pytest
from falcon import testing

from actors import context
from api.app import create_app
from api.endpoints import ANY_KEY, Endpoint
from api.routes import ENDPOINTS
from core.errors import ERRORS, DomainError, GatewayBusy, IdempotencyInProgress, IdempotencyKeyReused
from core.merchants.split_schemas import RULES_MAX
from models.db import base
from models.db.base import StoreUnavailableError
from models.ledger.ledger import MATURING
from tests.api.conftest import Client, FakeCaller, Keys, code_of, make_settings, path_of
from tests.api.live import Live
from tests.api.routes.payment_links.rows import FIXED, checked_out, opened
from tests.api.routes.payout_links.rows import ANN, BOB, LINK, enrich, linked, turn
from tests.api.routes.payouts.rows import held_payout
from tests.api.routes.refunds.rows import (
    ELSEWHERE,
    ELSEWHERE_IS_OURS,
    Make,
    blocked_wallet,
    paid_payment,
    sending_back,
    short_payment,
)
from tests.api.rows import UNIT
from tests.models.payouts.builders import charge, fund

Case = Callable[[Live], testing.Result]

UNKNOWN: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
USD: Final = {"amount": "10", "currency": "USD"}
USDT: Final = USD | {"to_currency": "USDT", "network": "ethereum"}
ETHER: Final = {"amount": "1", "currency": "ETH", "network": "ethereum"}
WALLET: Final = {"currency": "USDT", "network": "ethereum"}
TRANSFER: Final = {"amount": "1", "currency": "USDT"}
FREEZE_ALL: Final = "INSERT INTO payout_freezes (scope, reason, frozen_by) VALUES ('all', 'r', 'operator')"
OWN_ETHER: Final = (
    "WITH account AS (INSERT INTO accounts (holder, kind, currency, network) VALUES"
    " ('00000000-0000-0000-0000-000000000000', 'equity', 'ETH', ''), (gen_random_uuid(), 'debt', 'ETH', '')"
    " RETURNING id) INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)"
    " SELECT 'test', 0, max(id), min(id), 'ETH', 1e18::numeric FROM account"
)
ABSENT: Final = object()
PAYOUT: Final = WALLET | {"order_id": "p", "amount": "25", "address": "0x52908400098527886E0F7030069857D2E4169EE7"}
AUTO_WITHDRAW: Final = WALLET | {"address": PAYOUT["address"], "threshold": "500"}
CONVERTED: Final = {"currency": "ETH", "amount": "0.01", "from_currency": "USDT", "fee": 10**15}
BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def sending(path: str, body: Any, **options: Any) -> Case:
    return lambda live: live.post(path, body, **options)


def without_rates(path: str, body: Any, condition: str = "true") -> Case:
    def case(live: Live) -> testing.Result:
        live.forget_rates(condition)
        return live.post(path, body)

    return case


def configured(path: str, body: Any, **env: str) -> Case:
    """Ask a gateway without a pool of addresses, and with these settings."""

    def case(live: Live) -> testing.Result:
        live.configure(**env)
        return live.post(path, body)

    return case


def without_networks(live: Live) -> testing.Result:
    live.configure(ETHEREUM_RPC_URLS="", BSC_RPC_URLS="")
    return live.post("/v1/payment", USD)


def choosing(currency: str = "USDT", network: str | None = "ethereum", **columns: Any) -> Case:
    return lambda live: live.choose(live.agnostic(**columns), currency, network)


def choosing_without_rates(**columns: Any) -> Case:
    def case(live: Live) -> testing.Result:
        invoice_id = live.agnostic(**columns)
        live.forget_rates()
        return live.choose(invoice_id, "ETH")

    return case


def choosing_without_addresses(live: Live) -> testing.Result:
    live.configure()
    return live.choose(live.agnostic())


def not_ready(live: Live) -> testing.Result:
    live.queues.error = ConnectionError("redis is down")
    return live.client.simulate_get("/readyz")


def lookups(name: str, path: str, **more: Any) -> dict[tuple[str, str], Case]:
    return {
        (name, "payment.bad_uuid"): sending(path, {"uuid": "x"} | more),
        (name, "payment.no_lookup"): sending(path, {} | more),
        (name, "payment.not_found"): sending(path, {"uuid": UNKNOWN} | more),
    }


def payout_lookups(name: str, path: str) -> dict[tuple[str, str], Case]:
    return {
        (name, "payout.bad_uuid"): sending(path, {"uuid": "x"}),
        (name, "payout.no_lookup"): sending(path, {}),
        (name, "payout.not_found"): sending(path, {"uuid": UNKNOWN}),
    }


def deciding(path: str, *, by: str = "pk_payout", sql: str = "SELECT 1", **columns: Any) -> Case:
    """Decide about a payout that pk_unified made, after some SQL."""

    def case(live: Live) -> testing.Result:
        payout = held_payout(live.shop, created_by="pk_unified", **columns)
        base.execute(sql)
        return live.post(path, {"uuid": str(payout.id)}, public_id=by)

    return case


def paying(*, fee: int | None = UNIT, sql: str = "SELECT 1", funds: int = 100, **changed: Any) -> Case:
    """Order a payout, of a merchant with some USDT, after some SQL."""

    def case(live: Live) -> testing.Result:
        if funds:
            fund(live.shop, funds * UNIT)
        for method in (("USDT", "ethereum"), ("ETH", "ethereum")) if fee is not None else ():
            charge(*method, units=fee)
        base.execute(sql)
        body = {name: value for name, value in (PAYOUT | changed).items() if value is not ABSENT}
        return live.post("/v1/payout", body)

    return case


def naming_a_denied_address(path: str, body: Any) -> Case:
    def case(live: Live) -> testing.Result:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as denied:
            denied.write(str(body["address"]))
            denied.flush()
            live.configure(DENY_LIST=denied.name)
        return live.post(path, body)

    return case


def paying_out_what_matures(live: Live) -> testing.Result:
    fund(live.shop, 100 * UNIT, kind=MATURING)
    charge()
    return live.post("/v1/payout", PAYOUT)


def paying_twice_at_the_same_moment(live: Live) -> testing.Result:
    fund(live.shop, 100 * UNIT)
    charge()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.payouts.rows.find_by_order", lambda *_: None)
        live.post("/v1/payout", PAYOUT)
        return live.post("/v1/payout", PAYOUT)


def reckoning(**changed: Any) -> Case:
    def case(live: Live) -> testing.Result:
        charge()
        return live.post("/v1/payout/calculate", {"amount": "1", "currency": "USDT", "network": "ethereum"} | changed)

    return case


def deciding_for_a_denied_address(live: Live) -> testing.Result:
    payout = held_payout(live.shop)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as denied:
        denied.write(payout.address)
        denied.flush()
        live.configure(DENY_LIST=denied.name)
    return live.post("/v1/payout/approve", {"uuid": str(payout.id)})


def transferring_without_an_owner(live: Live) -> testing.Result:
    base.execute("SET session_replication_role = replica")
    base.execute("DELETE FROM merchants WHERE id = %s", (live.shop,))
    return live.post("/v1/transfer/to-personal", TRANSFER)


def mailing_beyond_the_cap(live: Live) -> testing.Result:
    live.configure(SMTP_URL="smtp://127.0.0.1:1", EMAIL_RECIPIENT_DAY_MAX="1")
    live.post(SEND_EMAIL, {"uuid": live.invoice(), "email": "ann@mail.example"})
    return live.post(SEND_EMAIL, {"uuid": live.invoice(), "email": "ann@mail.example"})


def beyond_the_open_items(path: str, field: str) -> Case:
    def case(live: Live) -> testing.Result:
        live.configure(BATCH_OPEN_ITEMS_MERCHANT_MAX="5000")
        live.post(path, {field: [{}] * 5_000})
        return live.post(path, {field: [{}]})

    return case


def batches(name: str, path: str, field: str) -> dict[tuple[str, str], Case]:
    return {
        (name, "batch.empty"): sending(path, {field: []}),
        (name, "batch.too_large"): sending(path, {field: [{}] * 5_001}),
        (name, "batch.bad_on_error"): sending(path, {field: [{}], "on_error": "halt"}),
        (name, "batch.too_many_open"): beyond_the_open_items(path, field),
        (name, "batch.disabled"): configured(path, {field: [{}]}, BATCHES_ENABLED="0"),
    }


def linking(*, sql: str = "SELECT 1", **body: Any) -> Case:
    """Create a cheque, after some SQL."""

    def case(live: Live) -> testing.Result:
        enrich(live.shop)
        base.execute(sql)
        context.context().market.forget()
        return live.post("/v1/payout/link", LINK | body)

    return case


def linking_twice(live: Live) -> testing.Result:
    linked(live, reference="w-1")
    return live.post("/v1/payout/link", LINK | {"reference": "w-1"})


def linking_while_it_matures(live: Live) -> testing.Result:
    enrich(live.shop)
    fund(live.shop, 1000 * UNIT, kind="maturing")
    return live.post("/v1/payout/link", LINK | {"amount": "1500"})


def cancelling(status: str, *, sql: str = "SELECT 1") -> Case:
    def case(live: Live) -> testing.Result:
        link = linked(live)
        turn(link, status)
        base.execute(sql)
        return live.post("/v1/payout/link/cancel", {"link_id": link["link_id"]})

    return case


def claiming(status: str = "funded", *, sql: str = "SELECT 1", denied: str = "", **body: Any) -> Case:
    """Claim a cheque that is in some status, after some SQL, with a deny list."""

    def case(live: Live) -> testing.Result:
        link = linked(live)
        turn(link, status)
        base.execute(sql)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as listed:
            listed.write(denied)
            listed.flush()
            live.configure(DENY_LIST=listed.name)
        return live.client.public_post(f"/v1/claim/{link['claim_token']}", {"address": BOB} | body)

    return case


def sent_back(name: str, path: str, make: Make, field: str) -> dict[tuple[str, str], Case]:
    """Return what stops every refund; `field` names the address."""
    return {
        (name, "refund.bad_address"): sending_back(path, make, **{field: "0x1"}),
        (name, "payout.frozen"): sending_back(path, make, sql=FREEZE_ALL),
        (name, "payout.fee_unavailable"): sending_back(path, make, fee=None),
        (name, "payout.destination_internal"): sending_back(path, make, sql=ELSEWHERE_IS_OURS, **{field: ELSEWHERE}),
        (name, "compliance.address_blocked"): sending_back(path, make, denied=ELSEWHERE, **{field: ELSEWHERE}),
    }


def sharing(percent: float, *, before: int = 1) -> Case:
    """Add this many rules to the stranger, and then one more."""

    def case(live: Live) -> testing.Result:
        body = {"recipient_merchant_id": str(live.stranger), "percent": percent}
        for _ in range(before):
            live.post(SPLIT_RULE, body)
        return live.post(SPLIT_RULE, body)

    return case


def checking_out(*, sql: str = "SELECT 1", of: dict[str, Any] | None = None, **order: Any) -> Case:
    """Check a link of 10 USD out, or one with other fields, after some SQL."""

    def case(live: Live) -> testing.Result:
        link_id = opened(live, **(of or {}))
        base.execute(sql)
        context.context().market.forget()
        return checked_out(live, link_id, **order)

    return case


def with_links_disabled(live: Live) -> testing.Result:
    settings = make_settings(DATABASE_URL=live.settings.database_url, PAYMENT_LINKS_ENABLED="0")
    return Client(create_app(settings, caller=FakeCaller(), queues=live.queues)).simulate_get(f"/v1/link/{UNKNOWN}")


def checking_out_with(**env: str) -> Case:
    def case(live: Live) -> testing.Result:
        link_id = opened(live)
        live.configure(**env)
        return checked_out(live, link_id, **IN_USDT)

    return case


PAYMENT_LINK: Final = "/v1/payment/link"
IN_USDT: Final = {"currency": "USDT", "network": "ethereum"}
OPEN: Final = {"amount_mode": "open", "amount_min": "5"}
RANGE: Final = {"amount_mode": "range", "amount_min": "5", "amount_max": "9"}
SPLIT_RULE: Final = "/v1/split/rule"
REFUND: Final = "/v1/payment/refund"
RESOLVE: Final = "/v1/payment/resolve"
SEND_EMAIL: Final = "/v1/payment/send-email"
WALLET_REFUND: Final = "/v1/wallet/blocked-address-refund"
TO_ELSEWHERE: Final = {"refund_address": ELSEWHERE}
# More than the signer lets go at once.
TOO_MUCH: Final = 10**10 * UNIT

CASES: Final[dict[tuple[str, str], Case]] = {
    **lookups("refundPayment", REFUND),
    **sent_back("refundPayment", REFUND, paid_payment, "address"),
    ("refundPayment", "refund.nothing_to_refund"): sending_back(REFUND, lambda live: {"uuid": live.invoice()}),
    ("refundPayment", "refund.network_mismatch"): sending_back(REFUND, paid_payment, network="bsc"),
    ("refundPayment", "refund.bad_amount"): sending_back(REFUND, paid_payment, amount="0"),
    ("refundPayment", "refund.no_address"): sending_back(REFUND, lambda live: paid_payment(live, payer="")),
    ("refundPayment", "refund.exceeds_refundable"): sending_back(REFUND, paid_payment, amount="11"),
    ("refundPayment", "refund.insufficient_funds"): sending_back(REFUND, paid_payment, funds=0),
    ("refundPayment", "refund.funds_maturing"): sending_back(REFUND, paid_payment, kind=MATURING),
    **sent_back("resolvePayment", RESOLVE, short_payment, "address"),
    ("resolvePayment", "merchant.wrong_key_kind"): sending(
        RESOLVE, {"uuid": UNKNOWN, "action": "refund"}, public_id="pk_payment"
    ),
    ("resolvePayment", "refund.network_mismatch"): sending_back(RESOLVE, short_payment, network="bsc"),
    ("resolvePayment", "refund.no_address"): sending_back(RESOLVE, lambda live: short_payment(live, payer="")),
    ("resolvePayment", "payout.amount_below_fee"): sending_back(RESOLVE, short_payment, fee=5 * UNIT),
    ("resolvePayment", "payout.bad_amount"): sending_back(RESOLVE, lambda live: short_payment(live, TOO_MUCH)),
    **sent_back("refundBlockedWallet", WALLET_REFUND, blocked_wallet, "refund_address"),
    ("refundBlockedWallet", "payout.bad_amount"): sending_back(
        WALLET_REFUND, lambda live: blocked_wallet(live, TOO_MUCH)
    ),
    ("refundBlockedWallet", "wallet.bad_uuid"): sending(WALLET_REFUND, {"uuid": "x"} | TO_ELSEWHERE),
    ("refundBlockedWallet", "wallet.no_address"): sending(WALLET_REFUND, TO_ELSEWHERE),
    ("refundBlockedWallet", "wallet.static_not_found"): sending(WALLET_REFUND, {"uuid": UNKNOWN} | TO_ELSEWHERE),
    ("refundBlockedWallet", "refund.no_address"): sending(WALLET_REFUND, {"uuid": UNKNOWN}),
    ("refundBlockedWallet", "refund.nothing_to_refund"): sending_back(
        WALLET_REFUND, blocked_wallet, sql="UPDATE wallets SET blocked_at = NULL"
    ),
    ("refundBlockedWallet", "payout.amount_below_fee"): sending_back(WALLET_REFUND, blocked_wallet, fee=5 * UNIT),
    **{
        ("createPayment", code): sending("/v1/payment", body)
        for code, body in {
            "payment.bad_amount": USD | {"amount": "1e3"},
            "payment.unknown_currency": USD | {"currency": "KZT"},
            "payment.unknown_to_currency": USD | {"to_currency": "DOGE", "network": "ethereum"},
            "payment.to_currency_required": USD | {"network": "ethereum"},
            "payment.network_required": USD | {"to_currency": "USDT"},
            "payment.unsupported_network": USD | {"to_currency": "DAI", "network": "bsc"},
            "payment.bad_subtract": USDT | {"subtract": 101},
            "payment.bad_accuracy": USDT | {"accuracy_payment_percent": 0.00001},
            "payment.below_minimum": USDT | {"amount": "0.01"},
            "payment.bad_url_callback": USDT | {"url_callback": "http://169.254.169.254/"},
        }.items()
    },
    ("createPayment", "invoice.no_pay_asset"): without_networks,
    ("createPayment", "invoice.quote_failed"): without_rates("/v1/payment", USDT),
    ("createPayment", "invoice.fee_quote_failed"): without_rates("/v1/payment", ETHER),
    ("createPayment", "invoice.address_failed"): configured("/v1/payment", USDT),
    **lookups("getPayment", "/v1/payment/info"),
    **lookups("getPaymentQr", "/v1/payment/qr"),
    **lookups("resendPayment", "/v1/payment/resend"),
    **lookups("sendPaymentEmail", SEND_EMAIL),
    **lookups("getPaymentTimeline", "/v1/payment/timeline"),
    ("sendPaymentEmail", "email.bad_address"): sending(SEND_EMAIL, {"uuid": UNKNOWN, "email": "ann"}),
    ("sendPaymentEmail", "email.disabled"): lambda live: live.post(SEND_EMAIL, {"uuid": live.invoice()}),
    ("sendPaymentEmail", "email.too_many"): mailing_beyond_the_cap,
    ("sendPaymentEmail", "email.no_recipient"): lambda live: (
        live.configure(SMTP_URL="smtp://127.0.0.1:1"),
        live.post(SEND_EMAIL, {"uuid": live.invoice()}),
    )[1],
    **lookups("resolvePayment", "/v1/payment/resolve", action="accept"),
    ("resolvePayment", "payment.bad_action"): sending("/v1/payment/resolve", {"uuid": UNKNOWN, "action": "steal"}),
    ("resolvePayment", "payment.not_resolvable"): lambda live: live.post(
        "/v1/payment/resolve", {"uuid": live.invoice(), "action": "accept"}
    ),
    ("listPayments", "payment.bad_cursor"): sending("/v1/payment/history", {"cursor": "x"}),
    ("listPayments", "payment.bad_date"): sending("/v1/payment/history", {"date_from": "yesterday"}),
    ("setAcceptedMethods", "accepted.unknown_method"): sending(
        "/v1/payment/accepted", {"accepted": [{"currency": "DOGE", "network": "ethereum"}]}
    ),
    ("setDiscount", "discount.bad_percent"): sending("/v1/payment/discount", WALLET | {"discount_percent": 100}),
    ("setDiscount", "payment.unknown_currency"): sending(
        "/v1/payment/discount", {"currency": "USD", "network": "ethereum", "discount_percent": 1}
    ),
    ("setDiscount", "payment.unsupported_network"): sending(
        "/v1/payment/discount", {"currency": "DAI", "network": "bsc", "discount_percent": 1}
    ),
    ("setAccuracy", "accuracy.bad_percent"): sending("/v1/payment/accuracy", {"accuracy_percent": 5.1}),
    ("getPublicPayment", "pay.bad_uuid"): lambda live: live.client.simulate_get("/v1/pay/x"),
    ("getPublicPayment", "pay.not_found"): lambda live: live.client.simulate_get(f"/v1/pay/{UNKNOWN}"),
    ("selectMethod", "pay.bad_uuid"): lambda live: live.choose("x"),
    ("selectMethod", "pay.not_found"): lambda live: live.choose(UNKNOWN),
    ("selectMethod", "pay.not_selectable"): lambda live: live.choose(live.invoice()),
    ("selectMethod", "pay.unknown_currency"): choosing("DOGE"),
    ("selectMethod", "pay.method_not_accepted"): choosing("DAI", "bsc"),
    ("selectMethod", "pay.below_minimum"): choosing(price_units=1),
    ("selectMethod", "payment.bad_amount"): choosing(price_units=10**10),
    ("selectMethod", "payment.network_required"): choosing("USDT", None),
    ("selectMethod", "invoice.expired"): lambda live: live.choose(live.invoice(status="select")),
    ("selectMethod", "invoice.quote_failed"): choosing_without_rates(),
    ("selectMethod", "invoice.fee_quote_failed"): choosing_without_rates(price_currency="ETH", price_units=UNIT),
    ("selectMethod", "invoice.address_failed"): choosing_without_addresses,
    **{
        ("createPaymentLink", code): sending(PAYMENT_LINK, FIXED | body)
        for code, body in {
            "paylink.bad_mode": {"amount_mode": "any"},
            "paylink.unknown_currency": {"currency": "KZT"},
            "paylink.bad_amount": {"amount_fixed": "0"},
            "paylink.bad_min": RANGE | {"amount_min": "0"},
            "paylink.bad_max": RANGE | {"amount_max": None},
            "paylink.bad_range": RANGE | {"amount_min": "10"},
            "paylink.bad_pin": {"pinned_network": "ethereum"},
        }.items()
    },
    ("createPaymentLink", "paylink.disabled"): configured(PAYMENT_LINK, FIXED, PAYMENT_LINKS_ENABLED="0"),
    **{
        (name, code): sending(path, {"link_id": link_id, "active": True})
        for name, path in (("getPaymentLink", "/v1/payment/link/info"), ("togglePaymentLink", f"{PAYMENT_LINK}/toggle"))
        for code, link_id in (("paylink.bad_id", "x"), ("paylink.not_found", UNKNOWN))
    },
    ("getLink", "paylink.bad_id"): lambda live: live.client.simulate_get("/v1/link/x"),
    ("getLink", "paylink.not_found"): lambda live: live.client.simulate_get(f"/v1/link/{UNKNOWN}"),
    ("getLink", "paylink.disabled"): with_links_disabled,
    ("checkOutLink", "paylink.bad_id"): lambda live: checked_out(live, "x"),
    ("checkOutLink", "paylink.not_found"): lambda live: checked_out(live, UNKNOWN),
    ("checkOutLink", "paylink.disabled"): checking_out_with(PAYMENT_LINKS_ENABLED="0"),
    ("checkOutLink", "invoice.address_failed"): checking_out_with(),
    **{
        ("checkOutLink", code): checking_out(**case)
        for code, case in {
            "paylink.amount_required": {"of": OPEN},
            "paylink.not_positive": {"of": OPEN, "amount": "0"},
            "paylink.below_min": {"of": OPEN, "amount": "4.99"},
            "paylink.above_max": {"of": RANGE, "amount": "9.01"},
            "pay.unknown_currency": {"currency": "DOGE"},
            "pay.method_not_accepted": {"currency": "DAI", "network": "bsc"},
            "pay.below_minimum": {"of": OPEN | {"amount_min": None}, "amount": "0.01"},
            "payment.bad_amount": {"of": OPEN, "amount": "10000001"},
            "invoice.quote_failed": {"sql": "DELETE FROM rates"} | IN_USDT,
            "invoice.fee_quote_failed": {
                "of": {"currency": "ETH", "amount_fixed": "1"},
                "sql": "DELETE FROM rates",
                "currency": "ETH",
                "network": "ethereum",
            },
        }.items()
    },
    **{
        ("createPayoutLink", code): linking(**body)
        for code, body in {
            "payoutlink.unknown_currency": {"currency": "USD"},
            "payoutlink.unsupported_network": {"network": "tron"},
            "payoutlink.bad_amount": {"amount": "0"},
            "payoutlink.insufficient_funds": {"amount": "9999"},
            "payout.frozen": {"sql": FREEZE_ALL},
            "payout.fee_unavailable": {"sql": "DELETE FROM network_fees"},
        }.items()
    },
    ("createPayoutLink", "payoutlink.duplicate_reference"): linking_twice,
    ("createPayoutLink", "payoutlink.funds_maturing"): linking_while_it_matures,
    ("createPayoutLink", "payoutlink.disabled"): configured("/v1/payout/link", LINK, PAYOUT_LINKS_ENABLED="0"),
    ("createPayoutLinks", "payoutlink.disabled"): configured(
        "/v1/payout/link/batch", {"links": [LINK]}, PAYOUT_LINKS_ENABLED="0"
    ),
    ("createPayoutLinks", "payoutlink.empty_batch"): sending("/v1/payout/link/batch", {"links": []}),
    ("createPayoutLinks", "payoutlink.batch_too_large"): sending("/v1/payout/link/batch", {"links": [{}] * 501}),
    **{
        (name, code): sending(path, {"link_id": link_id})
        for name, path in (("getPayoutLink", "/v1/payout/link/info"), ("cancelPayoutLink", "/v1/payout/link/cancel"))
        for code, link_id in (("payoutlink.bad_id", "x"), ("payoutlink.not_found", UNKNOWN))
    },
    ("cancelPayoutLink", "payoutlink.not_cancellable"): cancelling("expired"),
    ("cancelPayoutLink", "payout.frozen"): cancelling(
        "funded", sql="INSERT INTO signing_stops (network, reason, sender) VALUES ('ethereum', 'restored', '')"
    ),
    ("getClaim", "payoutlink.not_found"): lambda live: live.client.simulate_get("/v1/claim/x"),
    ("claimPayoutLink", "payoutlink.not_found"): lambda live: live.client.public_post("/v1/claim/x", {"address": ANN}),
    **{
        ("claimPayoutLink", code): claiming(**case)
        for code, case in {
            "payoutlink.no_address": {"address": ""},
            "payoutlink.bad_address": {"address": "0x1"},
            "payoutlink.destination_internal": {
                "sql": f"INSERT INTO treasury_addresses VALUES ('ethereum', 'hot', '{BOB.lower()}')"
            },
            "compliance.address_blocked": {"denied": BOB},
            "payout.memo_too_long": {"memo": "m" * 121},
            "payout.memo_unsupported": {"memo": "m"},
            "payout.amount_below_fee": {
                "sql": "UPDATE payout_links SET (network, currency, amount_units) = ('bitcoin', 'BTC', 545)",
                "address": "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
            },
            "payout.frozen": {"sql": FREEZE_ALL},
            "payoutlink.expired": {"status": "expired"},
            "payoutlink.cancelled": {"status": "cancelled"},
            "payoutlink.claim_in_progress": {"status": "claiming"},
        }.items()
    },
    ("createWallet", "wallet.unknown_currency"): sending("/v1/wallet", {"currency": "USD"}),
    ("createWallet", "wallet.no_network"): sending("/v1/wallet", {"currency": "USDT"}),
    ("createWallet", "wallet.unsupported_network"): sending("/v1/wallet", {"currency": "USDT", "network": "tron"}),
    ("createWallet", "invoice.address_failed"): configured("/v1/wallet", WALLET),
    ("blockWallet", "wallet.no_address"): sending("/v1/wallet/block", {}),
    ("blockWallet", "wallet.static_not_found"): sending("/v1/wallet/block", {"address": "0x1"}),
    ("getWallet", "wallet.bad_uuid"): sending("/v1/wallet/info", {"uuid": "x"}),
    ("getWallet", "wallet.no_address"): sending("/v1/wallet/info", {}),
    ("getWallet", "wallet.static_not_found"): sending("/v1/wallet/info", {"uuid": UNKNOWN}),
    ("renderQr", "qr.no_address"): sending("/v1/wallet/qr", {}),
    **{
        ("setAutoWithdraw", code): sending("/v1/auto-withdraw", AUTO_WITHDRAW | body)
        for code, body in {
            "autowithdraw.unknown_currency": {"currency": "USD"},
            "autowithdraw.bad_address": {"address": "0x1"},
            "autowithdraw.bad_threshold": {"threshold": "0"},
        }.items()
    },
    ("setAutoWithdraw", "compliance.address_blocked"): naming_a_denied_address("/v1/auto-withdraw", AUTO_WITHDRAW),
    **batches("createPaymentBatch", "/v1/payment/batch", "payments"),
    **batches("createPayoutBatch", "/v1/payout/batch", "payouts"),
    **batches("createRefundBatch", "/v1/refund/batch", "refunds"),
    ("getBatch", "batch.bad_id"): sending("/v1/batch/info", {"batch_id": "x"}),
    ("getBatch", "batch.not_found"): sending("/v1/batch/info", {"batch_id": UNKNOWN}),
    ("registerWebhook", "webhook.no_url"): sending("/v1/webhooks", {}),
    ("registerWebhook", "webhook.bad_url"): sending("/v1/webhooks", {"url": "https://10.0.0.1/"}),
    ("listWebhookDeliveries", "webhook.bad_cursor"): sending("/v1/webhooks/deliveries", {"cursor": "x"}),
    ("redeliverWebhook", "webhook.not_found"): sending("/v1/webhooks/redeliver", {"delivery_id": UNKNOWN}),
    ("testWebhook", "webhook.no_url"): sending("/v1/webhooks/test", {}),
    ("addSplitRule", "split.bad_percent"): sending(SPLIT_RULE, {"recipient_merchant_id": UNKNOWN, "percent": 0}),
    ("addSplitRule", "split.unknown_recipient"): sending(SPLIT_RULE, {"recipient_merchant_id": UNKNOWN, "percent": 1}),
    ("addSplitRule", "split.over_100"): sharing(60),
    ("addSplitRule", "split.too_many_rules"): sharing(0.01, before=RULES_MAX),
    ("deleteSplitRule", "split.rule_not_found"): sending("/v1/split/rule/delete", {"rule_id": UNKNOWN}),
    ("setSplitConfig", "split.bad_hold"): sending("/v1/split/config/set", {"refund_hold_hours": 2161}),
    ("setIpAllowlist", "allowlist.bad_ip"): sending("/v1/ip-allowlist", {"ips": ["x"]}),
    ("setIpAllowlist", "allowlist.locks_you_out"): sending("/v1/ip-allowlist", {"ips": ["203.0.113.7"]}),
    **{
        ("createPayout", code): paying(**options)
        for code, options in {
            "payout.order_id_required": {"order_id": ABSENT},
            "payout.bad_amount": {"amount": "0"},
            "payout.unknown_currency": {"currency": "USD"},
            "payout.asset_mismatch": {"network": ABSENT},
            "payout.no_destination": {"address": ABSENT},
            "payout.bad_address": {"address": "0x1"},
            "payout.address_network_mismatch": {"address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
            "payout.destination_internal": {
                "sql": "INSERT INTO pool_addresses (family, ordinal, address)"
                " VALUES ('evm', 9999, '0x52908400098527886e0f7030069857d2e4169ee7')"
            },
            "payout.memo_too_long": {"memo": "x" * 121},
            "payout.memo_unsupported": {"memo": "x"},
            "payout.bad_url_callback": {"url_callback": "http://169.254.169.254/"},
            "payout.amount_below_fee": {"amount": "1", "is_subtract": False},
            "payout.fee_unavailable": {"fee": None},
            "payout.frozen": {"sql": FREEZE_ALL},
            "payout.insufficient_funds": {"funds": 0},
            "payout.from_currency_unsupported": {"from_currency": "ETH"},
            "payout.convert_same_asset": {"from_currency": "USDT"},
            "payout.convert_no_rate": CONVERTED | {"sql": "DELETE FROM rates"},
            "payout.convert_frozen": CONVERTED,
            "payout.convert_insufficient": CONVERTED | {"funds": 1, "sql": OWN_ETHER},
        }.items()
    },
    ("createPayout", "compliance.address_blocked"): naming_a_denied_address("/v1/payout", PAYOUT),
    ("createPayout", "payout.funds_maturing"): paying_out_what_matures,
    ("createPayout", "payout.duplicate_reference"): paying_twice_at_the_same_moment,
    ("calculatePayout", "payout.bad_amount"): reckoning(amount="0"),
    ("calculatePayout", "payout.unknown_currency"): reckoning(currency="USD"),
    ("calculatePayout", "payout.asset_mismatch"): reckoning(network="tron"),
    ("calculatePayout", "payout.amount_below_fee"): reckoning(is_subtract=False),
    ("calculatePayout", "payout.fee_unavailable"): reckoning(network="bsc"),
    ("createPayouts", "payout.empty_batch"): sending("/v1/payout/mass", {"payouts": []}),
    ("createPayouts", "payout.batch_too_large"): sending("/v1/payout/mass", {"payouts": [PAYOUT] * 101}),
    ("listPayouts", "payout.bad_cursor"): sending("/v1/payout/history", {"cursor": "x"}),
    ("listPayouts", "payout.bad_date"): sending("/v1/payout/history", {"date_to": "tomorrow"}),
    **payout_lookups("getPayout", "/v1/payout/info"),
    **payout_lookups("approvePayout", "/v1/payout/approve"),
    **payout_lookups("cancelPayout", "/v1/payout/cancel"),
    ("approvePayout", "payout.not_pending"): deciding("/v1/payout/approve", status="approved"),
    ("cancelPayout", "payout.not_pending"): deciding("/v1/payout/cancel", status="sent"),
    ("cancelPayout", "payout.frozen"): deciding("/v1/payout/cancel", status="approved", sql=FREEZE_ALL),
    ("approvePayout", "payout.approver_is_creator"): deciding("/v1/payout/approve", by="pk_unified"),
    ("approvePayout", "payout.frozen"): deciding("/v1/payout/approve", sql=FREEZE_ALL),
    ("approvePayout", "compliance.address_blocked"): deciding_for_a_denied_address,
    **{
        ("transferToPersonal", code): sending("/v1/transfer/to-personal", TRANSFER | body)
        for code, body in {
            "transfer.unknown_currency": {"currency": "USD"},
            "transfer.bad_amount": {"amount": "1e3"},
            "personal.insufficient": {"amount": "1"},
        }.items()
    },
    ("transferToPersonal", "transfer.no_personal_wallet"): transferring_without_an_owner,
    ("transferToPersonal", "payout.frozen"): lambda live: (
        base.execute(FREEZE_ALL),
        live.post("/v1/transfer/to-personal", TRANSFER),
    )[1],
    ("getReadiness", "gateway.not_ready"): not_ready,
}

# A body that breaks a field without a code of its own.
BAD_FIELDS: Final[dict[str, Any]] = {
    "refundPayment": {"order_id": 5},
    "refundBlockedWallet": {"address": "\x00"} | TO_ELSEWHERE,
    "createPayment": USD | {"theme": "blue"},
    "getPayment": {"order_id": 5},
    "listPayments": {"status": "payed"},
    "getPaymentQr": {"order_id": 5},
    "resolvePayment": {"action": "accept", "order_id": 5},
    "resendPayment": {"order_id": 5},
    "sendPaymentEmail": {"order_id": 5},
    "getPaymentTimeline": {"order_id": 5},
    "setAccuracy": {"enabled": "yes"},
    "createPaymentBatch": {"payments": 5},
    "createPayoutBatch": {"payouts": 5},
    "createRefundBatch": {"refunds": 5},
    "getBatch": {"batch_id": UNKNOWN, "offset": -1},
    "createPaymentLink": FIXED | {"expires_in": -1},
    "listPaymentLinks": {"offset": -1},
    "getPaymentLink": {"link_id": UNKNOWN, "offset": 10_001},
    "togglePaymentLink": {"link_id": UNKNOWN},
    "checkOutLink": {"payer_email": "nobody"},
    "addSplitRule": {"recipient_merchant_id": UNKNOWN, "percent": 1, "title": 5},
    "setSplitConfig": {"enabled": "yes"},
    "createPayoutLink": LINK | {"email": "nobody"},
    "listPayoutLinks": {"offset": -1},
    "claimPayoutLink": {"address": BOB, "memo": 5},
    "createWallet": WALLET | {"order_id": "payoutlink:1"},
    "blockWallet": {"address": "0x1", "is_force_block": "no"},
    "getWallet": {"address": "0x1", "offset": -1},
    "renderQr": {"address": "\x00"},
    "listExchangeRates": {"currency_from": 5},
    "createPayout": PAYOUT | {"order_id": "refund:1"},
    "calculatePayout": WALLET | {"amount": "1", "is_subtract": 1},
    "getPayout": {"order_id": 5},
    "listPayouts": {"status": "sent"},
    "createPayouts": {"payouts": "many"},
    "setPayoutFees": {"is_subtract": "yes"},
    "setAutoWithdraw": {"enabled": "yes"},
    "approvePayout": {"order_id": 5},
    "cancelPayout": {"order_id": 5},
    "transferToPersonal": TRANSFER | {"order_id": "refund:1"},
    "listWebhookDeliveries": {"status": "lost"},
    "redeliverWebhook": {},
    "testWebhook": {"event": "invoice.lost"},
}


def declared(code: str) -> list[Endpoint]:
    """Return the endpoints that declare a code as one of its kind."""
    return [e for e in ENDPOINTS if code in {error.code for error in e.all_errors()}]


def by_name(endpoint: Endpoint) -> str:
    return endpoint.name


def of_all(condition: Callable[[Endpoint], object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if condition(e)], ids=by_name)


def ask(client: Client, endpoint: Endpoint, **options: Any) -> testing.Result:
    """Send an endpoint's own example."""
    path, body = path_of(endpoint), endpoint.examples.get("request")
    if endpoint.rights is not None:
        return client.post(path, body, **options)
    if endpoint.request is None:
        return client.simulate_request(endpoint.method, path, **options)
    return client.public_post(path, body)


def test_every_declared_error_has_a_case_and_no_case_is_of_another() -> None:
    assert set(CASES) == {(e.name, error.code) for e in ENDPOINTS for error in e.own_errors()}
    assert set(BAD_FIELDS) == {e.name for e in declared("request.bad_field")}


@pytest.mark.parametrize(("name", "code"), CASES)
def test_a_declared_error_is_reached_with_its_status(live: Live, name: str, code: str) -> None:
    answer = CASES[name, code](live)

    error = next(error for error in BY_NAME[name].own_errors() if error.code == code)
    assert (answer.status_code, code_of(answer)) == (error.status, code)


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_bad_field_is_reached(live: Live, name: str) -> None:
    answer = live.post(path_of(BY_NAME[name]), BAD_FIELDS[name])

    assert (answer.status_code, code_of(answer)) == (400, "request.bad_field")


# Common errors ------------------------------------------------------------------------------------------------------


def test_shared_errors_are_those_that_are_tried_below() -> None:
    own = {(e.name, error.code) for e in ENDPOINTS for error in e.own_errors()}
    shared = {error.code for e in ENDPOINTS for error in e.all_errors() if (e.name, error.code) not in own}

    assert shared == {
        "auth.bad_token", "auth.bad_timestamp", "merchant.unknown_key", "merchant.bad_signature", "auth.ip_not_allowed",
        "merchant.wrong_key_kind", "request.bad_json", "request.bad_field", "request.length_required",
        "request.not_found", "request.too_large", "request.bad_content_type", "auth.body_read", "idempotency.bad_key",
        "idempotency.in_progress", "idempotency.key_reused", "idempotency.unavailable", "gateway.busy",
        "gateway.internal_error",
    }  # fmt: skip


@of_all(lambda e: e.is_guarded)
def test_requests_without_the_token_are_refused(make_client: Callable[..., Client], endpoint: Endpoint) -> None:
    answer = ask(make_client(METRICS_TOKEN="a-token-of-some-length"), endpoint, headers={"Authorization": "Bearer no"})

    assert (answer.status_code, code_of(answer)) == (401, "auth.bad_token")


@of_all(lambda e: e.rights is not None)
def test_requests_without_a_proved_key_are_refused(client: Client, keys: Keys, endpoint: Endpoint) -> None:
    refusals = {
        "auth.bad_timestamp": {"headers": {"X-Timestamp": "soon"}},
        "merchant.unknown_key": {"public_id": "pk_nobody"},
        "merchant.bad_signature": {"headers": {"X-Signature": "0" * 64}},
    }
    for code, options in refusals.items():
        answer = ask(client, endpoint, **options)
        assert (answer.status_code, code_of(answer)) == (401, code)
    keys.rows["pk_fenced"] = keys.add("pk_fenced").but(ip_allowlist=["203.0.113.7"])

    answer = ask(client, endpoint, public_id="pk_fenced")

    assert (answer.status_code, code_of(answer)) == (401, "auth.ip_not_allowed")


@of_all(lambda e: e.rights not in {None, ANY_KEY})
def test_a_key_of_the_wrong_kind_is_refused(client: Client, caller: FakeCaller, endpoint: Endpoint) -> None:
    kinds = ANY_KEY - (endpoint.rights or ANY_KEY)

    assert kinds
    for kind in kinds:
        answer = ask(client, endpoint, public_id=f"pk_{kind}")
        assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")
    assert caller.calls == []


@of_all(lambda e: e.request is not None)
def test_a_body_that_cannot_be_read_exactly_is_refused(client: Client, caller: FakeCaller, endpoint: Endpoint) -> None:
    path, json_type = path_of(endpoint), {"Content-Type": "application/json"}
    not_json = (
        client.signed(path, b"[]") if endpoint.rights else client.simulate_post(path, body=b"[]", headers=json_type)
    )
    answers = {
        "request.bad_json": not_json,
        "request.length_required": client.simulate_post(path, headers=json_type | {"Transfer-Encoding": "chunked"}),
        "request.too_large": client.simulate_post(path, body=b" " * (1024 * 1024 + 1), headers=json_type),
        "request.bad_content_type": client.simulate_post(path, body=b"{}", headers={"Content-Type": "text/plain"}),
        "request.not_found": client.simulate_post(f"/{path}", body=b"{}", headers=json_type),
    }
    assert {code: code_of(answer) for code, answer in answers.items()} == {code: code for code in answers}
    cut = testing.create_environ(path=path, method="POST", body=b"{}", headers=json_type) | {"CONTENT_LENGTH": "9"}
    body = b"".join(client.app(cut, lambda *_: None))
    assert json.loads(body)["error"]["code"] == "auth.body_read"
    assert caller.calls == []


@of_all(lambda e: e.creates)
def test_a_creating_endpoint_has_all_of_idempotency(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    def answered(key: str) -> tuple[int, str]:
        answer = ask(client, endpoint, headers={"Idempotency-Key": key})
        return answer.status_code, code_of(answer)

    assert answered("x" * 256) == (400, "idempotency.bad_key")
    for error in (IdempotencyInProgress, IdempotencyKeyReused):
        caller.error = error()
        assert answered("k") == (409, error.code)
    keys.error = StoreUnavailableError("gone")
    client.public_id = "pk_payment"
    assert answered("k") == (503, "idempotency.unavailable")


@of_all(lambda e: e.actor is not None or e.rights is not None)
def test_a_gateway_that_cannot_do_it_now_is_busy(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    caller.error = GatewayBusy()
    keys.error = StoreUnavailableError("gone")

    answer = ask(client, endpoint)

    assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "gateway.busy", "1")


def test_a_public_read_without_its_store_is_busy(client: Client) -> None:
    base.connect("postgresql://nobody@127.0.0.1:1/nothing")

    assert code_of(client.simulate_get(f"/v1/pay/{UNKNOWN}")) == "gateway.busy"


@of_all(lambda e: e.actor is not None or e.rights is not None)
def test_an_unforeseen_failure_is_an_internal_error(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    caller.error = keys.error = ZeroDivisionError("secret words")

    answer = ask(client, endpoint)

    assert (answer.status_code, code_of(answer)) == (500, "gateway.internal_error")
    assert "secret words" not in answer.text


# Codes of the register that no endpoint declares, and why.
UNDECLARED: Final = {
    "request.malformed": "what is no HTTP reaches no endpoint",
    "request.method_not_allowed": "it is answered where there is no endpoint",
    "batch.skipped": "an item has it, no answer",
    "invoice.bad_price": "payment.bad_amount refuses a price before an invoice is made",
    "invoice.not_selectable": "the buyer, who alone selects, is answered pay.not_selectable",
    "invoice.generation_stale": "a choice waits for the row's lock, and so never meets a change",
    "payout.convert_bad_amount": "payout.bad_amount refuses an amount before it is converted",
    "payout.convert_unsupported": "payout.from_currency_unsupported refuses all that is not USDT",
    "personal.amount_invalid": "transfer.bad_amount refuses an amount before it is moved",
}


def test_every_code_of_the_register_is_declared_by_an_endpoint_or_has_its_reason() -> None:
    assert {code for code in ERRORS if not declared(code)} == set(UNDECLARED)


def test_no_error_is_declared_that_the_table_does_not_have() -> None:
    assert all(issubclass(error, DomainError) for e in ENDPOINTS for error in e.all_errors())
