"""A node that is asked at paths and says what a test wants. Real HTTP on loopback."""

from collections.abc import Mapping
from typing import Any

from tests.peers.json_rpc_node import JsonRpcNode

KEY = "secret-key"


class RestPeer(JsonRpcNode):
    """Answers each path with a value, or with what a function of the question returns. A context manager."""

    def read(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the path below the node's own as the method."""
        return {"method": path.partition(f"/{KEY}/")[2].partition("?")[0], "params": [body]}

    def envelope(self, request: Mapping[str, Any], answer: object) -> object:
        """Return the answer alone."""
        del request
        return answer
