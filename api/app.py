"""Builds the WSGI application. Called by api.wsgi in production, and by tests with a caller of their own."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import falcon
import msgspec
from falcon import App, Request, Response

from actors.queue.merchant_limits import Shares
from api import availability
from api.availability import Availability, Usable
from api.documentation.pages import Documentation
from api.endpoints import Endpoint
from api.gateway import Caller, Gateway, Queues
from api.health.attention import Attention
from api.health.gauges import gauges
from api.health.health import Readiness, store_checks
from api.health.metrics import Metrics
from api.http import errors
from api.http.auth import Authenticator
from api.http.client_ip import client_ip
from api.http.clock import GatewayClock
from api.http.dispatch import Resource
from api.http.middleware import Frame
from api.http.paths import Paths
from api.http.slots import Slots
from api.limits.limits import Limiter, Link, limits_of
from api.limits.sources import source_of
from api.openapi.document import describe
from api.pages import development
from api.pages.claim_page import ClaimPage
from api.pages.development import DevelopmentPage
from api.pages.error_pages import ErrorPages
from api.pages.link_page import LinkPage
from api.pages.logos import Logos
from api.pages.pages import PaymentPage, static_files
from api.routes import ENDPOINTS
from core.catalogue.catalogue import Catalogue
from core.errors import RequestNotFound
from core.http.encoding import Packed, pack
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings
from models.merchants import rows as merchants
from models.merchants.rows import ApiKeyRow

# Large requests of one merchant that may wait for its turn, each in a thread; and the longest wait.
LARGE_WAITING_MAX: Final = 4
LARGE_PATIENCE_S: Final = 2.0
# A merchant's lists that may be read at once, each in a session of PostgreSQL; and those that may wait for them.
SEARCHES_MAX: Final = 2
SEARCHES_WAITING_MAX: Final = 8


def create_app(
    settings: Settings,
    *,
    caller: Caller,
    queues: Queues,
    link: Link | None = None,
    find_key: Callable[[str], ApiKeyRow | None] = merchants.find_key,
    read_usable: Callable[[Catalogue, frozenset[str]], Usable] = availability.read_usable,
    now: Callable[[], float] = time.time,
) -> App[Request, Response]:
    """Return the application. Requires that models.db.base has its database; `now` is the real clock.

    Without a link to Redis, rate limits hold for this process alone.
    """
    reads = Slots(settings.reads_max)
    authenticator = Authenticator(
        secret_box=SecretBox(settings.secret_keys),
        trusted_proxies=settings.trusted_proxies,
        find_key=_in_slot(reads, find_key),
        now=now,
    )
    limiter = Limiter(limits_of(settings), link=link, namespace=settings.redis_namespace, now=now)
    gateway = _gateway(
        settings,
        caller=caller,
        queues=queues,
        authenticator=authenticator,
        limiter=limiter,
        reads=reads,
        read_usable=read_usable,
    )
    admit_anonymous = _admitting_anonymous(settings, limiter)
    paths = Paths(endpoint.path for endpoint in ENDPOINTS)
    app = falcon.App(middleware=[Frame(gateway.metrics, admit_anonymous, paths)])
    errors.install(app, ErrorPages(settings, static_files(), ENDPOINTS).show)
    _add_routes(app, gateway)
    app.add_sink(_answering_unknown(admit_anonymous, paths))
    return app


def _admitting_anonymous(settings: Settings, limiter: Limiter) -> Callable[[Request], None]:
    def admit(req: Request) -> None:
        limiter.admit("anonymous", source_of(client_ip(req.env, settings.trusted_proxies)))

    return admit


def _answering_unknown(admit_anonymous: Callable[[Request], None], paths: Paths) -> Callable[..., None]:
    def refuse(req: Request, _resp: Response, **_params: str) -> None:
        admit_anonymous(req)
        raise RequestNotFound(paths.text_for(req.path))

    return refuse


def _add_routes(app: App[Request, Response], gateway: Gateway) -> None:
    by_path: dict[str, list[Endpoint]] = defaultdict(list)
    for endpoint in ENDPOINTS:
        by_path[endpoint.path].append(endpoint)
    for path, endpoints in by_path.items():
        app.add_route(path, Resource(gateway, endpoints))
    static = static_files()
    app.add_route("/static/{name}", static)
    documentation = Documentation(gateway.settings, static)
    app.add_route("/docs", documentation)
    app.add_route("/docs/{name}", documentation)
    app.add_route("/logo/{digest}", Logos(gateway.reads))
    app.add_route("/pay/{invoice_id}", PaymentPage(gateway, static))
    if gateway.settings.development_desk_url is not None:
        app.add_route(development.ROUTE, DevelopmentPage(gateway, static))
    app.add_route("/claim/{token}", ClaimPage(gateway, static))
    app.add_route("/link/{link_id}", LinkPage(gateway, static))


def _gateway(
    settings: Settings,
    *,
    caller: Caller,
    queues: Queues,
    authenticator: Authenticator,
    limiter: Limiter,
    reads: Slots,
    read_usable: Callable[..., Usable],
) -> Gateway:
    metrics, attention = Metrics(), Attention(settings, queues.heartbeats)
    metrics.register(gauges(queues, settings, attention))
    catalogue, served = settings.catalogue, frozenset(settings.rpc_urls)
    return Gateway(
        settings=settings,
        catalogue=catalogue,
        available=served,
        availability=Availability(
            functools.partial(read_usable, catalogue, served, fee_max_percent=settings.sweep_fee_max_percent)
        ),
        own_hosts=settings.own_hosts,
        caller=caller,
        authenticator=authenticator,
        clock=GatewayClock(),
        limiter=limiter,
        reads=reads,
        searches=Shares(SEARCHES_MAX, waiting_max=SEARCHES_WAITING_MAX, patience_s=LARGE_PATIENCE_S),
        large=Shares(1, waiting_max=LARGE_WAITING_MAX, patience_s=LARGE_PATIENCE_S),
        readiness=Readiness(store_checks(queues)),
        attention=attention,
        metrics=metrics,
        openapi=functools.cache(functools.partial(_description, settings.base_url)),
    )


def _description(base_url: str) -> Packed:
    return pack(msgspec.json.encode(describe(ENDPOINTS, base_url=base_url)))


def _in_slot(reads: Slots, find_key: Callable[[str], ApiKeyRow | None]) -> Callable[[str], ApiKeyRow | None]:
    def find(public_id: str) -> ApiKeyRow | None:
        with reads.taken():
            return find_key(public_id)

    return find
