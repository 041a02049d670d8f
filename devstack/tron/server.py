"""Serves a simulated chain over HTTP, as a node does. Started by node as a process, or by tests in their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

import typer

from devstack.simulated.served import ChainHandler, ChainServer, mine_every
from devstack.tron.answers import answer
from devstack.tron.simulator import SOLIDITY_LAG, Simulator

BODY_BYTES_MAX: Final = 4 * 1024 * 1024


class Handler(ChainHandler):
    """The requests of one connection."""

    server: Server

    def do_POST(self) -> None:  # noqa: N802  named so where it is inherited
        """Answer a request with its parameters in the body."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.send_error(413)
            return
        try:
            asked = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            self.reply({"Error": "class com.alibaba.fastjson.JSONException : syntax error"})
            return
        self._answer(asked if isinstance(asked, dict) else {})

    def do_GET(self) -> None:  # noqa: N802  named so where it is inherited
        """Answer a request with its parameters in the address."""
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def _answer(self, asked: dict[str, Any]) -> None:
        reply = answer(self.server.simulator, urlsplit(self.path).path.strip("/"), asked)
        if reply is None:
            self.send_error(404)
        else:
            self.reply(reply)


class Server(ChainServer[Simulator]):
    """The HTTP server of one chain."""

    handler = Handler


def main(
    port: int,
    identity: str,
    path: Path,
    *,
    block_time_s: Annotated[float, typer.Option()] = 0.0,
    solidity_lag: Annotated[int, typer.Option()] = SOLIDITY_LAG,
) -> None:
    """Serve a chain that is kept in a file; without a block time it makes blocks on request."""
    simulator = Simulator(identity, solidity_lag=solidity_lag, path=path)
    if simulator.head.height == 0:
        # The first block has no time, from which transactions could expire.
        simulator.mine()
    if block_time_s:
        mine_every(simulator, block_time_s)
    with Server(simulator, port) as server:
        server.serve_forever()


if __name__ == "__main__":
    typer.run(main)
