"""Measures the life of an unpaid invoice against a frozen eager baseline: `python -m bench.life`, `--quick` for fewer.

Invoices are created and read through the API, and expire by the clock: the maintenance worker ends them by the page,
with events and webhooks. The eager way quotes copies of them three times and ends each one alone. In between, many open
invoices are put into the database, to measure their cost at rest and the cost of creation among them.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final
from uuid import UUID

import psycopg2

from bench.baselines import eager
from bench.measuring.harness import ROOT, Meter, Round, Site, Target
from bench.measuring.quiet import beside
from bench.measuring.report import Figure, show, show_cpu
from bench.measuring.targets import Product, server_programs
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.supervise.procfile import read_procfile
from models.db import base
from models.webhooks import outbox

Cpu = Mapping[str, float]

CLIENTS: Final = 8
POURS: Final = 3
PARTS: Final = ("create", "among", "look", "end", "eager")
BLOCK_S: Final = 1.0
ENDS_LIMIT_S: Final = 600.0
POLL_S: Final = 0.1
TICKING: Final = ("maintenance", "scheduler")
# After the clock has advanced by this much, some invoices are due; the others are not.
ADVANCE_S: Final = 7_200
FILL_LIMIT_MS: Final = 1_800_000

GOAL_LIFE_MS: Final = 4.0
GOAL_CORES: Final = 0.02
GOAL_CREATION: Final = 0.9
GOAL_EXPIRY_MS: Final = 0.8
GOAL_EXPIRIES: Final = 1_500

# They were made in the ten hours before the last one, as their identifiers say, by which an audit knows the new ones.
# Their quotes expire one after the other within a quarter of an hour, as in steady trade.
_OPEN: Final = """
    WITH new AS (INSERT INTO invoices (id, merchant_id, order_id, status, is_multi, price_currency, price_units,
            pay_currency, network, payer_units, generation, address, fee_ppm, fee_fixed_usd_cents, fee_fixed_units,
            created_at, updated_at, expires_at, rate_expires_at)
        SELECT (lpad(to_hex((extract(epoch FROM made) * 1000)::bigint), 12, '0') || '7' || left(md5(n::text), 3) || '8'
            || substr(md5(n::text), 4, 15))::uuid,
            %(merchant)s, 'open-' || n, 'check', false, 'USD', 12550, 'USDT', 'ethereum',
            125500000000000000000, 1, '0x' || lpad(to_hex(n), 40, '0'), 15000, 30, 300000000000000000, made,
            made, app_now() + CASE WHEN n <= %(soon)s THEN interval '1 hour' ELSE interval '23 hours' END,
            app_now() + n %% 900 * interval '1 second'
        FROM (SELECT n, app_now() - interval '1 hour' - n %% 36000 * interval '1 second' AS made
            FROM generate_series(1, %(count)s) AS n) AS moments
        RETURNING id, payer_units, fee_fixed_units, rate_expires_at)
    INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
        SELECT id, 1, payer_units, fee_fixed_units, app_now(), rate_expires_at FROM new
"""
_DUE: Final = (
    "SELECT EXISTS (SELECT 1 FROM invoices WHERE status IN ('select', 'check') AND COALESCE(network, '') = 'ethereum'"
    " AND expires_at <= app_now())"
)
_DUE_COUNT: Final = (
    "SELECT count(*) FROM invoices WHERE status IN ('select', 'check')"
    " AND expires_at <= app_now() + make_interval(secs => %s)"
)


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The number of invoices and the time of each part."""

    seconds: float
    settle_s: float
    rest_s: float
    eager: int
    open: int
    # The part of the open invoices that expires in the end.
    soon: int
    addresses: int


