"""The chain in Python does for the gateway what anvil does, reorgs apart."""

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from eth_account import Account

from chains.base import NATIVE, FateKind, Intent, Sending
from chains.evm_spend import EvmSpender
from chains.evm_tx import send_transfer
from chains.providers import Providers
from chains.registry import adapter
from chains.rpc import JsonRpc, RpcError
from cli.embedded.dev_chain import DevChain
from cli.embedded.eth_tester import EthTester
from cli.embedded.eth_tester_rpc import Node, make_server
from cli.embedded.evm_node import EvmNode
from cli.embedded.leash import Leash
from cli.embedded.ports import free_port
from cli.embedded.process import Child
from cli.embedded.pyevm_chain import PyEvmChain
from core.catalogue import load_catalogue
from core.settings import load_settings
from tests.embedded.waiting import wait_for

CATALOGUE = load_catalogue("development")
BUYER_KEY = "0x" + "0b" * 32
BUYER = Account.from_key(BUYER_KEY).address
SHOP = "0x" + "5e" * 20


class Chain:
    def __init__(self, node: EvmNode) -> None:
        self.dev = DevChain(node, pairs=CATALOGUE.pairs_on("bsc"), buyer=BUYER)
        self.rpc = JsonRpc(self.dev.url, timeout_s=10)

    def ask(self, method: str, *params: object) -> Any:
        return self.rpc.call_or_none(method, params, object)

    def height(self) -> int:
        return int(self.ask("eth_blockNumber"), 16)

    def pay(self, units: int, contract: str | None = None) -> str:
        return send_transfer(self.rpc, BUYER_KEY, to=SHOP, units=units, contract=contract)

    def mine(self) -> int:
        self.ask("evm_mine")
        return self.height()


class InProcess(EvmNode):
    """The program's own server without its process: a block only when a test wants one."""

    def _spawn(self) -> Child:
        raise NotImplementedError


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    evm = PyEvmChain(tmp_path / "chain.sqlite", chain_id=56)
    server = make_server(Node(evm), free_port())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    found = Chain(InProcess("bsc", server.server_port))
    found.dev.equip()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()
    evm.close()


@pytest.fixture
def program(tmp_path: Path, leash: Leash) -> Iterator[Chain]:
    node = EthTester(tmp_path / "chain", network="bsc", chain_id=56, port=free_port(), leash=leash)
    found = Chain(node)
    found.dev.start()
    found.dev.equip()
    yield found
    found.dev.stop()


def test_the_gateways_own_scan_finds_coin_and_tokens(chain: Chain) -> None:
    # Given one payment in coin and one in tokens
    usdt = chain.dev.tokens["USDT"]
    paid = {chain.pay(5): (NATIVE, "BNB", 5), chain.pay(7, usdt): ("0", "USDT", 7)}
    chain.mine()
    heights = {int(chain.ask("eth_getTransactionReceipt", txid)["blockNumber"], 16) for txid in paid}
    settings = load_settings(
        {
            "ENVIRONMENT": "development",
            "DATABASE_URL": "postgresql://a@b/c",
            "REDIS_URL": "redis://a",
            "BSC_RPC_URLS": chain.dev.url,
        }
    )

    # When the adapter scans those blocks
    scanner = adapter(CATALOGUE.networks["bsc"], settings)
    scans = [scanner.scan_block(height, lambda candidates: set(candidates) & {SHOP}) for height in heights]

    # Then it sees both, with what they are
    found = {
        transfer.txid: (transfer.ordinal, transfer.currency, transfer.units)
        for scan in scans
        if scan is not None
        for transfer in scan.transfers
    }
    assert found == paid


@pytest.mark.parametrize("currency", ["USDT", "BNB"])
def test_the_gateways_own_spends_are_priced_sent_and_proved(chain: Chain, currency: str) -> None:
    # Given one spend, of coin or of tokens
    chain.mine()
    network = CATALOGUE.networks["bsc"]
    spender = EvmSpender(network, Providers(network, [chain.dev.url], timeout_s=10))
    pair = CATALOGUE.pairs[currency, "bsc"]
    intent = Intent(sender=BUYER.lower(), recipient=SHOP, pair=pair, units=7)
    fee = spender.quote(intent, cap_units=20 * 10**9)
    attempt = spender.sign(intent, claim=spender.next_claim(intent.sender, ours=0), fee=fee, private_key=BUYER_KEY)

    # When it is sent, and again, and a block comes
    assert [spender.send(attempt.raw) for _ in range(2)] == [Sending.TAKEN, Sending.TAKEN]
    assert spender.fate(intent, claim=0, txids=(attempt.txid,), depth=2).kind is FateKind.WAITING
    height = chain.mine()
    chain.mine()

    # Then its effect, its cost and the balances after each block are told
    fate = spender.fate(intent, claim=0, txids=(attempt.txid,), depth=2)
    before = chain.ask("eth_getBlockByNumber", hex(height - 1), False)
    assert (fate.height, fate.is_success) == (height, True)
    assert 0 < fate.fee_units <= fee.ceiling_units
    assert spender.balance_at(SHOP, pair, before["hash"]) == 0
    assert spender.balance_at(SHOP, pair, fate.block_hash) == 7


def test_blocks_come_by_themselves_and_what_was_mined_survives_sigkill(program: Chain) -> None:
    txid = program.pay(9)
    wait_for(lambda: program.ask("eth_getTransactionReceipt", txid) is not None)
    receipt = program.ask("eth_getTransactionReceipt", txid)
    assert receipt["status"] == "0x1"
    assert program.dev.pid is not None

    os.kill(program.dev.pid, signal.SIGKILL)
    wait_for(lambda: program.dev.child is not None and program.dev.child.exit_code() is not None)
    program.dev.start()

    assert program.ask("eth_getTransactionReceipt", txid) == receipt
    assert int(program.ask("eth_getBalance", SHOP, "latest"), 16) == 9


