"""Every documented refusal has its code and status, typed here independently of the classes."""

import pickle

import pytest

from core import errors
from core.errors import ERRORS, DomainError, GatewayBusy, PaymentBelowMinimum

# By status, as the API reference's error table and its notes on each endpoint have them.
CODES = {
    400: """
        request.malformed request.bad_json request.bad_field auth.body_read idempotency.bad_key payment.unknown_currency
        payment.unknown_to_currency payment.to_currency_required payment.network_required
        payment.unsupported_network payment.bad_amount payment.bad_subtract payment.bad_accuracy
        payment.below_minimum payment.bad_url_callback payment.bad_uuid payment.no_lookup payment.bad_action
        payment.bad_cursor payment.bad_date invoice.bad_price invoice.no_pay_asset invoice.not_selectable
        invoice.expired email.no_recipient email.bad_address accepted.unknown_method discount.bad_percent
        accuracy.bad_percent pay.bad_uuid pay.not_selectable pay.unknown_currency pay.method_not_accepted
        pay.below_minimum wallet.unknown_currency wallet.no_network wallet.unsupported_network wallet.no_address
        wallet.bad_uuid qr.no_address payout.unknown_currency payout.bad_amount payout.order_id_required
        payout.destination_internal payout.no_destination payout.bad_address payout.address_network_mismatch
        payout.asset_mismatch payout.from_currency_unsupported payout.convert_same_asset
        payout.convert_bad_amount payout.convert_unsupported payout.memo_too_long payout.memo_unsupported
        payout.bad_url_callback payout.amount_below_fee payout.bad_uuid payout.no_lookup payout.bad_cursor
        payout.empty_batch payout.batch_too_large batch.empty batch.too_large batch.bad_id batch.bad_on_error
        paylink.bad_id paylink.bad_mode paylink.bad_pin paylink.unknown_currency paylink.bad_amount
        paylink.bad_min paylink.bad_max paylink.bad_range paylink.amount_required paylink.not_positive
        paylink.below_min paylink.above_max payoutlink.empty_batch payoutlink.batch_too_large
        payoutlink.unknown_currency payoutlink.unsupported_network payoutlink.bad_amount payoutlink.bad_id
        payoutlink.no_address payoutlink.bad_address payoutlink.destination_internal refund.nothing_to_refund
        refund.no_address refund.exceeds_refundable refund.bad_amount refund.bad_address refund.network_mismatch
        webhook.no_url webhook.bad_url webhook.bad_cursor transfer.no_personal_wallet transfer.unknown_currency
        transfer.bad_amount personal.amount_invalid personal.insufficient split.bad_percent split.over_100
        split.unknown_recipient split.bad_hold autowithdraw.bad_address autowithdraw.bad_threshold
        autowithdraw.unknown_currency allowlist.bad_ip payout.bad_date
    """,
    401: "auth.bad_token auth.bad_timestamp auth.ip_not_allowed merchant.bad_signature merchant.unknown_key",
    403: "merchant.wrong_key_kind payout.approver_is_creator compliance.address_blocked",
    404: """
        request.not_found payment.not_found pay.not_found wallet.static_not_found payout.not_found
        batch.not_found paylink.not_found payoutlink.not_found split.rule_not_found
        webhook.not_found
    """,
    405: "request.method_not_allowed",
    409: """
        idempotency.in_progress idempotency.key_reused invoice.generation_stale payment.not_resolvable
        payout.frozen payout.convert_frozen payout.convert_insufficient payout.not_pending
        payout.insufficient_funds payout.funds_maturing payout.duplicate_reference batch.skipped
        batch.too_many_open
        payoutlink.insufficient_funds payoutlink.funds_maturing payoutlink.not_cancellable
        payoutlink.claim_in_progress payoutlink.duplicate_reference refund.insufficient_funds
        refund.funds_maturing allowlist.locks_you_out split.too_many_rules
    """,
    410: "payoutlink.expired payoutlink.cancelled",
    411: "request.length_required",
    413: "request.too_large",
    415: "request.bad_content_type",
    429: "email.too_many",
    500: "gateway.internal_error",
    503: """
        idempotency.unavailable gateway.busy gateway.not_ready invoice.quote_failed invoice.fee_quote_failed
        invoice.address_failed payout.convert_no_rate batch.disabled paylink.disabled payoutlink.disabled
        payout.fee_unavailable email.disabled
    """,
}

# Below 500, a caller repeats a call only where the reference says so.
RETRYABLE = """
    auth.body_read idempotency.in_progress invoice.generation_stale payout.frozen payout.convert_frozen
    payout.insufficient_funds payout.funds_maturing payout.duplicate_reference payoutlink.insufficient_funds
    payoutlink.funds_maturing refund.insufficient_funds refund.funds_maturing batch.too_many_open email.too_many
"""


def test_the_table_holds_exactly_the_documented_codes_with_their_status() -> None:
    documented = [(code, status) for status, codes in CODES.items() for code in codes.split()]

    assert len(documented) == len(dict(documented)), "a code is typed twice above"
    assert {code: error.status for code, error in ERRORS.items()} == dict(documented)


def test_retry_is_advised_only_for_temporary_failures_and_documented_conflicts() -> None:
    assert {code for code, error in ERRORS.items() if error.retryable and error.status < 500} == set(RETRYABLE.split())
    assert all(error.retryable for error in ERRORS.values() if error.status >= 500)


def test_a_class_is_named_after_its_code_and_exported() -> None:
    for code, error in ERRORS.items():
        name = "".join(word[0].upper() + word[1:] for part in code.split(".") for word in part.split("_"))

        assert error.__name__ == name
        assert getattr(errors, name) is error


def test_every_default_message_is_one_readable_sentence() -> None:
    for error in ERRORS.values():
        assert error.text.endswith("."), error
        assert "\n" not in error.text, error
        assert error().message == error.text == str(error())


def test_a_custom_message_replaces_the_default() -> None:
    error = PaymentBelowMinimum("amount must be at least 1 USDT.")

    assert (error.code, error.status, error.message) == (
        "payment.below_minimum",
        400,
        "amount must be at least 1 USDT.",
    )
    assert PaymentBelowMinimum.text != error.message


def test_an_error_survives_serialisation() -> None:
    copy = pickle.loads(pickle.dumps(PaymentBelowMinimum("too little")))  # noqa: S301 - our own bytes

    assert type(copy) is PaymentBelowMinimum
    assert copy.message == "too little"


def test_busy_and_quota_errors_have_a_retry_delay() -> None:
    waits = {code: error.retry_after_s for code, error in ERRORS.items() if error.retry_after_s is not None}

    assert waits == {"gateway.busy": GatewayBusy.retry_after_s, "email.too_many": 3_600}


def test_a_code_cannot_be_given_twice() -> None:
    with pytest.raises(TypeError, match="already the code of PaymentBelowMinimum"):
        type("Again", (DomainError,), {"__doc__": "Again."}, code="payment.below_minimum", status=400)

    assert ERRORS["payment.below_minimum"] is PaymentBelowMinimum


def test_a_code_needs_a_message() -> None:
    with pytest.raises(TypeError, match=r"payment\.silent has no docstring"):
        type("Silent", (DomainError,), {}, code="payment.silent", status=400)

    assert "payment.silent" not in ERRORS


def test_the_register_cannot_be_changed_from_outside() -> None:
    with pytest.raises(TypeError):
        ERRORS["payment.mine"] = PaymentBelowMinimum  # type: ignore[index]
