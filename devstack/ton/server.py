"""Serves a simulated chain over HTTP, as toncenter does. Started by node as a process, or by tests in their own.

Questions are JSON-RPC at any path. An answer says `ok` or not; an error is a text, with HTTP's own number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from devstack.simulated.served import ChainHandler, ChainServer, mine_every
from devstack.ton.answers import Fault, answer
from devstack.ton.engine import Engine
from devstack.ton.simulator import Simulator

BODY_BYTES_MAX: Final = 1024 * 1024


class Handler(ChainHandler):
    """The requests of one connection."""

    server: Server

    def do_POST(self) -> None:  # noqa: N802  named so where it is inherited
        """Answer a question."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.send_error(413)
            return
        number: object = None
        try:
            asked = json.loads(self.rfile.read(length))
            number = asked.get("id")
            result = answer(self.server.simulator, str(asked["method"]), asked.get("params") or {})
        except (ValueError, KeyError, AttributeError) as error:
            self.reply({"ok": False, "error": f"failed to parse request: {error}", "code": 422}, 422)
        except Fault as fault:
            refusal = {"ok": False, "error": fault.message, "code": fault.code}
            self.reply(refusal | {"jsonrpc": "2.0", "id": number}, fault.code)
        else:
            self.reply({"ok": True, "result": result, "jsonrpc": "2.0", "id": number})


class Server(ChainServer[Simulator]):
    """The HTTP server of one chain."""

    handler = Handler


def main(
    port: int,
    identity: str,
    path: Path,
    *,
    emulator: Annotated[Path, typer.Option()],
    block_time_s: Annotated[float, typer.Option()] = 0.0,
) -> None:
    """Serve a chain that is kept in a file; without a block time it makes blocks on request."""
    simulator = Simulator(Engine(emulator), identity, path=path)
    if simulator.head.id.seqno == 0:
        # The first block has no time, from which messages could expire.
        simulator.mine()
    if block_time_s:
        mine_every(simulator, block_time_s)
    with Server(simulator, port) as server:
        server.serve_forever()


if __name__ == "__main__":
    typer.run(main)
