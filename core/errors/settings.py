"""Names what is refused about settings: webhooks, splits, auto-withdraw, allowlist. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class WebhookNoUrl(DomainError, code="webhook.no_url", status=400):
    """The url is missing."""


class WebhookBadUrl(DomainError, code="webhook.bad_url", status=400):
    """The url must be a public https address."""


class WebhookBadCursor(DomainError, code="webhook.bad_cursor", status=400):
    """The cursor is invalid."""


class WebhookNotFound(DomainError, code="webhook.not_found", status=404):
    """There is no such delivery."""


class SplitBadPercent(DomainError, code="split.bad_percent", status=400):
    """The percent must be from 0.01 to 100."""


class SplitOver100(DomainError, code="split.over_100", status=400):
    """All rules together give more than 100 percent."""


class SplitTooManyRules(DomainError, code="split.too_many_rules", status=409):
    """There are as many rules as a merchant may have."""


class SplitUnknownRecipient(DomainError, code="split.unknown_recipient", status=400):
    """The recipient is unknown."""


class SplitBadHold(DomainError, code="split.bad_hold", status=400):
    """refund_hold_hours must be from 0 to 2160."""


class SplitRuleNotFound(DomainError, code="split.rule_not_found", status=404):
    """There is no such rule."""


class AutowithdrawBadAddress(DomainError, code="autowithdraw.bad_address", status=400):
    """The address is invalid."""


class AutowithdrawBadThreshold(DomainError, code="autowithdraw.bad_threshold", status=400):
    """The threshold is invalid."""


class AutowithdrawUnknownCurrency(DomainError, code="autowithdraw.unknown_currency", status=400):
    """The currency is unknown."""


class AllowlistBadIp(DomainError, code="allowlist.bad_ip", status=400):
    """An entry is neither an address nor a network."""


class AllowlistLocksYouOut(DomainError, code="allowlist.locks_you_out", status=409):
    """The list would lock out the address that sets it."""
