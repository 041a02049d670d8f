"""A lean HTTP client in a process of its own: a closed loop over kept connections, in one thread.

`harness` starts it, writes a plan as JSON to its stdin and reads the result as JSON from its stdout. Requests are built
and signed before the clock starts, so that the client's share of the processor is small.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Final

PATH: Final = "/v1/payment"
ANSWER_START: Final = b'{"state":0,"result":{"uuid":"'
ANSWER_LIMIT_S: Final = 15.0
# Twice the highest rate of any server here; an unused request costs only time before the start.
REQUESTS_PER_S: Final = 3_000


@dataclass(kw_only=True)
class Client:
    """One connection with one running request."""

    sock: socket.socket
    buffer: bytes = b""
    sent_ns: int = 0
    missing: int = 0


@dataclass(kw_only=True)
class Load:
    """The requests to send, and their answers' times."""

    requests: list[bytes]
    answer_start: bytes = ANSWER_START
    sent: int = 0
    latencies_ns: list[int] = field(default_factory=list)

    def send(self, client: Client) -> None:
        request = self.requests[self.sent]
        self.sent += 1
        client.buffer = b""
        client.sent_ns = time.perf_counter_ns()
        client.sock.send(request)

    def receive(self, client: Client) -> bool:
        """Receive bytes; return True once the answer is whole."""
        client.buffer += client.sock.recv(65_536)
        if not is_whole(client.buffer, self.answer_start):
            return False
        self.latencies_ns.append(time.perf_counter_ns() - client.sent_ns)
        return True

    def has_more(self) -> bool:
        return self.sent < len(self.requests)


def is_whole(answer: bytes, start: bytes) -> bool:
    """Return True if an answer is whole. It must be a 200 with the expected start; any other ends the benchmark."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    if not blank:
        if not answer:
            raise SystemExit("the server closed the connection")
        return False
    if not head.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"refused: {answer[:500]!r}")
    at = head.lower().index(b"content-length:") + len(b"content-length:")
    if len(body) < int(head[at:].split(b"\r\n", 1)[0]):
        return False
    if not body.startswith(start):
        raise SystemExit(f"not what was asked for: {body[:500]!r}")
    return True


def build(plan: dict[str, Any], number: int) -> bytes:
    """Return one request: the plan's next one, or a signed one for an order of its own."""
    if "public" in plan:
        return build_public(*plan["public"][number % len(plan["public"])])
    name = f"{plan['label']}-{os.getpid()}-{number}"
    order = {"amount": "125.50", "currency": "USD", "to_currency": "USDT", "network": "ethereum", "order_id": name}
    body = json.dumps(order, separators=(",", ":")).encode()
    timestamp = str(int(time.time()))
    signed = f"{timestamp}\nPOST\n{PATH}\n".encode() + body
    signature = hmac.new(plan["secret"].encode(), signed, hashlib.sha256).hexdigest()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"X-Public-Id: {plan['public_id']}\r\nX-Timestamp: {timestamp}\r\nX-Signature: {signature}\r\n"
        f"Idempotency-Key: {name}\r\n\r\n"
    )
    return head.encode() + body


def build_public(method: str, path: str, text: str) -> bytes:
    """Return a request without a signature."""
    body = text.encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_LIMIT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def pour(plan: dict[str, Any], load: Load) -> float:
    """Keep every client busy for the plan's seconds; return the time until the last answer."""
    clients = {sock.fileno(): Client(sock=sock) for sock in (connect(plan["port"]) for _ in range(plan["clients"]))}
    poller = select.epoll()
    started = time.perf_counter()
    deadline = started + plan["seconds"]
    for descriptor, client in clients.items():
        poller.register(descriptor, select.EPOLLIN)
        load.send(client)
    busy = len(clients)
    while busy:
        events = poller.poll(ANSWER_LIMIT_S)
        if not events:
            raise SystemExit(f"no answer within {ANSWER_LIMIT_S} s")
        for descriptor, _ in events:
            client = clients[descriptor]
            if not load.receive(client):
                continue
            if load.has_more() and time.perf_counter() < deadline:
                load.send(client)
            else:
                busy -= 1
    return time.perf_counter() - started


def drip(plan: dict[str, Any], load: Load) -> float:
    """Send a request every few seconds, as the plan says, over one connection."""
    client = Client(sock=connect(plan["port"]))
    started = time.perf_counter()
    for number in range(len(load.requests)):
        due = started + plan["offset_s"] + number * plan["every_s"]
        time.sleep(max(0.0, due - time.perf_counter()))
        load.send(client)
        while not load.receive(client):
            pass
    return time.perf_counter() - started


def main() -> None:
    plan = json.load(sys.stdin)
    is_idle = "every_s" in plan
    count = plan["count"] if is_idle else int(REQUESTS_PER_S * plan["seconds"]) + plan["clients"]
    requests = [build(plan, number) for number in range(count)]
    load = Load(requests=requests, answer_start=plan.get("answer_start", ANSWER_START.decode()).encode())
    cpu_at = time.process_time()
    elapsed_s = (drip if is_idle else pour)(plan, load)
    cpu_ms = 1000 * (time.process_time() - cpu_at)
    json.dump({"elapsed_s": elapsed_s, "latencies_ns": load.latencies_ns, "cpu_ms": cpu_ms}, sys.stdout)


if __name__ == "__main__":
    main()
