"""A node that says what a test wants: lies, rubbish, silence. Real HTTP on loopback."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Raw:
    """An HTTP answer as it is, with pauses before it and after each byte of it."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    location: str | None = None
    retry_after: str | None = None
    # Hang up instead of answering.
    drop: bool = False
    pause_s: float = 0.0
    byte_pause_s: float = 0.0


@dataclass(frozen=True)
class Refusal:
    """A JSON-RPC error."""

    code: int
    message: str


Answer = Callable[..., object] | object


class JsonRpcNode:
    """Answers each method with a value, or with what a function of the parameters returns. A context manager."""

    def __init__(self, answers: Mapping[str, Answer], *, key: str = "secret-key") -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        # The headers and the path of the last request.
        self.headers: dict[str, str] = {}
        self.path = ""
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are two writes: each answer would wait 40 ms for the client's kernel.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                node.headers, node.path = dict(self.headers), self.path
                self._write(node.answer_body(body))

            def _write(self, raw: Raw) -> None:
                time.sleep(raw.pause_s)
                if raw.drop:
                    raise ConnectionAbortedError
                self.send_response(raw.status)
                self.send_header("Content-Type", raw.content_type)
                self.send_header("Content-Length", str(len(raw.body)))
                if raw.location is not None:
                    self.send_header("Location", raw.location)
                if raw.retry_after is not None:
                    self.send_header("Retry-After", raw.retry_after)
                self.end_headers()
                if not raw.byte_pause_s:
                    self.wfile.write(raw.body)
                    return
                for byte in raw.body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(raw.byte_pause_s)

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that hangs up is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3/{key}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def read(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request as its method, its parameters and its id."""
        del path
        return body

    def answer(self, request: Mapping[str, Any]) -> Raw:
        answer = self.answers[request["method"]]
        if callable(answer):
            answer = answer(*request["params"])
        if isinstance(answer, Raw):
            return answer
        return Raw(json.dumps(self.envelope(request, answer)).encode())

    def answer_body(self, body: Any) -> Raw:
        """Answer one request, or a batch of them."""
        if isinstance(body, list):
            return self.answer_all(body)
        request = self.read(self.path, body)
        self.asked.append(request["method"])
        return self.answer(request)

    def answer_all(self, requests: Sequence[Mapping[str, Any]]) -> Raw:
        """Answer a batch, the last request first, as a node is free to do."""
        self.asked += [request["method"] for request in requests]
        return Raw(b"[" + b",".join(self.answer(request).body for request in reversed(requests)) + b"]")

    def envelope(self, request: Mapping[str, Any], answer: object) -> object:
        """Return the body of an answer."""
        envelope: dict[str, object] = {"jsonrpc": "2.0", "id": request["id"]}
        if isinstance(answer, Refusal):
            envelope["error"] = {"code": answer.code, "message": answer.message}
        else:
            envelope["result"] = answer
        return envelope
