"""Serves a simulated chain over HTTP, as toncenter does. Started by tests in their own process.

Questions are JSON-RPC at any path. An answer says `ok` or not; an error is a text, with HTTP's own number.
"""

from __future__ import annotations

import json
from typing import Final

from devstack.simulated.served import ChainHandler, ChainServer
from devstack.ton.answers import Fault, answer
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
