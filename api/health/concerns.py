"""Lists the checks of the whole gateway. Read by GET /readyz, GET /metrics and `sluice doctor`.

Each yields a line for each fault, with whether it stops calls, payments or payouts, or is advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from actors.queue.registry import QUEUES
from api.gateway import Heartbeats
from core.settings.settings import Settings
from models.db import migrate, server
from models.deposits import provider_looks, scans
from models.invariants import checkpoint
from models.merchants import email_wishes
from models.rates import rates
from models.spends import signer_states
from models.treasury import reconciliation


class Fault(NamedTuple):
    """A line for the operator. stops: calls, payments or payouts wait until it is mended.

    detail: the reason, for operators alone: GET /readyz is public.
    """

    text: str
    stops: bool = True
    detail: str = ""


Concern = Callable[[], Iterator[Fault]]

# The most frequent ticks come every second or faster.
TICK_AGE_MAX_S: Final = 30.0
# The audit runs every minute.
AUDIT_AGE_MAX_S: Final = 900.0
# From this share of the allowed connections on, there may soon be none left.
CONNECTIONS_SHARE: Final = 0.9
_UNKNOWN: Final = "not known yet, since Redis began empty a moment ago"
# Queues whose absence stops neither calls nor payments nor payouts.
OPTIONAL_QUEUES: Final = frozenset({"emails"})


def concerns(settings: Settings, heartbeats: Heartbeats) -> dict[str, Concern]:
    """Return the checks by name. Each yields a line for each fault, and nothing if all is well."""
    return {
        "writes": _refused_writes,
        "connections": lambda: _few_connections(heartbeats),
        "schema": _newer_schema,
        "queues": lambda: _unserved(heartbeats),
        "scheduler": lambda: _silent_scheduler(heartbeats),
        "signer": _unable_signer,
        "rates": lambda: _unpriced(settings),
        "scans": lambda: _unscanned(settings),
        "providers": lambda: _silent_providers(settings),
        "books": lambda: _uncompared(settings),
        "audit": _old_audit,
        "emails": lambda: _unsent_emails(settings),
        "proxies": lambda: _hidden_sources(settings),
    }


def coins(settings: Settings) -> list[str]:
    """Return the coins of the served networks."""
    catalogue = settings.catalogue
    return sorted({pair.currency for network in settings.rpc_urls for pair in catalogue.pairs_on(network)})


def unpriced_coins(settings: Settings) -> list[str]:
    """Return the coins of the served networks that have no fresh rate."""
    served = coins(settings)
    priced = rates.load_market().rates if served else {}
    return [coin for coin in served if coin not in priced]


def _refused_writes() -> Iterator[Fault]:
    reason = server.refusal()
    if reason:
        yield Fault(f"PostgreSQL took none for {server.writing().age_s:.0f} s", detail=reason)


def _few_connections(heartbeats: Heartbeats) -> Iterator[Fault]:
    # This process opens some itself, and has no other occasion to report them.
    heartbeats.note_connections()
    nearest, shared_limit = server.places()
    if nearest.used >= nearest.limit * CONNECTIONS_SHARE:
        yield Fault(f"{nearest.used} of {nearest.limit} connections to PostgreSQL are open", stops=nearest.left <= 0)
    configured = heartbeats.connections()
    if configured > shared_limit:
        yield Fault(
            f"the running processes may open {configured} connections, PostgreSQL allows {shared_limit}", stops=False
        )


def _newer_schema() -> Iterator[Fault]:
    names = migrate.unknown()
    if names:
        yield Fault(f"the database is newer than this version, which does not know {', '.join(names)}", stops=False)


def _unserved(heartbeats: Heartbeats) -> Iterator[Fault]:
    idle = [queue for queue in QUEUES if not heartbeats.consumers(queue)]
    if idle and heartbeats.is_new():
        yield Fault(_UNKNOWN, stops=False)
    elif idle:
        yield Fault(f"no process serves {', '.join(idle)}", stops=not OPTIONAL_QUEUES.issuperset(idle))


def _silent_scheduler(heartbeats: Heartbeats) -> Iterator[Fault]:
    age_s = heartbeats.tick_age_s()
    if age_s is None:
        yield Fault(_UNKNOWN, stops=False) if heartbeats.is_new() else Fault("does not tick")
    elif age_s > TICK_AGE_MAX_S:
        yield Fault(f"last ticked {age_s:.0f} s ago")


def _unable_signer() -> Iterator[Fault]:
    yield from (Fault("cannot sign", detail=problem) for problem in signer_states.problems())


def _unpriced(settings: Settings) -> Iterator[Fault]:
    unpriced = unpriced_coins(settings)
    if unpriced:
        yield Fault(f"no fresh rate for {', '.join(unpriced)}")
    aging = sorted(rates.aging(coins(settings)) - set(unpriced))
    if aging:
        text = f"no rate younger than {rates.CONVERSION_AGE_MAX_S} s for {', '.join(aging)}"
        yield Fault(text, stops=False)


def _unscanned(settings: Settings) -> Iterator[Fault]:
    begun = scans.read(settings.catalogue.networks)
    for network in settings.rpc_urls:
        if network not in begun:
            yield Fault(f"{network} was never scanned")
        elif begun[network].is_halted:
            yield Fault(f"{network} is halted, the log says why")
        elif not begun[network].is_current:
            yield Fault(f"{network} is {begun[network].lag_blocks:.0f} blocks behind its chain")


def _silent_providers(settings: Settings) -> Iterator[Fault]:
    for network, look in provider_looks.read(settings.rpc_urls).items():
        if look.age_s > provider_looks.AGE_MAX_S:
            yield Fault(f"{network} was last asked for its head {look.age_s:.0f} s ago")
        elif not look.answering:
            yield Fault(f"none of {look.providers} of {network} has named a head within a minute")
        elif look.answering < look.providers:
            yield Fault(f"{look.answering} of {look.providers} of {network} answer", stops=False)


def _uncompared(settings: Settings) -> Iterator[Fault]:
    begun = scans.read(settings.catalogue.networks)
    never = sorted(settings.rpc_urls.keys() & begun.keys() - reconciliation.compared_networks())
    if never:
        yield Fault(f"the hot wallet was never compared with the chain on {', '.join(never)}", stops=False)


def _old_audit() -> Iterator[Fault]:
    age_s = checkpoint.passed_age_s()
    if age_s is None:
        yield Fault("the books were never found right yet", stops=False)
    elif age_s > AUDIT_AGE_MAX_S:
        yield Fault(f"the books were last found right {age_s:.0f} s ago", stops=False)


def _unsent_emails(settings: Settings) -> Iterator[Fault]:
    if settings.smtp_url is None and email_wishes.is_any():
        yield Fault("e-mails are asked for, and SMTP_URL is missing: none is sent", stops=False)


def _hidden_sources(settings: Settings) -> Iterator[Fault]:
    # The gateway itself speaks plain HTTP only: if callers use https, a proxy in front of it ends TLS.
    is_behind = settings.environment == "production" and settings.base_url.startswith("https://")
    if is_behind and not settings.trusted_proxies:
        yield Fault(
            "TRUSTED_PROXIES is missing: behind a proxy all callers share one address, and one limit", stops=False
        )
