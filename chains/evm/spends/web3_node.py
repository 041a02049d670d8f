"""Connects web3 to our own nodes, and checks the shape of every answer. Nodes keep budget, failover and secrets.

Imported only by chains.evm.spends.library, when a process first spends.
web3 reads hex as Python reads numbers ("1", "0x_1", "-0x1") and accepts values that are not text; so each answer is
checked against its method's shape before web3 sees it, and unused fields are left out.
"""

from collections.abc import Mapping
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Final, NotRequired, TypedDict

import msgspec
import rlp
from eth_account import Account
from web3 import Web3
from web3.eth import Eth
from web3.providers.base import BaseProvider
from web3.types import RPCEndpoint, RPCResponse

from chains.net.json_rpc import Rpc

__all__ = ["Account", "codec", "eth", "rlp"]

# Not $, which would allow a line break at the end.
Quantity = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{1,64}\Z")]
Hash = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z")]
Address = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]
Data = Annotated[str, msgspec.Meta(pattern=r"^0x([0-9a-fA-F]{2})*\Z")]


def _object(required: Mapping[str, Any], **optional: Any) -> Any:
    """Return the shape of an object with these fields, and others that a node may leave out or set to null."""
    others = {name: NotRequired[kind | None] for name, kind in optional.items()}
    return TypedDict("NodeAnswer", {**required, **others})  # type: ignore[operator]


_LOG: Final = _object({"address": Address, "topics": list[Hash], "data": Data}, removed=bool)
_PERMITTED: Final = _object({"address": Address, "storageKeys": list[Hash]})
# The allowed methods; others are never asked.
SHAPES: Final[Mapping[str, Any]] = MappingProxyType({
    "eth_blockNumber": Quantity, "eth_call": Data, "eth_chainId": Quantity, "eth_estimateGas": Quantity,
    "eth_feeHistory": _object({"baseFeePerGas": list[Quantity]}, reward=list[list[Quantity]]),
    "eth_gasPrice": Quantity, "eth_getBalance": Quantity, "eth_getTransactionCount": Quantity,
    "eth_getTransactionByHash": _object(
        # All fields that a signature covers.
        dict.fromkeys(("nonce", "value", "gas", "v", "r", "s"), Quantity) | {"from": Address, "input": Data},
        to=Address, type=Quantity, chainId=Quantity, yParity=Quantity, gasPrice=Quantity, maxFeePerGas=Quantity,
        maxPriorityFeePerGas=Quantity, accessList=GenericAlias(list, _PERMITTED),
    ),
    "eth_getTransactionReceipt": _object(
        {"transactionHash": Hash, "blockHash": Hash, "logs": GenericAlias(list, _LOG)}
        | dict.fromkeys(("status", "gasUsed", "effectiveGasPrice"), Quantity),
        blockNumber=Quantity, l1Fee=Quantity,
    ),
    "eth_sendRawTransaction": Hash,
})  # fmt: skip


class NodeProvider(BaseProvider):
    """Passes web3's questions to one node, or to the providers of a network; errors are theirs."""

    def __init__(self, node: Rpc) -> None:
        super().__init__()
        self._node = node

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Ask the node web3's question. Raises NoResultError for null, and the node's errors."""
        return {"jsonrpc": "2.0", "id": 0, "result": self._node.call(method, params, SHAPES[method])}


def eth(node: Rpc) -> Eth:
    """Return web3's methods for a node. Without its middleware, which sends further questions."""
    return Web3(NodeProvider(node), middleware=[], modules={"eth": Eth}).eth


codec: Final = Web3(BaseProvider(), middleware=[]).codec
