"""Declares the call actors: the queue of each and the errors that it raises. Rows.

The actor's `@call_actor` and its endpoint in api.routes read the same row, so that the documented errors are those of
the actor. A test compares `raises` with the code. Errors that any call can meet (a repeated key, no free slot) follow
from the endpoint's row and are not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core import errors
from core.errors import DomainError


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSpec:
    """A call actor's name, which is its function's, its queue and its errors."""

    name: str
    queue: str
    raises: tuple[type[DomainError], ...] = ()


# The errors of a quote with an address, and those of any refund.
_QUOTED: Final = (errors.InvoiceQuoteFailed, errors.InvoiceFeeQuoteFailed, errors.InvoiceAddressFailed)
_SENT_BACK: Final = (
    errors.PayoutFrozen,
    errors.PayoutFeeUnavailable,
    errors.PayoutDestinationInternal,
    errors.ComplianceAddressBlocked,
)
# The errors of any batch when it is handed in.
_HANDED_IN: Final = (errors.BatchTooManyOpen, errors.BatchDisabled)

CREATE_INVOICE: Final = CallSpec(
    name="create_invoice",
    queue="invoices",
    raises=(
        errors.PaymentBadAmount,
        errors.PaymentUnknownCurrency,
        errors.PaymentUnknownToCurrency,
        errors.PaymentToCurrencyRequired,
        errors.PaymentNetworkRequired,
        errors.PaymentUnsupportedNetwork,
        errors.PaymentBadAccuracy,
        errors.PaymentBelowMinimum,
        errors.InvoiceNoPayAsset,
        *_QUOTED,
    ),
)
SELECT_METHOD: Final = CallSpec(
    name="select_method",
    queue="invoices",
    raises=(
        errors.PayNotFound,
        errors.PayNotSelectable,
        errors.PayUnknownCurrency,
        errors.PayMethodNotAccepted,
        errors.PayBelowMinimum,
        errors.PaymentNetworkRequired,
        errors.PaymentBadAmount,
        errors.InvoiceExpired,
        *_QUOTED,
    ),
)

RESOLVE_PAYMENT: Final = CallSpec(
    name="resolve_payment",
    queue="invoices",
    raises=(
        errors.PaymentNotFound,
        errors.PaymentNotResolvable,
        errors.RefundNoAddress,
        errors.RefundBadAddress,
        errors.RefundNetworkMismatch,
        *_SENT_BACK,
        errors.PayoutAmountBelowFee,
        errors.PayoutBadAmount,
    ),
)
RESEND_PAYMENT: Final = CallSpec(name="resend_payment", queue="invoices", raises=(errors.PaymentNotFound,))
SEND_PAYMENT_EMAIL: Final = CallSpec(
    name="send_payment_email",
    queue="invoices",
    raises=(errors.PaymentNotFound, errors.EmailNoRecipient, errors.EmailTooMany, errors.EmailDisabled),
)

SET_ACCEPTED: Final = CallSpec(name="set_accepted", queue="invoices", raises=(errors.AcceptedUnknownMethod,))
SET_DISCOUNT: Final = CallSpec(
    name="set_discount",
    queue="invoices",
    raises=(errors.DiscountBadPercent, errors.PaymentUnknownCurrency, errors.PaymentUnsupportedNetwork),
)
SET_ACCURACY: Final = CallSpec(name="set_accuracy", queue="invoices", raises=(errors.AccuracyBadPercent,))

CREATE_PAYMENT_LINK: Final = CallSpec(
    name="create_payment_link",
    queue="invoices",
    raises=(
        errors.PaylinkUnknownCurrency,
        errors.PaylinkBadAmount,
        errors.PaylinkBadMin,
        errors.PaylinkBadMax,
        errors.PaylinkBadRange,
        errors.PaylinkBadPin,
        errors.PaylinkDisabled,
    ),
)
TOGGLE_PAYMENT_LINK: Final = CallSpec(name="toggle_payment_link", queue="invoices", raises=(errors.PaylinkNotFound,))

CHECK_OUT_LINK: Final = CallSpec(
    name="check_out_link",
    queue="invoices",
    raises=(
        errors.PaylinkNotFound,
        errors.PaylinkDisabled,
        errors.PaylinkAmountRequired,
        errors.PaylinkNotPositive,
        errors.PaylinkBelowMin,
        errors.PaylinkAboveMax,
        errors.PayUnknownCurrency,
        errors.PayMethodNotAccepted,
        errors.PayBelowMinimum,
        errors.PaymentBadAmount,
        *_QUOTED,
    ),
)

REFUND_PAYMENT: Final = CallSpec(
    name="refund_payment",
    queue="payouts",
    raises=(
        errors.PaymentNotFound,
        errors.RefundNothingToRefund,
        errors.RefundNetworkMismatch,
        errors.RefundBadAmount,
        errors.RefundNoAddress,
        errors.RefundBadAddress,
        errors.RefundExceedsRefundable,
        errors.RefundInsufficientFunds,
        errors.RefundFundsMaturing,
        *_SENT_BACK,
    ),
)

REFUND_BLOCKED_WALLET: Final = CallSpec(
    name="refund_blocked_wallet",
    queue="payouts",
    raises=(
        errors.WalletStaticNotFound,
        errors.RefundNothingToRefund,
        errors.RefundNoAddress,
        errors.RefundBadAddress,
        errors.PayoutAmountBelowFee,
        errors.PayoutBadAmount,
        *_SENT_BACK,
    ),
)

TRANSFER_TO_PERSONAL: Final = CallSpec(
    name="transfer_to_personal",
    queue="payouts",
    raises=(
        errors.TransferUnknownCurrency,
        errors.TransferBadAmount,
        errors.PersonalInsufficient,
        errors.TransferNoPersonalWallet,
        errors.PayoutFrozen,
    ),
)

CREATE_PAYOUT: Final = CallSpec(
    name="create_payout",
    queue="payouts",
    raises=(
        errors.PayoutBadAmount,
        errors.PayoutUnknownCurrency,
        errors.PayoutAssetMismatch,
        errors.PayoutBadAddress,
        errors.PayoutAddressNetworkMismatch,
        errors.PayoutDestinationInternal,
        errors.ComplianceAddressBlocked,
        errors.PayoutMemoUnsupported,
        errors.PayoutAmountBelowFee,
        errors.PayoutFeeUnavailable,
        errors.PayoutFrozen,
        errors.PayoutInsufficientFunds,
        errors.PayoutFundsMaturing,
        errors.PayoutDuplicateReference,
        errors.PayoutFromCurrencyUnsupported,
        errors.PayoutConvertSameAsset,
        errors.PayoutConvertNoRate,
        errors.PayoutConvertFrozen,
        errors.PayoutConvertInsufficient,
    ),
)
CREATE_PAYOUTS: Final = CallSpec(name="create_payouts", queue="bulk")
SET_PAYOUT_FEES: Final = CallSpec(name="set_payout_fees", queue="payouts")

APPROVE_PAYOUT: Final = CallSpec(
    name="approve_payout",
    queue="payouts",
    raises=(
        errors.PayoutNotFound,
        errors.PayoutNotPending,
        errors.PayoutApproverIsCreator,
        errors.ComplianceAddressBlocked,
        errors.PayoutFrozen,
    ),
)
CANCEL_PAYOUT: Final = CallSpec(
    name="cancel_payout",
    queue="payouts",
    raises=(errors.PayoutNotFound, errors.PayoutNotPending, errors.PayoutFrozen),
)

SET_AUTO_WITHDRAW: Final = CallSpec(
    name="set_auto_withdraw",
    queue="payouts",
    raises=(
        errors.AutowithdrawUnknownCurrency,
        errors.AutowithdrawBadAddress,
        errors.AutowithdrawBadThreshold,
        errors.ComplianceAddressBlocked,
    ),
)

CREATE_PAYOUT_LINK: Final = CallSpec(
    name="create_payout_link",
    queue="payouts",
    raises=(
        errors.PayoutlinkUnknownCurrency,
        errors.PayoutlinkUnsupportedNetwork,
        errors.PayoutlinkBadAmount,
        errors.PayoutlinkDuplicateReference,
        errors.PayoutlinkInsufficientFunds,
        errors.PayoutlinkFundsMaturing,
        errors.PayoutlinkDisabled,
        errors.PayoutFrozen,
        errors.PayoutFeeUnavailable,
    ),
)
CREATE_PAYOUT_LINKS: Final = CallSpec(name="create_payout_links", queue="bulk", raises=(errors.PayoutlinkDisabled,))
CANCEL_PAYOUT_LINK: Final = CallSpec(
    name="cancel_payout_link",
    queue="payouts",
    raises=(errors.PayoutlinkNotFound, errors.PayoutlinkNotCancellable, errors.PayoutFrozen),
)

CLAIM_PAYOUT_LINK: Final = CallSpec(
    name="claim_payout_link",
    queue="payouts",
    raises=(
        errors.PayoutlinkNotFound,
        errors.PayoutlinkBadAddress,
        errors.PayoutlinkDestinationInternal,
        errors.ComplianceAddressBlocked,
        errors.PayoutMemoUnsupported,
        errors.PayoutAmountBelowFee,
        errors.PayoutFrozen,
        errors.PayoutlinkExpired,
        errors.PayoutlinkCancelled,
        errors.PayoutlinkClaimInProgress,
    ),
)

CREATE_WALLET: Final = CallSpec(
    name="create_wallet",
    queue="invoices",
    raises=(
        errors.WalletUnknownCurrency,
        errors.WalletNoNetwork,
        errors.WalletUnsupportedNetwork,
        errors.InvoiceAddressFailed,
    ),
)
BLOCK_WALLET: Final = CallSpec(name="block_wallet", queue="invoices", raises=(errors.WalletStaticNotFound,))

CREATE_PAYMENT_BATCH: Final = CallSpec(name="create_payment_batch", queue="invoices", raises=_HANDED_IN)
CREATE_PAYOUT_BATCH: Final = CallSpec(name="create_payout_batch", queue="payouts", raises=_HANDED_IN)
CREATE_REFUND_BATCH: Final = CallSpec(name="create_refund_batch", queue="payouts", raises=_HANDED_IN)

REGISTER_WEBHOOK: Final = CallSpec(name="register_webhook", queue="bulk", raises=(errors.WebhookBadUrl,))
REDELIVER_WEBHOOK: Final = CallSpec(name="redeliver_webhook", queue="invoices", raises=(errors.WebhookNotFound,))

TRY_WEBHOOK: Final = CallSpec(name="try_webhook", queue="bulk", raises=(errors.WebhookNoUrl,))

SET_ALLOWLIST: Final = CallSpec(
    name="set_allowlist",
    queue="invoices",
    raises=(errors.AllowlistBadIp, errors.AllowlistLocksYouOut),
)

ADD_SPLIT_RULE: Final = CallSpec(
    name="add_split_rule",
    queue="payouts",
    raises=(errors.SplitBadPercent, errors.SplitOver100, errors.SplitTooManyRules, errors.SplitUnknownRecipient),
)
DELETE_SPLIT_RULE: Final = CallSpec(name="delete_split_rule", queue="payouts", raises=(errors.SplitRuleNotFound,))
SET_SPLITS: Final = CallSpec(name="set_splits", queue="payouts")
