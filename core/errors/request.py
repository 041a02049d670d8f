"""Names what is refused of any request: the body, the path, who asks, repeats, and a busy gateway.

Raised by api and actors.queue.caller.
"""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class RequestBadJson(DomainError, code="request.bad_json", status=400):
    """The body is not a JSON object that can be read exactly."""


class RequestBadField(DomainError, code="request.bad_field", status=400):
    """A field is of the wrong type or outside its rules."""


class RequestMalformed(DomainError, code="request.malformed", status=400):
    """The request is not well-formed HTTP."""


class RequestNotFound(DomainError, code="request.not_found", status=404):
    """There is no such endpoint."""


class RequestMethodNotAllowed(DomainError, code="request.method_not_allowed", status=405):
    """The endpoint does not take this method."""


class RequestLengthRequired(DomainError, code="request.length_required", status=411):
    """A body needs a Content-Length."""


class RequestTooLarge(DomainError, code="request.too_large", status=413):
    """The body is larger than 1 MiB."""


class RequestBadContentType(DomainError, code="request.bad_content_type", status=415):
    """The Content-Type must be application/json."""


class AuthBadTimestamp(DomainError, code="auth.bad_timestamp", status=401):
    """X-Timestamp is missing or not a number."""


class AuthIpNotAllowed(DomainError, code="auth.ip_not_allowed", status=401):
    """The source address is not in the allowlist."""


class AuthBadToken(DomainError, code="auth.bad_token", status=401):
    """The Authorization header does not hold the token that is asked for."""


class AuthBodyRead(DomainError, code="auth.body_read", status=400, retryable=True):
    """The body could not be read; send the request again."""


class MerchantBadSignature(DomainError, code="merchant.bad_signature", status=401):
    """The signature does not match, or its timestamp is outside the window."""


class MerchantUnknownKey(DomainError, code="merchant.unknown_key", status=401):
    """The public id is unknown or revoked."""


class MerchantWrongKeyKind(DomainError, code="merchant.wrong_key_kind", status=403):
    """This kind of key has no right to the endpoint."""


class IdempotencyInProgress(DomainError, code="idempotency.in_progress", status=409, retryable=True):
    """A request with this Idempotency-Key is still running; retry later with the same key."""


class IdempotencyBadKey(DomainError, code="idempotency.bad_key", status=400):
    """The Idempotency-Key must have 1 to 255 characters."""


class IdempotencyKeyReused(DomainError, code="idempotency.key_reused", status=409):
    """The Idempotency-Key was used for another request."""


class IdempotencyUnavailable(DomainError, code="idempotency.unavailable", status=503):
    """The request was not executed; retry with the same Idempotency-Key."""


class GatewayBusy(DomainError, code="gateway.busy", status=503, retry_after_s=1):
    """The gateway is busy; the request took effect once or never will. Retry with its key or order_id."""


class GatewayNotReady(DomainError, code="gateway.not_ready", status=503):
    """The gateway cannot serve yet: a store or a migration is missing."""


class GatewayInternalError(DomainError, code="gateway.internal_error", status=500):
    """Something failed that should not; its request id leads to the log."""
