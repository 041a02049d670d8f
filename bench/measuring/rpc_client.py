"""Makes one round of calls through a queue: `-m bench.measuring.rpc_client MODULE CLIENTS S PAUSE`.

MODULE has call(payload). S is the duration and PAUSE the time between calls, in seconds. Prints latencies in ns and the
time taken.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time

PAYLOAD = b'{"amount":"125.50","currency":"USD","order_id":"order-1042"}'


def main() -> None:
    module, clients, seconds, every_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    call = importlib.import_module(module).call
    latencies: list[int] = []
    assert call(PAYLOAD) == PAYLOAD

    def run() -> None:
        while time.monotonic() < deadline:
            started = time.perf_counter_ns()
            call(PAYLOAD)
            latencies.append(time.perf_counter_ns() - started)
            time.sleep(every_s)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    started_at = time.monotonic()
    deadline = started_at + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump({"latencies_ns": latencies, "elapsed_s": time.monotonic() - started_at}, sys.stdout)


if __name__ == "__main__":
    main()
