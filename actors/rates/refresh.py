"""Keeps the rates fresh, from public sources or, in development alone, from a table. Rung by the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib import resources
from typing import Final

import msgspec
import structlog

from actors.context import Context, context
from actors.queue.broker import doorbell, ring
from actors.rates.client import BUDGET_S, Problem, fetch_all
from core.logs.throttle import LogThrottle
from core.rates.consensus import Consensus, Rate, Reading, agree
from core.rates.shapes import SourceRefused
from core.rates.sources import Quotes, Source, load_sources, read_quotes
from models.db.base import app_now, transaction
from models.rates import rates
from models.rates import sources as rate_sources
from models.rates.rows import RateSourceRow

log = structlog.get_logger()

STATIC_TABLE: Final = "development_rates.json"
# Longer than asking takes; a process that dies while it asks delays its sources by no more.
LEASE_S: Final = int(BUDGET_S) + 10
REMINDER_S: Final = 60.0

_reminders = LogThrottle(every_s=REMINDER_S)


class StaticRatesRefusedError(Exception):
    """Refuse to price by a table outside of development; settings refuse it as well."""


@doorbell(queue="maintenance")
def refresh_rates() -> None:
    """Ask the sources that are due and settle the rates anew."""
    ctx = context()
    _REFRESH[ctx.settings.rates_source](ctx)
    # Fees are told in the coins that are sent, so that the first ones waited for these rates.
    for network in rates.unpriced_networks(ctx.available):
        ring("refresh_network_fees", network)


def static_rates() -> dict[str, Decimal]:
    """Return the table that development prices with: US dollars per unit."""
    text = resources.files("core.rates").joinpath(STATIC_TABLE).read_bytes()
    return {currency: Decimal(usd) for currency, usd in msgspec.json.decode(text, type=dict[str, str]).items()}


def refresh_from_table(ctx: Context) -> None:
    """Write the table's rates as if they were of now. Raises StaticRatesRefusedError."""
    if ctx.settings.environment != "development":
        raise StaticRatesRefusedError("static rates are for development only")
    if _reminders.allows("static"):
        log.warning("rates.static", what="rates come from a static table: for development only, never for money")
    with transaction():
        rates.keep_clock()
        now = app_now()
        rates.store_rates(
            {currency: Rate(usd=usd, as_of=now, sources=("static",)) for currency, usd in static_rates().items()}
        )


def refresh_from_sources(ctx: Context) -> None:
    """Ask the sources that are due, outside of any transaction, then record and settle in one."""
    urls = ctx.settings.rates_urls
    due = rate_sources.lease_due(urls.keys(), lease_s=LEASE_S)
    if not due:
        return
    answers = {name: _understood(name, body) for name, body in fetch_all({name: urls[name] for name in due}).items()}
    with transaction():
        rates.keep_clock()
        before = rate_sources.lock_all()
        for name, answer in answers.items():
            _record(load_sources()[name], name, answer)
        consensus = agree(
            ctx.catalogue,
            list(_readings(rate_sources.all_sources(), urls, app_now())),
            previous=rates.last_rates(),
            coin_sources_min=ctx.settings.rates_sources_min,
            now=app_now(),
        )
        rates.store_rates(consensus.rates)
    _tell_health(answers, before)
    _tell_disagreement(consensus)


def _understood(name: str, body: bytes | Problem) -> Quotes | Problem:
    if isinstance(body, Problem):
        return body
    try:
        # The real time: development's moved clock is none of the sources' business.
        return read_quotes(load_sources()[name], body, at=datetime.now(UTC))
    except SourceRefused as error:
        return Problem(text=str(error))


def _record(source: Source, name: str, answer: Quotes | Problem) -> None:
    if isinstance(answer, Problem):
        rate_sources.record_failure(name, answer.text, every_s=source.every_s)
    else:
        rate_sources.record_answer(name, answer, every_s=source.every_s)


def _readings(known: Mapping[str, RateSourceRow], urls: Iterable[str], now: datetime) -> Iterable[Reading]:
    """Yield the readings younger than their source's holds_s; those of daily tables count as of now."""
    for name in urls:
        row, source = known[name], load_sources()[name]
        if row.answered_at is None or (now - row.answered_at).total_seconds() > source.holds_s:
            continue
        as_of = now if source.kind == "table" else row.answered_at
        yield Reading(source=name, quoted_in=source.quoted_in, as_of=as_of, quotes=row.quotes)


def _tell_health(answers: Mapping[str, Quotes | Problem], before: Mapping[str, RateSourceRow]) -> None:
    for name, answer in answers.items():
        failures = before[name].failures
        if isinstance(answer, Problem):
            log.warning("rates.source_failed", source=name, problem=answer.text, failures=failures + 1)
        elif failures:
            log.info("rates.source_recovered", source=name, currencies=len(answer), failures=failures)
        else:
            log.debug("rates.source_answered", source=name, currencies=len(answer))


def _tell_disagreement(consensus: Consensus) -> None:
    """Say who is outvoted and what keeps its last rate. It stays so for long, so that a minute is often enough."""
    for source, currencies in consensus.outvoted.items():
        if _reminders.allows(f"outvoted:{source}"):
            log.warning("rates.source_outvoted", source=source, currencies=currencies)
    if consensus.held and _reminders.allows("held"):
        log.warning("rates.held", currencies=consensus.held)


_REFRESH: Final[Mapping[str, Callable[[Context], None]]] = {
    "static": refresh_from_table,
    "live": refresh_from_sources,
}
