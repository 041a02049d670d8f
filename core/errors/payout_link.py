"""Names what is refused about payout links, which are crypto cheques. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class PayoutlinkUnknownCurrency(DomainError, code="payoutlink.unknown_currency", status=400):
    """The currency is unknown."""


class PayoutlinkUnsupportedNetwork(DomainError, code="payoutlink.unsupported_network", status=400):
    """The coin is not offered on this network."""


class PayoutlinkBadAmount(DomainError, code="payoutlink.bad_amount", status=400):
    """The amount is invalid."""


class PayoutlinkBadId(DomainError, code="payoutlink.bad_id", status=400):
    """The link_id is not a UUID."""


class PayoutlinkNotFound(DomainError, code="payoutlink.not_found", status=404):
    """There is no such payout link."""


class PayoutlinkNoAddress(DomainError, code="payoutlink.no_address", status=400):
    """The address is missing."""


class PayoutlinkBadAddress(DomainError, code="payoutlink.bad_address", status=400):
    """The address is invalid."""


class PayoutlinkDestinationInternal(DomainError, code="payoutlink.destination_internal", status=400):
    """The address belongs to this gateway."""


class PayoutlinkInsufficientFunds(DomainError, code="payoutlink.insufficient_funds", status=409, retryable=True):
    """The available balance is too low; retry after a top-up."""


class PayoutlinkFundsMaturing(DomainError, code="payoutlink.funds_maturing", status=409, retryable=True):
    """The funds have not matured yet; retry later."""


class PayoutlinkNotCancellable(DomainError, code="payoutlink.not_cancellable", status=409):
    """The link can no longer be cancelled."""


class PayoutlinkClaimInProgress(DomainError, code="payoutlink.claim_in_progress", status=409):
    """A claim with another address is running."""


class PayoutlinkDuplicateReference(DomainError, code="payoutlink.duplicate_reference", status=409):
    """A link with this reference exists; look at the list before a retry."""


class PayoutlinkExpired(DomainError, code="payoutlink.expired", status=410):
    """The link has expired."""


class PayoutlinkCancelled(DomainError, code="payoutlink.cancelled", status=410):
    """The link was cancelled."""


class PayoutlinkEmptyBatch(DomainError, code="payoutlink.empty_batch", status=400):
    """There are no links in the call."""


class PayoutlinkBatchTooLarge(DomainError, code="payoutlink.batch_too_large", status=400):
    """More than 500 links are in the call."""


class PayoutlinkDisabled(DomainError, code="payoutlink.disabled", status=503):
    """Payout links are not available on this gateway."""
