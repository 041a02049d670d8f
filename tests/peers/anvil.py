"""A running anvil as a chain test wants it: a rich buyer, and blocks only when asked for."""

from typing import Any

from chains.net.json_rpc import JsonRpc
from core.addresses.evm import keccak256

# The first account of the mnemonic "test test … junk", known to everybody.
BUYER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
BUYER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
RICHES_WEI = 10_000 * 10**18


def calldata(signature: str, *words: str | int) -> str:
    """Encode a call whose arguments are all one word: addresses in hex, and numbers."""
    encoded = (word.removeprefix("0x").rjust(64, "0") if isinstance(word, str) else f"{word:064x}" for word in words)
    return "0x" + keccak256(signature.encode()).hex()[:8] + "".join(encoded)


class HandMined:
    """A chain that mines on request, and signs for any sender that a test names."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.rpc = JsonRpc(url, timeout_s=10)
        self.ask("evm_setAutomine", False)
        self.ask("anvil_autoImpersonateAccount", True)
        self.ask("anvil_setBalance", BUYER, hex(RICHES_WEI))

    def ask(self, method: str, *params: object) -> Any:
        return self.rpc.call_or_none(method, params, object)

    def mine(self) -> int:
        """Put what waits into a block; returns its height."""
        self.ask("evm_mine")
        return self.height()

    def height(self) -> int:
        return int(self.ask("eth_blockNumber"), 16)

    def send(self, to: str | None, *, value: int = 0, data: str = "0x", sender: str = BUYER) -> str:
        """Put a transaction into the pool, one that will fail included; returns its id."""
        call = {"from": sender, "value": hex(value), "data": data, "gas": hex(500_000)}
        return str(self.ask("eth_sendTransaction", call if to is None else call | {"to": to}))

    def receipt(self, txid: str) -> Any:
        return self.ask("eth_getTransactionReceipt", txid)