def test_safe_and_finalized_blocks_follow_the_head(chain: Chain) -> None:
    while chain.mine() < 5:
        pass

    tags = ("latest", "safe", "finalized")
    assert [chain.ask("eth_getBlockByNumber", tag, False)["number"] for tag in tags] == ["0x5", "0x3", "0x1"]


def test_blocks_are_a_chain_with_rising_times(chain: Chain) -> None:
    chain.mine()
    top = chain.mine()
    blocks = [chain.ask("eth_getBlockByNumber", hex(height), False) for height in range(top + 1)]

    for parent, child in itertools.pairwise(blocks):
        assert child["parentHash"] == parent["hash"]
        assert int(child["timestamp"], 16) > int(parent["timestamp"], 16)
    assert chain.ask("eth_getBlockByHash", blocks[1]["hash"], True)["number"] == "0x1"
    assert chain.ask("eth_getBlockByNumber", hex(top + 1000), False) is None


def test_time_moves_when_told(chain: Chain) -> None:
    chain.ask("evm_increaseTime", 3600)
    chain.mine()

    latest = chain.ask("eth_getBlockByNumber", "latest", False)
    assert int(latest["timestamp"], 16) == pytest.approx(time.time() + 3600, abs=30)


def test_payments_in_a_row_count_their_nonces(chain: Chain) -> None:
    txids = [chain.pay(1) for _ in range(3)]
    chain.mine()
    chain.mine()

    assert {chain.ask("eth_getTransactionReceipt", txid)["status"] for txid in txids} == {"0x1"}
    assert int(chain.ask("eth_getTransactionCount", BUYER, "latest"), 16) == 3


def signed(**changes: Any) -> str:
    transaction = {
        "type": 2,
        "chainId": 56,
        "nonce": 0,
        "to": "0x" + "11" * 20,
        "value": 1,
        "data": b"",
        "gas": 21_000,
        "maxFeePerGas": 10**10,
        "maxPriorityFeePerGas": 10**9,
    }
    return "0x" + Account.sign_transaction({**transaction, **changes}, BUYER_KEY).raw_transaction.hex()


@pytest.mark.parametrize(
    ("raw", "refusal"),
    [
        (signed(chainId=1), "chain id"),
        (signed(value=10**30), "insufficient funds"),
        ("0x02c0", "invalid transaction"),
        ("0x", "invalid transaction"),
    ],
)
def test_what_cannot_be_executed_is_refused(chain: Chain, raw: str, refusal: str) -> None:
    with pytest.raises(RpcError, match=refusal):
        chain.ask("eth_sendRawTransaction", raw)


def test_the_same_bytes_are_known_before_and_after_their_block(chain: Chain) -> None:
    raw = signed()
    txid = chain.ask("eth_sendRawTransaction", raw)
    with pytest.raises(RpcError, match="already known"):
        chain.ask("eth_sendRawTransaction", raw)
    chain.mine()

    with pytest.raises(RpcError, match="already known"):
        chain.ask("eth_sendRawTransaction", raw)
    with pytest.raises(RpcError, match="nonce too low"):
        chain.ask("eth_sendRawTransaction", signed(value=2))
    assert chain.ask("eth_getTransactionByHash", txid)["blockNumber"] is not None


def test_a_gap_in_the_nonces_waits_to_be_filled(chain: Chain) -> None:
    later = chain.ask("eth_sendRawTransaction", signed(nonce=1))
    chain.mine()
    assert chain.ask("eth_getTransactionReceipt", later) is None
    assert chain.ask("eth_getTransactionByHash", later)["blockHash"] is None

    chain.ask("eth_sendRawTransaction", signed(nonce=0))
    chain.mine()

    assert chain.ask("eth_getTransactionReceipt", later)["status"] == "0x1"


def test_logs_are_found_by_address_and_topic(chain: Chain) -> None:
    usdt, usdc = chain.dev.tokens["USDT"], chain.dev.tokens["USDC"]
    txid = chain.pay(3, usdt)
    chain.mine()
    receipt = chain.ask("eth_getTransactionReceipt", txid)
    receiver = "0x" + SHOP[2:].rjust(64, "0")

    def logs(**wanted: object) -> list[Any]:
        found: list[Any] = chain.ask("eth_getLogs", {"blockHash": receipt["blockHash"], **wanted})
        return found

    assert logs() == logs(address=usdt) == logs(address=[usdc, usdt]) == receipt["logs"]
    assert logs(topics=[None, None, [receiver]]) == receipt["logs"]
    assert logs(address=usdc) == logs(topics=[receiver]) == logs(topics=[None, receiver]) == []
    assert chain.ask("eth_getLogs", {"fromBlock": "earliest", "toBlock": "latest"}) == receipt["logs"]


def test_an_unknown_method_is_an_error_and_requests_come_in_batches(chain: Chain) -> None:
    with pytest.raises(RpcError, match="Method not found"):
        chain.ask("trace_block", "0x1")

    batch = [{"jsonrpc": "2.0", "id": number, "method": "eth_chainId", "params": []} for number in (1, 2)]
    answers = urllib3.request("POST", chain.dev.url, body=json.dumps(batch)).json()
    assert answers == [{"jsonrpc": "2.0", "id": number, "result": "0x38"} for number in (1, 2)]


def test_parameters_that_make_no_sense_are_an_error(chain: Chain) -> None:
    with pytest.raises(RpcError):
        chain.ask("eth_getBalance", "0xzz")
    with pytest.raises(RpcError):
        chain.ask("eth_getBlockByNumber")
