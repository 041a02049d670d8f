"""A buyer with a funded key: pays invoices with real transactions, by eth-account and plain JSON-RPC alone."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import urllib3
from eth_account import Account
from eth_utils import to_checksum_address

TRANSFER_SELECTOR = "a9059cbb"
GAS = 120_000
MAX_FEE_WEI = 50 * 10**9
# Of a development stack's chains.
BLOCK_TIME_S = 1


class Buyer:
    def __init__(self, rpc_url: str, key: str, tokens: dict[str, str]) -> None:
        self.rpc_url, self.tokens = rpc_url, tokens
        self.account = Account.from_key(key)
        self.pool = urllib3.PoolManager(retries=False)
        self.chain_id = int(self.rpc("eth_chainId"), 16)
        self.nonce = int(self.rpc("eth_getTransactionCount", self.account.address, "pending"), 16)

    def rpc(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        response = self.pool.request(
            "POST", self.rpc_url, body=body, headers={"Content-Type": "application/json"}, timeout=10
        )
        answer = json.loads(response.data)
        assert "error" not in answer, answer
        return answer["result"]

    def reorg(self, depth: int) -> None:
        """Replace the newest blocks by as many empty ones.

        The chain's clock stops meanwhile: anvil loses blocks for ever that it makes while it reorganises.
        """
        self.rpc("evm_setIntervalMining", 0)
        try:
            # Waits for a block that is being made.
            self.rpc("evm_mine")
            self.rpc("anvil_reorg", depth + 1, [])
        finally:
            self.rpc("evm_setIntervalMining", BLOCK_TIME_S)

    def pay(self, invoice: dict[str, Any], *, decimals: dict[str, int], share: Decimal = Decimal(1)) -> str:
        """Send what the invoice asks (or a share of it) to its address; returns the transaction's id."""
        units = int(Decimal(invoice["payer_amount"]) * share * 10 ** decimals[invoice["payer_currency"]])
        return self.send(invoice["address"], units, self.tokens.get(invoice["payer_currency"]))

    def send(self, to: str, units: int, contract: str | None) -> str:
        data = b""
        if contract is not None:
            data = bytes.fromhex(TRANSFER_SELECTOR + to[2:].lower().zfill(64) + f"{units:064x}")
        transaction = {
            "chainId": self.chain_id,
            "nonce": self.nonce,
            "type": 2,
            "gas": GAS,
            "maxFeePerGas": MAX_FEE_WEI,
            "maxPriorityFeePerGas": 10**9,
            "to": to_checksum_address(contract or to),
            "value": 0 if contract else units,
            "data": data,
        }
        signed = self.account.sign_transaction(transaction)
        txid: str = self.rpc("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x"))
        self.nonce += 1
        return txid
