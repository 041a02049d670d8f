"""Every refusal of the gateway as a type: one class for each family of codes, such as PaymentError for `payment.…`."""

from __future__ import annotations

from typing import Final


class SluiceError(Exception):
    """Any failure of a call."""


class ConnectionFailedError(SluiceError):
    """The gateway could not be reached, or its answer did not arrive whole: the call may have been carried out.

    Repeat it with the same `idempotency_key` or `order_id`.
    """


class UnexpectedAnswerError(SluiceError):
    """The answer comes from another program, such as a proxy."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status} without an answer of the gateway: is the address that of the API?")
        self.status = status


class InvalidWebhookError(SluiceError):
    """A webhook that you must not trust."""


class RateLimitedError(SluiceError):
    """A limit is used up. retry_after_s: seconds until the gateway takes more."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ApiError(SluiceError):
    """A refusal of the gateway: branch on `code`; `message` is for people, and may change.

    status: HTTP status. request_id: how the gateway's logs name the call.
    """

    def __init__(self, code: str, message: str, *, status: int, request_id: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.request_id = request_id
        # Seconds after which the gateway asks to be called again; 0: it names none.
        self.retry_after_s = 0.0


class AcceptedError(ApiError):
    """A code that begins with `accepted.`."""


class AccuracyError(ApiError):
    """A code that begins with `accuracy.`."""


class AllowlistError(ApiError):
    """A code that begins with `allowlist.`."""


class AuthError(ApiError):
    """A code that begins with `auth.`."""


class AutowithdrawError(ApiError):
    """A code that begins with `autowithdraw.`."""


class BatchError(ApiError):
    """A code that begins with `batch.`."""


class ComplianceError(ApiError):
    """A code that begins with `compliance.`."""


class DiscountError(ApiError):
    """A code that begins with `discount.`."""


class EmailError(ApiError):
    """A code that begins with `email.`."""


class GatewayError(ApiError):
    """A code that begins with `gateway.`."""


class IdempotencyError(ApiError):
    """A code that begins with `idempotency.`."""


class InvoiceError(ApiError):
    """A code that begins with `invoice.`."""


class MerchantError(ApiError):
    """A code that begins with `merchant.`."""


class PayError(ApiError):
    """A code that begins with `pay.`."""


class PaylinkError(ApiError):
    """A code that begins with `paylink.`."""


class PaymentError(ApiError):
    """A code that begins with `payment.`."""


class PayoutError(ApiError):
    """A code that begins with `payout.`."""


class PayoutlinkError(ApiError):
    """A code that begins with `payoutlink.`."""


class PersonalError(ApiError):
    """A code that begins with `personal.`."""


class QrError(ApiError):
    """A code that begins with `qr.`."""


class RefundError(ApiError):
    """A code that begins with `refund.`."""


class RequestError(ApiError):
    """A code that begins with `request.`."""


class SplitError(ApiError):
    """A code that begins with `split.`."""


class TransferError(ApiError):
    """A code that begins with `transfer.`."""


class WalletError(ApiError):
    """A code that begins with `wallet.`."""


class WebhookError(ApiError):
    """A code that begins with `webhook.`."""


FAMILIES: Final[dict[str, type[ApiError]]] = {
    "accepted": AcceptedError,
    "accuracy": AccuracyError,
    "allowlist": AllowlistError,
    "auth": AuthError,
    "autowithdraw": AutowithdrawError,
    "batch": BatchError,
    "compliance": ComplianceError,
    "discount": DiscountError,
    "email": EmailError,
    "gateway": GatewayError,
    "idempotency": IdempotencyError,
    "invoice": InvoiceError,
    "merchant": MerchantError,
    "pay": PayError,
    "paylink": PaylinkError,
    "payment": PaymentError,
    "payout": PayoutError,
    "payoutlink": PayoutlinkError,
    "personal": PersonalError,
    "qr": QrError,
    "refund": RefundError,
    "request": RequestError,
    "split": SplitError,
    "transfer": TransferError,
    "wallet": WalletError,
    "webhook": WebhookError,
}


class ClockSkewError(AuthError):
    """This machine's clock differs from the gateway's by skew_s seconds; positive: it is ahead."""

    def __init__(self, message: str, *, status: int, request_id: str, skew_s: float) -> None:
        super().__init__("auth.bad_timestamp", message, status=status, request_id=request_id)
        self.skew_s = skew_s
        direction = "ahead of" if skew_s > 0 else "behind"
        self.args = (f"auth.bad_timestamp: this machine's clock is {abs(skew_s):.0f} s {direction} the gateway's",)


def family_of(code: str) -> type[ApiError]:
    """Return the class of a code; ApiError for a family that this version does not know."""
    return FAMILIES.get(code.partition(".")[0], ApiError)
