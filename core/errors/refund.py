"""Names what is refused about refunds and asynchronous batches. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class RefundNothingToRefund(DomainError, code="refund.nothing_to_refund", status=400):
    """There is nothing to refund."""


class RefundNoAddress(DomainError, code="refund.no_address", status=400):
    """The destination address is missing."""


class RefundBadAddress(DomainError, code="refund.bad_address", status=400):
    """The address is invalid."""


class RefundBadAmount(DomainError, code="refund.bad_amount", status=400):
    """The amount is invalid."""


class RefundNetworkMismatch(DomainError, code="refund.network_mismatch", status=400):
    """The network is not the payment's."""


class RefundExceedsRefundable(DomainError, code="refund.exceeds_refundable", status=400):
    """The amount is more than what can be refunded."""


class RefundInsufficientFunds(DomainError, code="refund.insufficient_funds", status=409, retryable=True):
    """The available balance is too low; retry after a top-up."""


class RefundFundsMaturing(DomainError, code="refund.funds_maturing", status=409, retryable=True):
    """The funds have not matured yet; retry later."""


class BatchEmpty(DomainError, code="batch.empty", status=400):
    """There are no items in the batch."""


class BatchTooLarge(DomainError, code="batch.too_large", status=400):
    """The batch has more than 5000 items."""


class BatchDisabled(DomainError, code="batch.disabled", status=503):
    """Batches are not available on this gateway."""


class BatchTooManyOpen(DomainError, code="batch.too_many_open", status=409, retryable=True):
    """Too many items of batches are open; send this batch again once some of them are done."""


class BatchNotFound(DomainError, code="batch.not_found", status=404):
    """There is no such batch."""


class BatchBadId(DomainError, code="batch.bad_id", status=400):
    """The batch_id is not a UUID."""


class BatchBadOnError(DomainError, code="batch.bad_on_error", status=400):
    """on_error must be continue or stop."""


class BatchSkipped(DomainError, code="batch.skipped", status=409):
    """skipped: an earlier item failed."""
