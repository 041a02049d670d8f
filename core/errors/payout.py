"""Names what is refused about payouts, conversion and compliance. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class PayoutUnknownCurrency(DomainError, code="payout.unknown_currency", status=400):
    """The currency is unknown."""


class PayoutBadAmount(DomainError, code="payout.bad_amount", status=400):
    """The amount is invalid."""


class PayoutOrderIdRequired(DomainError, code="payout.order_id_required", status=400):
    """order_id is missing."""


class PayoutDestinationInternal(DomainError, code="payout.destination_internal", status=400):
    """The address belongs to this gateway."""


class PayoutNoDestination(DomainError, code="payout.no_destination", status=400):
    """The destination address is missing."""


class PayoutBadAddress(DomainError, code="payout.bad_address", status=400):
    """The address is invalid."""


class PayoutAddressNetworkMismatch(DomainError, code="payout.address_network_mismatch", status=400):
    """The address does not fit the network."""


class PayoutAssetMismatch(DomainError, code="payout.asset_mismatch", status=400):
    """The currency is not offered on this network."""


class PayoutFrozen(DomainError, code="payout.frozen", status=409, retryable=True):
    """Payouts are frozen; retry later."""


class PayoutFromCurrencyUnsupported(DomainError, code="payout.from_currency_unsupported", status=400):
    """Only USDT can be converted to the payout's currency."""


class PayoutConvertSameAsset(DomainError, code="payout.convert_same_asset", status=400):
    """from_currency equals the payout's currency."""


class PayoutConvertBadAmount(DomainError, code="payout.convert_bad_amount", status=400):
    """The amount to convert is invalid."""


class PayoutConvertUnsupported(DomainError, code="payout.convert_unsupported", status=400):
    """This conversion is not supported."""


class PayoutConvertNoRate(DomainError, code="payout.convert_no_rate", status=503):
    """There is no current rate for the conversion; retry."""


class PayoutConvertFrozen(DomainError, code="payout.convert_frozen", status=409, retryable=True):
    """Conversions are frozen; retry later."""


class PayoutConvertInsufficient(DomainError, code="payout.convert_insufficient", status=409):
    """The balance in from_currency is not enough."""


class PayoutMemoTooLong(DomainError, code="payout.memo_too_long", status=400):
    """The memo is longer than 120 characters."""


class PayoutMemoUnsupported(DomainError, code="payout.memo_unsupported", status=400):
    """This network carries no memo."""


class PayoutBadUrlCallback(DomainError, code="payout.bad_url_callback", status=400):
    """url_callback must be a public http(s) address."""


class PayoutAmountBelowFee(DomainError, code="payout.amount_below_fee", status=400):
    """The amount is below the network fee."""


class PayoutFeeUnavailable(DomainError, code="payout.fee_unavailable", status=503):
    """The network fee is not known at the moment; retry."""


class PayoutBadUuid(DomainError, code="payout.bad_uuid", status=400):
    """The uuid is malformed."""


class PayoutNoLookup(DomainError, code="payout.no_lookup", status=400):
    """Either uuid or order_id is needed."""


class PayoutNotFound(DomainError, code="payout.not_found", status=404):
    """There is no such payout."""


class PayoutBadCursor(DomainError, code="payout.bad_cursor", status=400):
    """The cursor is invalid."""


class PayoutBadDate(DomainError, code="payout.bad_date", status=400):
    """The date must be ISO 8601."""


class PayoutEmptyBatch(DomainError, code="payout.empty_batch", status=400):
    """There are no payouts in the call."""


class PayoutBatchTooLarge(DomainError, code="payout.batch_too_large", status=400):
    """More than 100 payouts are in the call."""


class PayoutNotPending(DomainError, code="payout.not_pending", status=409):
    """The payout does not wait for approval."""


class PayoutApproverIsCreator(DomainError, code="payout.approver_is_creator", status=403):
    """The approver must differ from the creator and from earlier approvers."""


class PayoutInsufficientFunds(DomainError, code="payout.insufficient_funds", status=409, retryable=True):
    """The available balance is too low; retry after a top-up."""


class PayoutFundsMaturing(DomainError, code="payout.funds_maturing", status=409, retryable=True):
    """The funds have not matured yet; retry later."""


class PayoutDuplicateReference(DomainError, code="payout.duplicate_reference", status=409, retryable=True):
    """Another request made this payout at the same moment; a repeat returns it."""


class ComplianceAddressBlocked(DomainError, code="compliance.address_blocked", status=403):
    """A compliance check blocks this address."""
