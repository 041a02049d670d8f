"""Serves an endpoint: reads, authenticates, calls its actor or reader, sends the answer. Used by api.app."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Sequence
from typing import Final

import falcon
from falcon import Request, Response

from actors.queue.caller import CallInfo
from api.endpoints import Actor, Call, Endpoint, Reply, envelope
from api.gateway import Gateway
from api.http import asking, http_cache
from api.http.auth import Principal, check_metrics_token
from api.http.body import check_content_type, content_length, read_body, read_json
from api.http.client_ip import client_ip
from api.limits.sources import Source, source_of
from core.errors import (
    AuthBadTimestamp,
    AuthBadToken,
    AuthIpNotAllowed,
    DomainError,
    IdempotencyBadKey,
    IdempotencyUnavailable,
    MerchantBadSignature,
    MerchantUnknownKey,
    MerchantWrongKeyKind,
    PayNotFound,
)
from core.http.requests import meant_fields, read_request, unknown_fields
from core.ids import uuid7
from models.db.base import StoreUnavailableError

IDEMPOTENCY_KEY_CHARS_MAX: Final = 255
# Reading a body of a megabyte keeps a processor busy for a tenth of a second: all threads at once would stop sales.
LARGE_BYTES: Final = 16 * 1024
# The beginning of the key of a request without Idempotency-Key: no header can contain a line feed.
SIGNATURE_KEY: Final = "\n"

# Any origin, but never with credentials: a public answer is public to a browser too.
CORS: Final = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", "ETag, Retry-After, X-Gateway-Time, X-Request-Id, X-Unknown-Fields"),
)
PREFLIGHT: Final = (
    ("Access-Control-Allow-Headers", "Content-Type, If-None-Match, X-Request-Id"),
    ("Access-Control-Max-Age", "86400"),
)
HTTP_OK: Final = 200
# Refusals of callers that do not prove a key.
NOT_PROVED: Final = (AuthBadTimestamp, AuthIpNotAllowed, MerchantBadSignature, MerchantUnknownKey)


class Resource:
    """A path with its operations, as falcon's resource."""

    # Each operation has a limit of its own.
    is_anonymous = False

    def __init__(self, gateway: Gateway, endpoints: Sequence[Endpoint]) -> None:
        operations: dict[str, Operation] = {endpoint.method: Operation(gateway, endpoint) for endpoint in endpoints}
        if "GET" in operations:
            operations["HEAD"] = operations["GET"]
        for method, operation in operations.items():
            setattr(self, f"on_{method.lower()}", operation)
        self.methods = set(operations)
        if any(endpoint.cors for endpoint in endpoints):
            self.methods.add("OPTIONS")
        self.allow = ", ".join(sorted(self.methods))

    def on_options(self, _req: Request, resp: Response, **_params: str) -> None:
        """Answer a browser's preflight request. Resources without CORS have refused the method before."""
        resp.status = falcon.HTTP_204
        resp.set_headers((*CORS, *PREFLIGHT, ("Access-Control-Allow-Methods", self.allow), ("Allow", self.allow)))


