"""Measures POST /v1/payment against its frozen baselines, in one interleaved run: `python -m bench.api [--quick]`.

Prints each ratio with its goal and whether it is met, and the processor time of a request by process. Absolute figures
drift with the machine; the ratios of one run hold.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.measuring.harness import Round, Site, Target, finish, run_json, start_load
from bench.measuring.pool import claim_ratios
from bench.measuring.quiet import beside, until_it_holds
from bench.measuring.report import Figure, median_cpu, show, show_cpu
from bench.measuring.targets import Baselines, Product

CLIENTS: Final = 16
IDLE_EVERY_S: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The duration of each part."""

    rounds_min: int
    seconds: float
    idle_requests: int
    addresses: int


FULL: Final = Extent(rounds_min=5, seconds=3.0, idle_requests=12, addresses=220_000)
QUICK: Final = Extent(rounds_min=3, seconds=1.0, idle_requests=3, addresses=110_000)


def run_rounds(targets: list[Target], baselines: Baselines, extent: Extent) -> dict[str, dict[str, list[Any]]]:
    """Run the targets in turns: under load, with one client, and the statement alone."""
    measured: dict[str, dict[str, list[Any]]] = {t.name: {"loaded": [], "single": []} for t in targets}
    measured["raw"] = {"rate": []}
    for target in targets:
        target.pour(clients=CLIENTS, seconds=extent.seconds / 2)

    def turn(number: int) -> list[float]:
        # Every other round backwards, so that no target always runs after the same other one.
        for target in targets if number % 2 == 0 else reversed(targets):
            measured[target.name]["loaded"].append(target.pour(clients=CLIENTS, seconds=extent.seconds))
            measured[target.name]["single"].append(target.pour(clients=1, seconds=extent.seconds / 2))
        raw = run_json(["-m", "bench.baselines.raw", str(extent.seconds)], baselines.environment("raw", 0))
        measured["raw"]["rate"].append(raw["count"] / raw["elapsed_s"])
        last = {name: {kind: rounds[-1] for kind, rounds in kinds.items()} for name, kinds in measured.items()}
        rates = [last["direct"]["loaded"].rate, last["stock"]["loaded"].rate, last["raw"]["rate"]]
        single = last["product"]["single"].p50_ms / last["direct"]["single"].p50_ms
        return [*(last["product"]["loaded"].rate / rate for rate in rates), single]

    until_it_holds(turn, at_least=extent.rounds_min)
    return measured


def run_idle(targets: list[Target], extent: Extent) -> dict[str, float]:
    """Send each target a request every two seconds, in turns, and return the median answer in milliseconds."""
    plans = [
        t.plan(count=extent.idle_requests, every_s=IDLE_EVERY_S, offset_s=number * IDLE_EVERY_S / len(targets))
        for number, t in enumerate(targets)
    ]
    clients = [start_load(plan) for plan in plans]
    answers = [finish(client) for client in clients]
    return {t.name: median(answer["latencies_ns"][1:]) / 1e6 for t, answer in zip(targets, answers, strict=True)}


def rate(rounds: list[Round]) -> float:
    return median(r.rate for r in rounds)


def ratios(measured: dict[str, dict[str, list[Any]]], idle_ms: dict[str, float]) -> list[Figure]:
    """Return the figures; each ratio is the median of its rounds' ratios."""
    ours = measured["product"]

    def by_round(other: list[float]) -> float:
        rates: list[float] = [mine.rate / theirs for mine, theirs in zip(ours["loaded"], other, strict=True)]
        return median(rates)

    direct, stock, raw = measured["direct"], measured["stock"], measured["raw"]["rate"]
    single = median(mine.p50_ms / theirs.p50_ms for mine, theirs in zip(ours["single"], direct["single"], strict=True))
    mine = f"{rate(ours['loaded']):.0f}/s"
    idle = ", ".join(f"{name} {value:.2f} ms" for name, value in idle_ms.items())
    return [
        Figure(name=f"{CLIENTS} clients: requests/s ÷ direct", ratio=by_round([r.rate for r in direct["loaded"]]),
               goal=1.1, better="at least", detail=f"{mine} against {rate(direct['loaded']):.0f}/s"),
        Figure(name=f"{CLIENTS} clients: requests/s ÷ raw statement", ratio=by_round(raw), goal=0.5,
               better="at least", detail=f"{mine} against {median(raw):.0f}/s"),
        Figure(name=f"{CLIENTS} clients: requests/s ÷ stock", ratio=by_round([r.rate for r in stock["loaded"]]),
               goal=8.0, better="at least", detail=f"{mine} against {rate(stock['loaded']):.0f}/s"),
        Figure(name="one client: p50 ÷ direct", ratio=single, goal=1.3, better="at most",
               detail=f"{median(r.p50_ms for r in ours['single']):.2f} ms"),
        Figure(name="idle: p50 ÷ direct", ratio=idle_ms["product"] / idle_ms["direct"], goal=1.2, better="at most",
               detail=idle),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute, and less exact")
    extent = QUICK if parser.parse_args().quick else FULL
    with beside(), Site() as site:
        product = Product(site, addresses=extent.addresses)
        baselines = Baselines(site, addresses=extent.addresses)
        targets = [product.start(), baselines.start_direct(), baselines.start_stock()]
        measured = run_rounds(targets, baselines, extent)
        idle_ms = run_idle(targets, extent)
        show("POST /v1/payment", ratios(measured, idle_ms))
        show("Address pool", claim_ratios(site, quick=extent is QUICK))
        show_cpu(median_cpu({t.name: measured[t.name]["loaded"] for t in targets}))


if __name__ == "__main__":
    main()