FULL: Final = Extent(
    seconds=3.0, settle_s=20.0, rest_s=30.0, eager=2_000, open=1_000_000, soon=50_000, addresses=110_000
)
QUICK: Final = Extent(seconds=1.0, settle_s=6.0, rest_s=8.0, eager=300, open=10_000, soon=5_000, addresses=50_000)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Milliseconds of processor time for an invoice by program, cores at rest, and rates by the second."""

    create: Cpu
    among: Cpu
    look: Cpu
    end: Cpu
    eager: Cpu
    cores_empty: Cpu
    cores_open: Cpu
    created_alone: float
    created_among: float
    ended: int
    ended_s: float

    @property
    def life_ms(self) -> float:
        return sum(map(total, (self.create, self.look, self.end)))

    @property
    def creation(self) -> float:
        """Return the ratio of creation among open invoices to creation among none, by processor time.

        The two rates are minutes apart.
        """
        return total(self.create) / total(self.among)

    @property
    def eager_ms(self) -> float:
        return sum(map(total, (self.create, self.look, self.eager)))


def total(cpu_ms: Cpu) -> float:
    """Return the sum of all programs without the benchmark's own client."""
    return sum(ms for name, ms in cpu_ms.items() if name != "client")


def open_invoices(merchant: UUID, count: int, *, soon: int) -> None:
    """Insert open invoices into the database; `soon` of them expire first."""
    with base.transaction(), base.long_statements(FILL_LIMIT_MS):
        base.execute(_OPEN, {"merchant": merchant, "count": count, "soon": soon})


def run_eagerly(url: str, count: int, postgres: Mapping[str, int]) -> Cpu:
    """Quote and end copies of open invoices in the eager way; return milliseconds for an invoice."""
    with contextlib.closing(eager.Eager(url, count)) as copies:
        steps = [(eager.RATES_RUN_OUT, copies.quote)] * eager.QUOTES_A_LIFE + [(eager.TIME_RUNS_OUT, copies.end)]
        metered = [_metered(copies, due, step, postgres) for due, step in steps]
    return {name: sum(each[name] for each in metered) for name in metered[0]}


def _metered(copies: eager.Eager, due: str, step: Callable[[], None], postgres: Mapping[str, int]) -> Cpu:
    copies.make_due(due)
    meter, own = Meter(postgres), time.process_time()
    step()
    return {"ticks": (time.process_time() - own) * 1_000 / copies.count, **meter.per_request(copies.count)}


def cores(programs: Mapping[str, int], seconds: float) -> Cpu:
    """Return the number of cores that programs use without requests."""
    meter, began = Meter(programs), time.monotonic()
    time.sleep(seconds)
    return meter.per_request(round(1_000 * (time.monotonic() - began)))


def end_by_clock(programs: Mapping[str, int]) -> tuple[Cpu, int, float]:
    """Advance the clock and wait until all due invoices have ended; return milliseconds for each, number, seconds."""
    count = base.value(_DUE_COUNT, (ADVANCE_S,))
    meter, began = Meter(programs), time.monotonic()
    base.execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (ADVANCE_S,))
    _move_scan()
    while base.is_true(_DUE):
        if time.monotonic() - began > ENDS_LIMIT_S:
            raise SystemExit("the invoices do not end")
        time.sleep(POLL_S)
    return meter.per_request(count), count, time.monotonic() - began


def _move_scan() -> None:
    base.execute("UPDATE chain_cursors SET block_time = app_now() + interval '1 second', moved_at = app_now()")


def _move_scan_apart() -> None:
    _move_scan()
    # The connection belongs to the thread, which ends.
    base.close()


def measure(site: Site, extent: Extent) -> Costs:
    """Run all parts, in an order in which none disturbs the next."""
    product = Product(site, addresses=extent.addresses)
    merchant = base.value("SELECT id FROM merchants")
    with base.transaction():
        outbox.register_endpoint(merchant, "https://shop.example/hook", box=SecretBox(DEVELOPMENT_SECRET_KEYS))
    target, ticking = product.start(), _start_ticking(site, product)
    target.pour(clients=CLIENTS, seconds=extent.seconds)
    base.execute("DELETE FROM quotes; DELETE FROM invoices")
    site.repeat(BLOCK_S, _move_scan_apart)
    cores_empty = _at_rest(product.database_url, ticking, extent)
    alone = _create(target, extent)
    look = _look(target, extent)
    eagerly = run_eagerly(product.database_url, extent.eager, {"postgres": site.postgres.pid or 0})
    open_invoices(merchant, extent.open, soon=extent.soon)
    cores_open = _at_rest(product.database_url, ticking, extent)
    among = _create(target, extent)
    end, ended, ended_s = end_by_clock(ticking)
    return Costs(
        create=_median_cpu(alone), among=_median_cpu(among), look=look.cpu_ms, end=end, eager=eagerly,
        cores_empty=cores_empty, cores_open=cores_open,
        created_alone=_rate(alone), created_among=_rate(among), ended=ended, ended_s=ended_s,
    )  # fmt: skip