class Operation:
    """One endpoint, called once per request."""

    def __init__(self, gateway: Gateway, endpoint: Endpoint) -> None:
        self._gateway = gateway
        self._endpoint = endpoint

    def __call__(self, req: Request, resp: Response, **params: str) -> None:
        """Answer one request, or raise the error that refuses it."""
        endpoint = self._endpoint
        if endpoint.cors:
            resp.set_headers(CORS)
        if endpoint.is_guarded:
            self._check_token(req, resp)
        try:
            self._answer(req, resp, params)
        except PayNotFound:
            if endpoint.is_payment_page:
                self._gateway.limiter.note_unknown(self._source(req))
            raise
        except DomainError as error:
            self._name_meant(req, error)
            raise
        finally:
            # A misspelled field is otherwise found by its missing effect.
            if unknown := getattr(req.context, "unknown_fields", ()):
                resp.set_header("X-Unknown-Fields", ", ".join(unknown))
            if endpoint.cors:
                self._gateway.clock.stamp(resp)
        if endpoint.status != HTTP_OK:
            resp.status = endpoint.status
        if not endpoint.cached:
            resp.set_header("Cache-Control", "no-store")

    def _answer(self, req: Request, resp: Response, params: dict[str, str]) -> None:
        endpoint = self._endpoint
        with contextlib.ExitStack() as slots:
            call, body = self._read(req, params, slots)
            if endpoint.actor is not None:
                resp.data = self._ask(req, resp, endpoint.actor, call, body)
            elif endpoint.reader is not None:
                if endpoint.is_search:
                    slots.enter_context(self._gateway.searches.taken(call.merchant_id))
                if endpoint.takes_slot:
                    slots.enter_context(self._gateway.reads.taken(call.merchant_id))
                self._send(req, resp, endpoint.reader(self._gateway, call))

    def _read(self, req: Request, params: dict[str, str], slots: contextlib.ExitStack) -> tuple[Call, bytes]:
        """Read and authenticate a request. A large one takes its merchant's turn until `held` ends."""
        endpoint, settings = self._endpoint, self._gateway.settings
        if endpoint.limit is not None:
            asking.admit(self._gateway, endpoint, self._source(req), params)
        body = b""
        if endpoint.request is not None:
            length = content_length(req.env, limit=settings.body_limit)
            check_content_type(req.env)
            body = read_body(req.env, length)
        principal = None if endpoint.rights is None else self._authenticate(req, body)
        if principal is not None and len(body) > LARGE_BYTES:
            slots.enter_context(self._gateway.large.taken(principal.merchant_id))
        request = None
        if endpoint.request is not None:
            fields = read_json(body)
            req.context.unknown_fields = unknown_fields(endpoint.request, fields)
            request = read_request(endpoint.request, fields, own_hosts=self._gateway.own_hosts)
        call = Call(
            request_id=req.context.request_id,
            principal=principal,
            body=request,
            params=params,
            source=functools.partial(client_ip, req.env, settings.trusted_proxies),
        )
        return call, body

    def _name_meant(self, req: Request, error: DomainError) -> None:
        """Add to a refusal the fields that its caller seems to have misspelled, which may be its cause."""
        unknown, schema = getattr(req.context, "unknown_fields", ()), self._endpoint.request
        if schema is None or error.retryable:
            return
        if meant := meant_fields(schema, unknown):
            error.message = error.message.removesuffix(".") + "." + meant

    def _source(self, req: Request) -> Source:
        return source_of(client_ip(req.env, self._gateway.settings.trusted_proxies))

    def _check_token(self, req: Request, resp: Response) -> None:
        try:
            check_metrics_token(self._gateway.settings, req.env)
        except AuthBadToken:
            self._gateway.limiter.admit("unproved", self._source(req))
            resp.set_header("WWW-Authenticate", "Bearer")
            raise

    def _authenticate(self, req: Request, body: bytes) -> Principal:
        endpoint = self._endpoint
        try:
            principal = self._gateway.authenticator.authenticate(req.env, req.method, req.context.target, body)
        except NOT_PROVED:
            # Only failures count: a caller that shares an address with a guesser can still prove its key.
            self._gateway.limiter.admit("unproved", self._source(req))
            raise
        except StoreUnavailableError as error:
            if endpoint.creates and "HTTP_IDEMPOTENCY_KEY" in req.env:
                raise IdempotencyUnavailable from error
            raise
        self._gateway.limiter.admit_key(principal.public_id)
        if endpoint.rights is not None and principal.kind not in endpoint.rights:
            raise MerchantWrongKeyKind
        return principal

    def _ask(self, req: Request, resp: Response, actor: Actor, call: Call, body: bytes) -> bytes:
        key, signature_key = self._idempotency_key(req), self._signature_key(req, call)
        info = CallInfo(
            call_id=uuid7(),
            merchant_id=call.merchant_id,
            principal_id=None if call.principal is None else call.principal.public_id,
            request_id=call.request_id,
            idem_key=signature_key if key is None else key,
            fingerprint=hashlib.sha256(f"{req.method}\n{req.path}\n".encode() + body).digest(),
            signature_key=None if key is None else signature_key,
        )
        answer, is_replayed = asking.ask(self._gateway, actor, call, info)
        if is_replayed:
            resp.set_header("Idempotent-Replayed", "true")
        if self._endpoint.differing is not None and (names := self._endpoint.differing(call, answer)):
            resp.set_header("X-Differing-Fields", ", ".join(names))
        return answer if self._endpoint.bare else envelope(answer)

    def _idempotency_key(self, req: Request) -> str | None:
        """Return the key of a creating request; other requests may carry one without effect."""
        if not self._endpoint.creates:
            return None
        key: str | None = req.env.get("HTTP_IDEMPOTENCY_KEY")
        if key is not None and not (0 < len(key) <= IDEMPOTENCY_KEY_CHARS_MAX and SIGNATURE_KEY not in key):
            raise IdempotencyBadKey
        return key

    def _signature_key(self, req: Request, call: Call) -> str | None:
        """Return a key that only the identical request has: the signature covers method, path and body."""
        if not self._endpoint.dedupes_signature:
            return None
        return f"{SIGNATURE_KEY}{call.merchant().public_id}:{req.env['HTTP_X_SIGNATURE']}"

    def _send(self, req: Request, resp: Response, reply: Reply) -> None:
        resp.set_headers(reply.headers)
        body = reply.body if reply.packed is None else http_cache.choose(req, resp, reply.packed)
        if self._endpoint.cached and http_cache.is_known(req, resp, body):
            return
        resp.content_type = reply.content_type
        resp.data = body
