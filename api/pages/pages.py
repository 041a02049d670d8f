"""Serves hosted pages and their static files. They are readable without scripts; with scripts they update themselves.

Templates escape all text of a merchant, links are http(s) or absent, and the headers forbid a browser to run anything
that does not come from here (API reference, "Hosted payment page").
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit
from uuid import UUID

import jinja2
from falcon import Request, Response
from markupsafe import Markup

from api.endpoints import Endpoint
from api.gateway import Gateway
from api.http import asking, http_cache
from api.http.client_ip import client_ip
from api.http.clock import CLOCK_HEADER
from api.http.errors import as_domain_error
from api.limits.sources import Source, source_of
from api.pages import forms, icons, languages, payment_stages
from api.pages.languages import Language
from api.pages.payment_stages import Stage
from api.routes.invoices.pay import SELECT, find, offered_for, public_view
from core.catalogue.catalogue import Method
from core.errors import DomainError, PayNotFound, RequestNotFound, TooManyRequestsError
from core.http.encoding import GZIP, pack, takes_gzip
from core.ids import is_uuid
from core.invoices import uris
from core.money import parse_units
from core.settings.settings import Settings
from core.texts.qr import qr_data_uri
from models.invoices import arrivals
from models.invoices.rows import InvoiceRow
from models.merchants import rows as merchants

HERE: Final = Path(__file__).parent
HTML: Final = "text/html; charset=utf-8"
FOLDERS: Final = ("templates", "texts", "static")
# The script that others begin with.
COMMON: Final = "common.js"
FOLLOWING: Final = ("pay.js", "claim.js", "link.js")
# The significant digits of a rate.
RATE_DIGITS: Final = 6
# A page is compressed for each reader: this level takes a tenth of a millisecond.
PAGE_COMPRESSION: Final = 4

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = (
    ("Content-Security-Policy", _CSP),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    # The id in the address is the key to the page: no shared cache and no search engine may keep it.
    ("Cache-Control", "no-store"),
    ("X-Robots-Tag", "noindex"),
)
_HSTS: Final = ("Strict-Transport-Security", "max-age=31536000")


class StaticFiles:
    """The pages' style, script and icon, read once; an address changes with its file's contents."""

    methods = frozenset({"GET", "HEAD"})
    allow = "GET, HEAD"
    is_anonymous = True

    def __init__(self) -> None:
        files = sorted((HERE / "static").iterdir())
        plain = {file.name: file.read_bytes() for file in files if file.suffix in _TYPES}
        # The common part of pages that follow the gateway takes no request of its own.
        common = plain.pop(COMMON)
        plain |= {name: common + plain[name] for name in FOLLOWING}
        self._bodies = {name: pack(body) for name, body in plain.items()}

    def url(self, name: str) -> str:
        """Return the address of a file's present version."""
        return f"/static/{name}?v={hashlib.sha256(self._bodies[name].plain).hexdigest()[:12]}"

    def on_get(self, req: Request, resp: Response, name: str) -> None:
        """Send a file."""
        packed = self._bodies.get(name)
        if packed is None:
            raise RequestNotFound
        resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
        body = http_cache.choose(req, resp, packed)
        if not http_cache.is_known(req, resp, body):
            resp.content_type = _TYPES[Path(name).suffix]
            resp.data = body

    on_head = on_get


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a form: one of our pages to go on to, or the same page again, with a problem if there is one."""

    leads_to: str = ""
    status: int = HTTPStatus.OK
    problem: str = ""
    # The API's code of the problem.
    code: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


NO_OUTCOME: Final = Outcome()


class HostedPage:
    """The common part of all pages: the headers, the limits, and a page in plain words for each error."""

    methods = frozenset({"GET", "HEAD", "POST"})
    allow = "GET, HEAD, POST"
    # Its requests count as public ones.
    is_anonymous = False
    template: ClassVar[str]
    # The text for a wrong link.
    no_such: ClassVar[str]
    # The text for a reader who came by a wrong link.
    advice: ClassVar[str] = "problem.check_link"

    def __init__(self, gateway: Gateway, static: StaticFiles) -> None:
        self._gateway = gateway
        self._headers = page_headers(gateway.settings)
        self._page = templates(static).get_template(self.template)
        self._version = version()
        self._error_page = templates(static).get_template("error.html")

    def _show(
        self,
        req: Request,
        resp: Response,
        render: Callable[[Language], str | None],
        *,
        payment_id: UUID | None = None,
    ) -> None:
        """Send a page, or an error in plain words. payment_id: the payment that the page shows and that is counted."""
        self._answer(
            req,
            resp,
            admit=lambda source: self._admit(source, payment_id),
            answer=lambda say: self._reading(lambda: render(say)),
        )

    def _take_form(
        self,
        req: Request,
        resp: Response,
        *,
        endpoint: Endpoint,
        params: Mapping[str, str],
        act: Callable[[dict[str, str], Language], Outcome],
        show: Callable[[Outcome, Language], str],
    ) -> None:
        """Do what a form orders: lead the browser on, or show the page again with the problem next to its field.

        endpoint: the one of the API that the form is for; its limit counts.
        """

        def answer(say: Language) -> str | None:
            outcome = self._outcome(req, act, say)
            if outcome.leads_to:
                resp.status = HTTPStatus.SEE_OTHER
                resp.set_header("Location", languages.keep_choice(req, outcome.leads_to))
                return None
            resp.status = outcome.status
            return self._reading(lambda: show(outcome, say))

        self._answer(
            req, resp, admit=lambda source: asking.admit(self._gateway, endpoint, source, params), answer=answer
        )

    def _answer(
        self,
        req: Request,
        resp: Response,
        *,
        admit: Callable[[Source], None],
        answer: Callable[[Language], str | None],
    ) -> None:
        say = languages.language_of(req)
        languages.label(resp, say)
        resp.set_headers(self._headers)
        self._gateway.clock.stamp(resp)
        source = source_of(client_ip(req.env, self._gateway.settings.trusted_proxies))
        try:
            admit(source)
            text = self._text_or_error(resp, source, lambda: answer(say), say)
        except TooManyRequestsError as refusal:
            self._show_limit(req, resp, refusal, say)
            return
        if text is not None:
            resp.content_type, resp.text = HTML, text
            _compress(req, resp)

    def _text_or_error(
        self, resp: Response, source: Source, answer: Callable[[], str | None], say: Language
    ) -> str | None:
        try:
            return answer()
        except TooManyRequestsError:
            raise
        except Exception as error:  # noqa: BLE001 - a buyer gets a page after any failure
            domain = as_domain_error(error)
            if isinstance(domain, PayNotFound):
                self._gateway.limiter.note_unknown(source)
            resp.status = domain.status
            return self._error_text(say(self._error_key(domain)), say)

    def _new_text(self, req: Request, resp: Response, say: Language, inputs: Mapping[str, Any]) -> str | None:
        """Return the page that is made of these inputs, or None if the reader has this version.

        The ETag follows from the inputs, so a poll that finds nothing new renders nothing. The page holds it, for the
        first question of its script.
        """
        if http_cache.is_known(req, resp, repr((self._version, say.code, inputs)).encode(), is_weak=True):
            return None
        etag = (resp.get_header("ETag") or "").removeprefix("W/").strip('"')
        return self._page.render(say=say, tag=etag, **inputs)

    def _reading(self, render: Callable[[], str | None]) -> str | None:
        with self._gateway.reads.taken():
            return render()

    def _outcome(self, req: Request, act: Callable[[dict[str, str], Language], Outcome], say: Language) -> Outcome:
        form: dict[str, str] = {}
        try:
            form = forms.read_form(req, self._gateway.settings.pay_url)
            return act(form, say)
        except forms.ForeignFormError as error:
            return Outcome(status=error.status, problem=say("problem.foreign_form"))
        except DomainError as refusal:
            return Outcome(status=refusal.status, problem=say.error(refusal.code), code=refusal.code, fields=form)

    def _admit(self, source: Source, payment_id: UUID | None) -> None:
        if payment_id is None:
            self._gateway.limiter.admit("public", source)
        else:
            self._gateway.limiter.admit_page("public", source, payment_id)

    def _show_limit(self, req: Request, resp: Response, refusal: TooManyRequestsError, say: Language) -> None:
        """Ask a browser in words to wait; answer a program as every other 429."""
        if not takes_pages(req):
            raise refusal
        resp.status = HTTPStatus.TOO_MANY_REQUESTS
        resp.set_header("Retry-After", str(refusal.retry_after_s))
        resp.content_type = HTML
        resp.text = self._error_text(say("problem.reload_in", seconds=refusal.retry_after_s), say)

    def _error_text(self, title: str, say: Language) -> str:
        return self._error_page.render(title=title, lines=(say(self.advice),), say=say)

    def _error_key(self, error: DomainError) -> str:
        """Return the key of the text for an error."""
        return self.no_such if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else "problem.busy"

    def _network_name(self, network: str | None) -> str:
        return self._gateway.catalogue.networks[network].name if network else ""

    def _method(self, method: Method) -> dict[str, str]:
        """Return a method that a buyer may choose, with the common names of its coin and network."""
        currency, network = method
        name, network_name = self._gateway.catalogue.assets[currency].name, self._network_name(network)
        return {"currency": currency, "network": network, "name": name, "network_name": network_name}


class PaymentPage(HostedPage):
    """GET /pay/<uuid>."""

    template = "pay.html"
    no_such = "problem.no_payment"
    advice = "problem.check_shop_link"

    def on_get(self, req: Request, resp: Response, invoice_id: str) -> None:
        """Show a payment. An open page asks again by itself, and gets 304 while nothing has changed."""
        payment_id = UUID(invoice_id) if is_uuid(invoice_id) else None
        self._show(req, resp, lambda say: self._render(req, resp, invoice_id, say), payment_id=payment_id)

    on_head = on_get

    def on_post(self, req: Request, resp: Response, invoice_id: str) -> None:
        """Choose coin and network, for browsers without scripts."""
        params = {"invoice_id": invoice_id}

        def choose(form: dict[str, str], _say: Language) -> Outcome:
            currency, _, network = form.get("method", "").partition(":")
            choice = {"currency": currency, "network": network}
            forms.submit(self._gateway, req, SELECT, params, choice)
            return Outcome(leads_to=f"/pay/{invoice_id}")

        self._take_form(
            req,
            resp,
            endpoint=SELECT,
            params=params,
            act=choose,
            show=lambda outcome, say: self._text(invoice_id, say, outcome),
        )

    def _render(self, req: Request, resp: Response, invoice_id: str, say: Language) -> str | None:
        inputs, now = self._inputs(invoice_id, say)
        # The countdown uses the gateway's clock, not the device's. A header: inside the page it would change the ETag.
        resp.set_header(CLOCK_HEADER, str(int(now.timestamp() * 1000)))
        return self._new_text(req, resp, say, inputs)

    def _text(self, invoice_id: str, say: Language, outcome: Outcome) -> str:
        inputs, _ = self._inputs(invoice_id, say, outcome)
        return self._page.render(say=say, tag="", **inputs)

    def _inputs(self, invoice_id: str, say: Language, outcome: Outcome = NO_OUTCOME) -> tuple[dict[str, Any], datetime]:
        """Return all that a payment's page shows, and the moment of the gateway's clock to which it belongs."""
        shown = find(self._gateway, invoice_id)
        row = shown.invoice
        came = arrivals.read(row.id, expires_at=row.expires_at)
        shop, now = merchants.face_now(row.merchant_id)
        is_over_time = now >= row.expires_at
        stage = payment_stages.stage(self._gateway.catalogue, shown, came, is_over_time=is_over_time, say=say)
        offered = offered_for(self._gateway, row)
        view = public_view(self._gateway, shown, offered)
        inputs = {
            "payment": view,
            "stage": stage,
            "problem": outcome.problem,
            "methods": [
                self._method(method) | {"amount": offered.amount(method), "fee": offered.fee(method)}
                for method in offered.methods
            ],
            "transaction_url": self._transaction_url(row),
            "network_name": self._network_name(row.network),
            "shop": shop,
            "theme": row.theme,
            "rate": rate_text(view),
            "fee_percent": row.subtract_percent,
            "has_strip": self._gateway.settings.development_desk_url is not None,
        }
        return inputs | self._ways_to_pay(row, stage), now

    def _transaction_url(self, invoice: InvoiceRow) -> str:
        network = self._gateway.catalogue.networks.get(invoice.network or "")
        return "" if network is None else self._gateway.settings.transaction_url(network, invoice.shown_txid)

    def _ways_to_pay(self, invoice: InvoiceRow, stage: Stage) -> dict[str, str]:
        """Return the wallet link of the sum to send, and that of its code; empty while nothing has to be sent."""
        pair = self._gateway.catalogue.pair(invoice.pay_currency or "", invoice.network or "")
        if pair is None or not stage.to_pay:
            return {"wallet_uri": "", "code_uri": ""}
        units = parse_units(stage.to_pay, digits=pair.decimals, error=ValueError)
        network = self._gateway.catalogue.networks[pair.network]
        request = uris.Request(network=network, pair=pair, address=invoice.address, units=units)
        return {"wallet_uri": uris.wallet_uri(request), "code_uri": uris.code_uri(request)}


def page_headers(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the headers of every page."""
    return (*_PAGE_HEADERS, _HSTS) if urlsplit(settings.pay_url).scheme == "https" else _PAGE_HEADERS


