"""Measures a call through the queue against dramatiq's own: `python -m bench.rpc [--quick]`. An echo, without HTTP."""

from __future__ import annotations

import argparse
from statistics import median
from typing import Final

from bench.measuring.harness import Site, run_json
from bench.measuring.quiet import beside, until_it_holds
from bench.measuring.report import Figure, show

TARGETS: Final = {"product": "bench.measuring.echo", "stock": "bench.baselines.stock_echo"}
CLIENTS: Final = 16
IDLE_PAUSE_S: Final = 2.0
# Ratios to stock, from the experiments in which this queue was designed.
GOALS: Final = {"one": 0.2, "many": 2.0, "idle": 0.05}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute, and less exact")
    seconds, idle_s = (1.0, 6.0) if parser.parse_args().quick else (3.0, 20.0)
    with beside(), Site() as site:
        env = {"BENCH_REDIS_URL": site.valkey.url}
        for name, module in TARGETS.items():
            site.start(name, f"dramatiq {module} -p 1 -t 4", env)

        def pour(module: str, clients: int, length_s: float, pause_s: float = 0) -> tuple[float, float]:
            argv = ["-m", "bench.measuring.rpc_client", module, str(clients), str(length_s), str(pause_s)]
            measured = run_json(argv, env)
            return median(measured["latencies_ns"]) / 1e6, len(measured["latencies_ns"]) / measured["elapsed_s"]

        one: dict[str, list[float]] = {name: [] for name in TARGETS}
        many: dict[str, list[float]] = {name: [] for name in TARGETS}

        def pair(_number: int) -> list[float]:
            for name, module in TARGETS.items():
                one[name].append(pour(module, 1, seconds)[0])
                many[name].append(pour(module, CLIENTS, seconds)[1])
            return [kind["product"][-1] / kind["stock"][-1] for kind in (one, many)]

        until_it_holds(pair)
        idle = {name: pour(module, 1, idle_s, IDLE_PAUSE_S)[0] for name, module in TARGETS.items()}
    show("A call through the queue", [
        Figure(name="one client: p50 ÷ stock", ratio=median(one["product"]) / median(one["stock"]), goal=GOALS["one"],
               better="at most", detail=f"{median(one['product']):.2f} ms against {median(one['stock']):.2f} ms"),
        Figure(name=f"{CLIENTS} clients: calls/s ÷ stock", ratio=median(many["product"]) / median(many["stock"]),
               goal=GOALS["many"], better="at least",
               detail=f"{median(many['product']):.0f}/s against {median(many['stock']):.0f}/s"),
        Figure(name="idle: p50 ÷ stock", ratio=idle["product"] / idle["stock"], goal=GOALS["idle"], better="at most",
               detail=f"{idle['product']:.2f} ms against {idle['stock']:.0f} ms"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
