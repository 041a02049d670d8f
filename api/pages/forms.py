"""Receives the forms of hosted pages, so that they work without scripts. Used by api.pages.

A form is posted to the page's own address and does what the API's endpoint for it does, with the same checks. Without a
session there is no right to steal; the origin is checked all the same, so that no other site can order in a visitor's
name (API reference, "Hosted payment page").
"""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from falcon import Request

from actors.queue.caller import CallInfo
from api.endpoints import Call, Endpoint
from api.gateway import Gateway
from api.http import asking
from api.http.body import content_length, read_body
from api.http.client_ip import client_ip
from core.errors import RequestBadContentType, RequestBadJson
from core.http.requests import read_request
from core.ids import uuid7

FORM_BYTES_MAX: Final = 8_192
FIELDS_MAX: Final = 8
FORM_TYPE: Final = "application/x-www-form-urlencoded"


class ForeignFormError(Exception):
    """A form was sent from another site, or by a browser that does not name the site."""

    status: Final = HTTPStatus.FORBIDDEN


def read_form(req: Request, pay_url: str) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent, without surrounding blanks.

    Raises ForeignFormError, and a DomainError if the body is no form of a few single fields.
    """
    _check_origin(req, pay_url)
    if req.env.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise RequestBadContentType
    body = read_body(req.env, content_length(req.env, limit=FORM_BYTES_MAX))
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise RequestBadJson("The form cannot be read.") from error
    fields = {name: value.strip() for name, value in pairs}
    if len(fields) != len(pairs):
        raise RequestBadJson("A field stands twice in the form.")
    return fields


def _check_origin(req: Request, pay_url: str) -> None:
    """Refuse a form of another site.

    Browsers name no origin from pages without referrer, but they report whether the page was of the same origin.
    """
    site = req.env.get("HTTP_SEC_FETCH_SITE")
    parts = urlsplit(pay_url)
    is_ours = (
        req.env.get("HTTP_ORIGIN") == f"{parts.scheme}://{parts.netloc}" if site is None else site == "same-origin"
    )
    if not is_ours:
        raise ForeignFormError


def submit(gateway: Gateway, req: Request, endpoint: Endpoint, params: dict[str, str], fields: dict[str, str]) -> Any:
    """Call an endpoint's actor with a form's fields as its body; return the decoded result. Raises DomainErrors."""
    actor, request = endpoint.actor, endpoint.request
    if actor is None or request is None:
        raise LookupError(f"{endpoint.name} has no actor")
    body = read_request(request, {name: value for name, value in fields.items() if value}, own_hosts=gateway.own_hosts)
    call = Call(
        request_id=req.context.request_id,
        principal=None,
        body=body,
        params=params,
        source=lambda: client_ip(req.env, gateway.settings.trusted_proxies),
    )
    info = CallInfo(
        call_id=uuid7(), merchant_id=None, principal_id=None, request_id=call.request_id, idem_key=None,
        fingerprint=hashlib.sha256(msgspec.json.encode(fields)).digest(), signature_key=None,
    )  # fmt: skip
    answer, _ = asking.ask(gateway, actor, call, info)
    return msgspec.json.decode(answer)
