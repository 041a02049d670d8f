"""Names what is refused on public pages: the hosted payment page and payment links. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class PayBadUuid(DomainError, code="pay.bad_uuid", status=400):
    """The id is malformed."""


class PayNotFound(DomainError, code="pay.not_found", status=404):
    """There is no such invoice."""


class PayNotSelectable(DomainError, code="pay.not_selectable", status=400):
    """The coin has been chosen already."""


class PayUnknownCurrency(DomainError, code="pay.unknown_currency", status=400):
    """The currency is unknown."""


class PayMethodNotAccepted(DomainError, code="pay.method_not_accepted", status=400):
    """This coin and network are not accepted here."""


class PayBelowMinimum(DomainError, code="pay.below_minimum", status=400):
    """The amount is below the network's minimum."""


class PaylinkBadId(DomainError, code="paylink.bad_id", status=400):
    """The link_id is not a UUID."""


class PaylinkNotFound(DomainError, code="paylink.not_found", status=404):
    """There is no such payment link."""


class PaylinkBadMode(DomainError, code="paylink.bad_mode", status=400):
    """amount_mode must be fixed, open or range."""


class PaylinkBadPin(DomainError, code="paylink.bad_pin", status=400):
    """Pin both the coin and the network, or neither."""


class PaylinkUnknownCurrency(DomainError, code="paylink.unknown_currency", status=400):
    """The currency is unknown."""


class PaylinkBadAmount(DomainError, code="paylink.bad_amount", status=400):
    """amount_fixed must be positive."""


class PaylinkBadMin(DomainError, code="paylink.bad_min", status=400):
    """amount_min must be positive."""


class PaylinkBadMax(DomainError, code="paylink.bad_max", status=400):
    """amount_max must be positive."""


class PaylinkBadRange(DomainError, code="paylink.bad_range", status=400):
    """amount_min must not be above amount_max."""


class PaylinkAmountRequired(DomainError, code="paylink.amount_required", status=400):
    """This link needs an amount."""


class PaylinkNotPositive(DomainError, code="paylink.not_positive", status=400):
    """The amount must be positive."""


class PaylinkBelowMin(DomainError, code="paylink.below_min", status=400):
    """The amount is below the link's minimum."""


class PaylinkAboveMax(DomainError, code="paylink.above_max", status=400):
    """The amount is above the link's maximum."""


class PaylinkDisabled(DomainError, code="paylink.disabled", status=503):
    """Payment links are not available on this gateway."""