def _compress(req: Request, resp: Response) -> None:
    """Compress a page for a browser that accepts it. No page holds both a secret and a text of its reader."""
    resp.append_header("Vary", "Accept-Encoding")
    if resp.text is not None and takes_gzip(req.env.get("HTTP_ACCEPT_ENCODING", "")):
        resp.data, resp.text = gzip.compress(resp.text.encode(), PAGE_COMPRESSION, mtime=0), None
        resp.set_header("Content-Encoding", GZIP)


def takes_pages(req: Request) -> bool:
    """Return True if the client accepts HTML, as browsers do."""
    return "text/html" in req.env.get("HTTP_ACCEPT", "")


@functools.cache
def templates(static: StaticFiles) -> jinja2.Environment:
    """Return the templates of all pages."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        static=static.url,
        coin_icons=icons.COINS,
        network_icons=icons.NETWORKS,
        languages=languages.languages(),
        Markup=Markup,
        script_words=script_words,
    )
    environment.filters.update(web_link=web_link, utc_time=utc_time, utc_day=utc_day, qr=qr_data_uri)
    return environment


@functools.cache
def version() -> str:
    """Return the digest of all that pages are made of, apart from their inputs."""
    files = sorted(file for folder in FOLDERS for file in (HERE / folder).iterdir() if file.is_file())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@functools.cache
def static_files() -> StaticFiles:
    """Return the process's static files, read once."""
    return StaticFiles()


