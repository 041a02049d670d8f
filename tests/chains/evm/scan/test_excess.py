"""Blocks whose receipts are too much for one answer: anybody can fill one with logs, and no provider lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import structlog

from chains.base import BlockScan, ProviderError
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.net import http
from chains.net.usage import Kind
from tests.chains.conftest import CATALOGUE, OURS
from tests.chains.evm.scan.test_lies import HEIGHT, OTHER_TXID, THEIRS, TXID, bloom, header, log, receipt, transaction
from tests.peers.json_rpc_node import JsonRpcNode, Raw
from tests.peers.ours import Finds, scan_of

BYTES_MAX = 20_000
SHOWN, HIDDEN = [log()], list[dict[str, object]]()
INVENTED = [log(), log(transactionHash=OTHER_TXID, logIndex="0x8")]

Start = Callable[..., tuple[EvmReader, list[JsonRpcNode]]]


@pytest.fixture(autouse=True)
def _short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KIND_BYTES_MAX", {Kind.BLOCKS: BYTES_MAX})


@pytest.fixture
def start() -> Iterator[Start]:
    """Returns a reader and its nodes: each shows other logs of one block, whose receipts are too much."""
    with ExitStack() as opened:

        def begin(*shown: object) -> tuple[EvmReader, list[JsonRpcNode]]:
            nodes = [opened.enter_context(node(logs, f"node-{number}")) for number, logs in enumerate(shown)]
            network = CATALOGUE.networks["ethereum"]
            urls = [each.url for each in nodes]
            providers = evm_providers(network, urls, timeout_s=5.0)
            return EvmReader(network, CATALOGUE.pairs_on("ethereum"), providers), nodes

        yield begin


def node(logs: object, key: str) -> JsonRpcNode:
    block = header(
        transactions=[transaction(hash=txid, to=THEIRS, value="0x0") for txid in (TXID, OTHER_TXID)],
        logsBloom=bloom(*(str(pair.contract).lower() for pair in CATALOGUE.pairs_on("ethereum") if pair.contract)),
    )
    receipts = {TXID: receipt(log()), OTHER_TXID: receipt(INVENTED[1], txid=OTHER_TXID)}
    answers = {
        "eth_chainId": "0x1",
        "eth_getBlockByNumber": block,
        "eth_getLogs": logs,
        "eth_getTransactionReceipt": receipts.get,
        "eth_getBlockReceipts": [receipt(log(data="0x" + "00" * BYTES_MAX))],
    }
    return JsonRpcNode(answers, key=key)


def read(reader: EvmReader, *, again: bool = False) -> BlockScan:
    ours = Finds(lambda seen: {OURS} & set(seen))
    scan = reader.reread(HEIGHT, ours) if again else scan_of(reader, HEIGHT, ours)
    assert scan is not None
    return scan


def paid(scan: BlockScan) -> list[str]:
    return [transfer.txid for transfer in scan.transfers]


@pytest.mark.parametrize("again", [False, True])
def test_logs_that_two_providers_show_alike_prove_the_block(start: Start, *, again: bool) -> None:
    reader, _ = start(SHOWN, SHOWN)
    with structlog.testing.capture_logs() as logs:
        scan = read(reader, again=again)
    assert (paid(scan), scan.is_proved) == ([TXID], True)
    assert "block.not_proved" not in {entry["event"] for entry in logs}


@pytest.mark.parametrize("shown", [(HIDDEN, SHOWN), (SHOWN, HIDDEN), (HIDDEN, SHOWN, SHOWN)])
def test_a_provider_that_hides_a_log_is_passed_over(start: Start, shown: tuple[object, ...]) -> None:
    reader, _ = start(*shown)
    assert paid(read(reader)) == [TXID]


def test_a_provider_that_adds_a_log_is_outvoted(start: Start) -> None:
    reader, _ = start(INVENTED, SHOWN, SHOWN)
    scan = read(reader)
    assert (paid(scan), scan.is_proved) == ([TXID], True)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_of_another_block_makes_no_list_longer(start: Start, *, is_first: bool) -> None:
    strange = [*SHOWN, log(transactionHash=OTHER_TXID, logIndex="0x8", blockHash="0x" + "99" * 32)]
    reader, _ = start(*((strange, SHOWN) if is_first else (SHOWN, strange)))
    scan = read(reader)
    assert (paid(scan), scan.is_proved) == ([TXID], False)


def test_one_of_two_that_adds_a_log_is_not_believed_alone(start: Start) -> None:
    reader, _ = start(SHOWN, INVENTED)
    scan = read(reader)
    assert (paid(scan), scan.is_proved) == ([TXID, OTHER_TXID], False)


def test_a_block_that_one_provider_alone_can_show_is_not_proved(start: Start) -> None:
    reader, _ = start(SHOWN, Raw(status=502))
    with structlog.testing.capture_logs() as logs:
        scan = read(reader)
    assert (paid(scan), scan.is_proved) == ([TXID], False)
    assert [entry["height"] for entry in logs if entry["event"] == "block.not_proved"] == [HEIGHT]


def test_a_single_provider_is_believed(start: Start) -> None:
    reader, _ = start(SHOWN)
    scan = read(reader)
    assert (paid(scan), scan.is_proved) == ([TXID], True)


@pytest.mark.parametrize(("first", "is_proved"), [(SHOWN, False), (HIDDEN, False), (None, True)])
def test_a_range_without_proof_is_read_on_and_its_deposits_need_witnesses(
    start: Start, first: list[dict[str, object]] | None, *, is_proved: bool
) -> None:
    """A provider that shows fewer logs than another one is passed over here too."""
    shown = [[each | {"blockNumber": hex(HEIGHT)} for each in logs] for logs in (first, SHOWN) if logs is not None]
    reader, nodes = start(*shown)
    for each in nodes:
        full = each.answers["eth_getBlockByNumber"]
        each.answers["eth_getBlockByNumber"] = lambda height, _full, full=full: (
            full if int(height, 16) == HEIGHT else header(number=height, logsBloom=bloom())
        )
    scans = reader.scan(HEIGHT - 1, HEIGHT + 30, Finds(lambda seen: {OURS} & set(seen)))
    assert len(scans) > 1
    assert [txid for scan in scans for txid in paid(scan)] == [TXID]
    assert {scan.is_proved for scan in scans} == {is_proved}
    # The scan lets the provider rest that shows a made-up sender.
    assert {bool(scan.read_by) for scan in scans} == {True}


def test_receipts_that_were_too_much_are_not_asked_for_again(start: Start) -> None:
    """All nodes' attempts together may take longer than a step has."""
    reader, nodes = start(SHOWN, SHOWN)
    for _ in range(3):
        read(reader)
    assert [each.asked.count("eth_getBlockReceipts") for each in nodes] == [1, 1]


def test_receipts_that_are_no_answer_prove_nothing_and_are_asked_for_again(start: Start) -> None:
    reader, nodes = start(SHOWN)
    nodes[0].answers["eth_getBlockReceipts"] = Raw(status=502)
    for _ in range(2):
        with pytest.raises(ProviderError):
            read(reader)
    assert nodes[0].asked.count("eth_getBlockReceipts") == 2


@pytest.mark.parametrize("status", [400, 403, 405, 413])
def test_a_host_whose_plan_lacks_receipts_stops_no_scan(start: Start, status: int) -> None:
    reader, nodes = start(SHOWN)
    nodes[0].answers["eth_getBlockReceipts"] = Raw(b"your plan lacks this method", status=status)
    assert paid(read(reader)) == [TXID]
