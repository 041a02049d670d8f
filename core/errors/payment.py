"""Names what is refused about a merchant's invoices, their e-mails and methods of payment. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class PaymentUnknownCurrency(DomainError, code="payment.unknown_currency", status=400):
    """The currency is unknown."""


class PaymentUnknownToCurrency(DomainError, code="payment.unknown_to_currency", status=400):
    """The to_currency is unknown."""


class PaymentToCurrencyRequired(DomainError, code="payment.to_currency_required", status=400):
    """A fiat price with a network needs a to_currency."""


class PaymentNetworkRequired(DomainError, code="payment.network_required", status=400):
    """The coin has several networks; name one."""


class PaymentUnsupportedNetwork(DomainError, code="payment.unsupported_network", status=400):
    """The coin is not offered on this network."""


class PaymentBadAmount(DomainError, code="payment.bad_amount", status=400):
    """The amount is invalid."""


class PaymentBadSubtract(DomainError, code="payment.bad_subtract", status=400):
    """subtract must be from 0 to 100."""


class PaymentBadAccuracy(DomainError, code="payment.bad_accuracy", status=400):
    """accuracy_payment_percent must be from 0 to 5."""


class PaymentBelowMinimum(DomainError, code="payment.below_minimum", status=400):
    """The amount is below the network's minimum."""


class PaymentBadUrlCallback(DomainError, code="payment.bad_url_callback", status=400):
    """url_callback must be a public http(s) address."""


class PaymentBadUuid(DomainError, code="payment.bad_uuid", status=400):
    """The uuid is malformed."""


class PaymentNoLookup(DomainError, code="payment.no_lookup", status=400):
    """Either uuid or order_id is needed."""


class PaymentNotFound(DomainError, code="payment.not_found", status=404):
    """There is no such payment."""


class PaymentNotResolvable(DomainError, code="payment.not_resolvable", status=409):
    """The payment has nothing to resolve."""


class PaymentBadAction(DomainError, code="payment.bad_action", status=400):
    """action must be accept or refund."""


class PaymentBadCursor(DomainError, code="payment.bad_cursor", status=400):
    """The cursor is invalid."""


class PaymentBadDate(DomainError, code="payment.bad_date", status=400):
    """The date is not ISO 8601."""


class InvoiceBadPrice(DomainError, code="invoice.bad_price", status=400):
    """The price is invalid."""


class InvoiceNoPayAsset(DomainError, code="invoice.no_pay_asset", status=400):
    """The asset to pay with cannot be determined."""


class InvoiceNotSelectable(DomainError, code="invoice.not_selectable", status=400):
    """The invoice does not wait for a choice of coin."""


class InvoiceExpired(DomainError, code="invoice.expired", status=400):
    """The invoice has expired."""


class InvoiceGenerationStale(DomainError, code="invoice.generation_stale", status=409, retryable=True):
    """The invoice changed meanwhile; read it again and retry."""


class InvoiceQuoteFailed(DomainError, code="invoice.quote_failed", status=503):
    """There is no current rate; retry."""


class InvoiceFeeQuoteFailed(DomainError, code="invoice.fee_quote_failed", status=503):
    """The fixed part of the fee could not be priced; retry with back-off."""


class InvoiceAddressFailed(DomainError, code="invoice.address_failed", status=503):
    """No deposit address could be allocated; retry."""


class EmailNoRecipient(DomainError, code="email.no_recipient", status=400):
    """There is no address to send the e-mail to."""


class EmailBadAddress(DomainError, code="email.bad_address", status=400):
    """The e-mail address is invalid."""


class EmailTooMany(DomainError, code="email.too_many", status=429, retryable=True, retry_after_s=3_600):
    """Too many e-mails were sent to this address, or for this merchant, within a day; try again later."""


class EmailDisabled(DomainError, code="email.disabled", status=503):
    """This gateway sends no e-mail."""


class AcceptedUnknownMethod(DomainError, code="accepted.unknown_method", status=400):
    """The method is not in the catalogue."""


class DiscountBadPercent(DomainError, code="discount.bad_percent", status=400):
    """discount_percent must be from -99 to 99."""


class AccuracyBadPercent(DomainError, code="accuracy.bad_percent", status=400):
    """accuracy_percent must be from 1 to 5."""