def _start_ticking(site: Site, product: Product) -> dict[str, int]:
    commands = read_procfile(ROOT / "Procfile")
    started = [site.start(name, commands[name], product.environment()).pid for name in TICKING]
    return {**dict(zip(("ticks", "scheduler"), started, strict=True)), **server_programs(site)}


def _at_rest(url: str, ticking: Mapping[str, int], extent: Extent) -> Cpu:
    _tidy(url)
    time.sleep(extent.settle_s)
    return cores(ticking, extent.rest_s)


def _tidy(url: str) -> None:
    """Vacuum now, as PostgreSQL would do later for new rows, so that it does not count as their cost at rest."""
    session = psycopg2.connect(url)
    session.autocommit = True
    with contextlib.closing(session), session.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")


def _create(target: Target, extent: Extent) -> list[Round]:
    return [target.pour(clients=CLIENTS, seconds=extent.seconds) for _ in range(POURS)]


def _look(target: Target, extent: Extent) -> Round:
    ids = base.column("SELECT id FROM invoices ORDER BY id LIMIT 500")
    public = [("GET", f"/v1/pay/{invoice_id}", "") for invoice_id in ids]
    return target.pour(clients=CLIENTS, seconds=extent.seconds, public=public)


def _rate(rounds: list[Round]) -> float:
    return median(each.rate for each in rounds)


def _median_cpu(rounds: list[Round]) -> Cpu:
    return {name: median(each.cpu_ms[name] for each in rounds) for name in rounds[0].cpu_ms}


def figures(costs: Costs, count: int) -> Iterator[Figure]:
    """Yield the results with their goals."""
    empty, at_rest = 1_000 * total(costs.cores_empty), 1_000 * total(costs.cores_open)
    yield Figure(name="a life, ms of processor", ratio=costs.life_ms, goal=GOAL_LIFE_MS, better="at most",
                 detail=f"the eager way {costs.eager_ms:.2f} ms")  # fmt: skip
    yield Figure(name=f"{count:,} open at rest, ms of processor a second", ratio=at_rest - empty,
                 goal=1_000 * GOAL_CORES, better="at most",
                 detail=f"{at_rest:.1f}, less {empty:.1f} of none")  # fmt: skip
    yield Figure(name=f"creation among {count:,} open ÷ among none", ratio=costs.creation,
                 goal=GOAL_CREATION, better="at least",
                 detail=f"by processor; {costs.created_among:.0f}/s against {costs.created_alone:.0f}/s")  # fmt: skip
    yield Figure(name="an expiry, ms of processor", ratio=total(costs.end), goal=GOAL_EXPIRY_MS, better="at most",
                 detail=f"the eager way {total(costs.eager):.2f} ms, quotes included")  # fmt: skip
    yield Figure(name="expiries a second", ratio=costs.ended / costs.ended_s, goal=GOAL_EXPIRIES, better="at least",
                 detail=f"{costs.ended:,} in {costs.ended_s:.1f} s")  # fmt: skip


def main() -> None:
    """Measure with temporary servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK.open:,} open invoices, and less exact")
    extent = QUICK if parser.parse_args().quick else FULL
    with beside(), Site() as site:
        costs = measure(site, extent)
        show("An unpaid invoice", list(figures(costs, extent.open)))
        show_cpu({name: getattr(costs, name) for name in PARTS})


if __name__ == "__main__":
    main()
