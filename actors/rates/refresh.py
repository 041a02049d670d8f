"""Keeps the rates fresh, from public sources or, in development alone, from a table. Notified by the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from importlib import resources
from typing import Final

import msgspec
import structlog

from actors.context import Context, context
from actors.queue.broker import doorbell, ring
from actors.rates.asking import ROUND_S, Answer, Order, ask_all
from actors.rates.client import Problem
from core.logs.throttle import LogThrottle
from core.rates.consensus import Consensus, Rate, Reading, agree
from core.rates.sources import Source, load_sources
from models.db.base import app_now, transaction
from models.db.clock import is_recent
from models.rates import rates
from models.rates import sources as rate_sources
from models.rates.rows import RateSourceRow

log = structlog.get_logger()

STATIC_TABLE: Final = "development_rates.json"
# Longer than asking takes; a process that dies while it asks delays its sources by no more.
LEASE_S: Final = int(ROUND_S) + 10
# A symbol that a source does not know is asked for again after this time, by itself.
UNKNOWN_S: Final = 3600
REMINDER_S: Final = 60.0

_reminders = LogThrottle(every_s=REMINDER_S)


class StaticRatesRefusedError(Exception):
    """Refuse to price by a table outside of development; settings refuse it as well."""


@doorbell(queue="maintenance")
def refresh_rates() -> None:
    """Ask the due sources and agree on new rates."""
    ctx = context()
    _REFRESH[ctx.settings.rates_source](ctx)
    # Network fees are converted to the coins that are sent, so that the first ones waited for these rates.
    for network in rates.unpriced_networks(ctx.catalogue, ctx.available):
        ring("refresh_network_fees", network)


def static_rates() -> dict[str, Decimal]:
    """Return the table of development prices, in US dollars per unit."""
    text = resources.files("core.rates").joinpath(STATIC_TABLE).read_bytes()
    return {currency: Decimal(usd) for currency, usd in msgspec.json.decode(text, type=dict[str, str]).items()}


def refresh_from_table(ctx: Context) -> None:
    """Write the table's rates with the present time. Raises StaticRatesRefusedError."""
    if ctx.settings.environment != "development":
        raise StaticRatesRefusedError("static rates are for development only")
    if _reminders.allows("static"):
        log.warning("rates.static", what="rates come from a static table: for development only, never for money")
    with transaction():
        rates.keep_clock()
        now = app_now()
        rates.store_rates(
            {
                currency: Rate(usd=usd, as_of=now, agreed_at=now, sources=("static",))
                for currency, usd in static_rates().items()
            }
        )


def refresh_from_sources(ctx: Context) -> None:
    """Ask the due sources, outside of any transaction, then record their answers and the agreed rates in one."""
    urls = ctx.settings.rates_urls
    due = rate_sources.lease_due({name: load_sources()[name].every_s for name in urls}, lease_s=LEASE_S)
    if not due:
        return
    known, now = rate_sources.all_sources(), app_now()
    answers = ask_all({name: _order(urls[name], known[name], now) for name in due})
    with transaction():
        rates.keep_clock()
        before = rate_sources.lock_all()
        for name, answer in answers.items():
            _record(load_sources()[name], name, answer, before[name])
        consensus = agree(
            ctx.catalogue,
            list(_readings(rate_sources.all_sources(), urls, app_now())),
            previous=rates.last_rates(),
            coin_sources_min=ctx.settings.rates_sources_min,
            now=app_now(),
        )
        rates.store_rates(consensus.rates)
        rates.note_disagreement(consensus.held_back.keys())
    _tell_health(answers, before)
    _tell_disagreement(consensus)


def _order(url: str, row: RateSourceRow, now: datetime) -> Order:
    is_rested = is_recent(row.unknown_at, now, UNKNOWN_S)
    return Order(url=url, left_out=row.unknown, retried=() if is_rested else row.unknown)


def _record(source: Source, name: str, answer: Answer, row: RateSourceRow) -> None:
    if isinstance(answer.quotes, Problem):
        rate_sources.record_failure(name, answer.quotes.text, every_s=source.every_s)
        return
    rate_sources.record_answer(name, answer.quotes, every_s=source.every_s)
    is_rested = is_recent(row.unknown_at, app_now(), UNKNOWN_S)
    unknown = {*answer.unknown, *(row.unknown if is_rested else ())}
    if unknown != set(row.unknown) or (unknown and not is_rested):
        rate_sources.remember_unknown(name, unknown)


def _readings(known: Mapping[str, RateSourceRow], urls: Iterable[str], now: datetime) -> Iterable[Reading]:
    """Yield the readings that are at most their source's holds_s old; those of daily tables count as of now."""
    for name in urls:
        row, source = known[name], load_sources()[name]
        if row.answered_at is None or not is_recent(row.answered_at, now, source.holds_s):
            continue
        as_of = now if source.kind == "table" else row.answered_at
        yield Reading(source=name, quoted_in=source.quoted_in, as_of=as_of, quotes=row.quotes)


def _tell_health(answers: Mapping[str, Answer], before: Mapping[str, RateSourceRow]) -> None:
    for name, answer in answers.items():
        failures, quotes = before[name].failures, answer.quotes
        if isinstance(quotes, Problem):
            log.warning("rates.source_failed", source=name, problem=quotes.text, failures=failures + 1)
            continue
        if failures:
            log.info("rates.source_recovered", source=name, currencies=len(quotes), failures=failures)
        else:
            log.debug("rates.source_answered", source=name, currencies=len(quotes))
        lacking = [code for code in load_sources()[name].named_by(answer.unknown) if code not in quotes]
        if lacking:
            log.warning("rates.symbols_refused", source=name, currencies=lacking, symbols=sorted(answer.unknown))


def _tell_disagreement(consensus: Consensus) -> None:
    """Log outvoted sources and coins that keep their last rate, at most once a minute: such states last long."""
    for source, currencies in consensus.outvoted.items():
        if _reminders.allows(f"outvoted:{source}"):
            log.warning("rates.source_outvoted", source=source, currencies=currencies)
    if consensus.held_back and _reminders.allows("held"):
        log.warning("rates.held", currencies=consensus.held_back)


_REFRESH: Final[Mapping[str, Callable[[Context], None]]] = {
    "static": refresh_from_table,
    "live": refresh_from_sources,
}