def web_link(url: str) -> str:
    """Return a link's address if it is safe for a browser, else an empty text. The last of several checks."""
    return url if urlsplit(url).scheme in {"http", "https"} else ""


def rate_text(view: Mapping[str, Any]) -> str:
    """Return the rate of a payment's quote; empty if the price is in the coin itself, or no quote exists."""
    coin, currency = view["payer_currency"], view["currency"]
    if not view["payer_amount"] or coin == currency:
        return ""
    return f"1 {coin} = {rounded(Decimal(view['amount']) / Decimal(view['payer_amount']))} {currency}"


def rounded(rate: Decimal) -> str:
    """Write a rate with six digits, at least two of them after the point."""
    places = max(2, RATE_DIGITS - 1 - rate.adjusted())
    return f"{rate:,.{places}f}"


def utc_time(unix_s: int) -> str:
    """Return a time for readers without scripts; scripts show it in local time."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%H:%M} UTC"


def utc_day(unix_s: int) -> str:
    """Return, like utc_time(), a time that may be days away."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d, %H:%M} UTC"


def script_words(say: Language) -> str:
    """Return the texts that only scripts show, as JSON; each has the place of its value."""
    return _script_words(say.code)


@functools.cache
def _script_words(code: str) -> str:
    say = languages.languages()[code]
    places = {"left": "time", "days": "days", "stale": "time"}
    keys = [key.partition(".")[2] for key in say.texts if key.startswith("script.")]
    return json.dumps({key: say(f"script.{key}", **_place(places.get(key))) for key in keys}, ensure_ascii=False)


def _place(name: str | None) -> dict[str, str]:
    return {} if name is None else {name: f"{{{name}}}"}
