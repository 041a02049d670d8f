"""Serves a simulated chain over HTTP, as a node does. Started by node as a process, or by tests in their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from devstack.simulated.served import ChainHandler, ChainServer, mine_every
from devstack.solana.answers import answer
from devstack.solana.faults import Fault
from devstack.solana.simulator import FINALITY_LAG, Simulator

BODY_BYTES_MAX: Final = 50 * 1024
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600


class Handler(ChainHandler):
    """The requests of one connection."""

    server: Server

    def do_POST(self) -> None:  # noqa: N802  named so where it is inherited
        """Answer a request, or a list of them."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.send_error(413)
            return
        try:
            asked = json.loads(self.rfile.read(length))
        except ValueError:
            self.reply(_error(None, PARSE_ERROR, "Parse error"))
            return
        is_list = isinstance(asked, list)
        replies = [self._reply(one) for one in (asked if is_list else [asked])]
        self.reply(replies if is_list else replies[0])

    def _reply(self, asked: Any) -> dict[str, Any]:
        if not isinstance(asked, dict) or not isinstance(asked.get("params", []), list):
            return _error(None, INVALID_REQUEST, "Invalid request")
        number = asked.get("id")
        try:
            result = answer(self.server.simulator, str(asked.get("method")), asked.get("params", []))
        except Fault as fault:
            return _error(number, fault.code, fault.message, fault.data)
        return {"jsonrpc": "2.0", "result": result, "id": number}


class Server(ChainServer[Simulator]):
    """The HTTP server of one chain."""

    handler = Handler


def _error(number: object, code: int, message: str, data: object = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "error": error | ({} if data is None else {"data": data}), "id": number}


def main(
    port: int,
    identity: str,
    path: Path,
    *,
    block_time_s: Annotated[float, typer.Option()] = 0.0,
    finality_lag: Annotated[int, typer.Option()] = FINALITY_LAG,
    skip_every: Annotated[int, typer.Option()] = 0,
) -> None:
    """Serve a chain that is kept in a file; without a block time it makes blocks on request."""
    simulator = Simulator(identity, finality_lag=finality_lag, skip_every=skip_every, path=path)
    if block_time_s:
        mine_every(simulator, block_time_s)
    with Server(simulator, port) as server:
        server.serve_forever()


if __name__ == "__main__":
    typer.run(main)
