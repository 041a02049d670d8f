"""The EVM scan against nodes that lag, cut, mix up or invent. An answer that cannot be right is no answer."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from chains.base import BlockScan, ProviderError
from chains.evm.reader import TRANSFER_TOPIC
from chains.evm.scan.bloom import mask
from tests.chains.conftest import CATALOGUE, OURS, THEIRS, evm_reader
from tests.peers.json_rpc_node import JsonRpcNode, Refusal
from tests.peers.ours import Finds, scan_of

HEIGHT = 100
BLOCK = "0x" + "aa" * 32
OTHER_BLOCK = "0x" + "bb" * 32
TXID = "0x" + "01" * 32
OTHER_TXID = "0x" + "02" * 32
USDT = str(CATALOGUE.pairs["USDT", "ethereum"].contract).lower()


def bloom(*contracts: str) -> str:
    """The filter of a block in which these contracts wrote transfers between the two of us."""
    items = [*contracts, TRANSFER_TOPIC, topic(THEIRS), topic(OURS)] if contracts else []
    bits = 0
    for item in items:
        bits |= mask(item)
    return f"0x{bits:0512x}"


def topic(address: str) -> str:
    return "0x" + "0" * 24 + address.removeprefix("0x")


def log(**changes: object) -> dict[str, object]:
    honest = {
        "address": USDT,
        "topics": [TRANSFER_TOPIC, topic(THEIRS), topic(OURS)],
        "data": f"0x{5_000_000:064x}",
        "blockHash": BLOCK,
        "transactionHash": TXID,
        "logIndex": "0x7",
        "removed": False,
    }
    return honest | changes


def transaction(**changes: object) -> dict[str, object]:
    return {"hash": OTHER_TXID, "from": THEIRS, "to": OURS, "value": "0xde0b6b3a7640000"} | changes


def header(**changes: object) -> dict[str, object]:
    honest = {"number": hex(HEIGHT), "hash": BLOCK, "parentHash": OTHER_BLOCK, "timestamp": "0x65000000"}
    return honest | {"transactions": [], "logsBloom": bloom(USDT)} | changes


def receipt(*logs: Mapping[str, object], txid: str = TXID, **changes: object) -> dict[str, object]:
    return {"transactionHash": txid, "blockHash": BLOCK, "status": "0x1", "logs": list(logs)} | changes


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    """A node that is honest until a test changes one of its answers: a block with one USDT transfer to us."""
    answers: dict[str, Any] = {
        "eth_chainId": "0x1",
        "eth_getBlockByNumber": header(),
        "eth_getLogs": [log()],
        "eth_getTransactionReceipt": receipt(log()),
        "eth_getBlockReceipts": Refusal(-32601, "no such method"),
    }
    with JsonRpcNode(answers) as node:
        yield node


def scan(node: JsonRpcNode) -> BlockScan | None:
    return scan_of(evm_reader(node.url), HEIGHT, Finds(lambda seen: {OURS} & set(seen)))


def transfers(node: JsonRpcNode) -> list[tuple[str, str, int]]:
    result = scan(node)
    assert result is not None
    return [(transfer.txid, transfer.ordinal, transfer.units) for transfer in result.transfers]


def test_the_honest_node_is_believed(node: JsonRpcNode) -> None:
    assert transfers(node) == [(TXID, "0", 5_000_000)]


@pytest.mark.parametrize("is_second", [False, True])
def test_no_receipts_are_kept_of_a_block_that_was_read(node: JsonRpcNode, *, is_second: bool) -> None:
    reader, ours = evm_reader(node.url), Finds(lambda seen: {OURS} & set(seen))
    scan = reader.reread(HEIGHT, ours) if is_second else scan_of(reader, HEIGHT, ours)
    assert scan is not None
    assert scan.transfers
    assert not reader._book._kept


def test_letters_may_be_of_any_case(node: JsonRpcNode) -> None:
    loud = log(address="0x" + USDT[2:].upper(), blockHash="0x" + "AA" * 32)
    node.answers["eth_getLogs"] = [loud]

    assert transfers(node) == [(TXID, "0", 5_000_000)]


def test_logs_are_asked_for_by_the_hash_of_the_block(node: JsonRpcNode) -> None:
    asked: list[dict[str, object]] = []
    node.answers["eth_getLogs"] = lambda wanted: asked.append(wanted) or []  # type: ignore[func-returns-value]
    scan(node)

    assert asked[0]["blockHash"] == BLOCK
    assert asked[0]["topics"] == [TRANSFER_TOPIC]
    assert USDT in asked[0]["address"]  # type: ignore[operator]


def test_no_receipt_is_fetched_for_others_transfers(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(topics=[TRANSFER_TOPIC, topic(OURS), topic(THEIRS)])]
    node.answers["eth_getBlockByNumber"] = header(transactions=[transaction(to=THEIRS)])

    assert transfers(node) == []
    assert "eth_getTransactionReceipt" not in node.asked


def test_one_receipt_serves_all_transfers_of_its_transaction(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(), log(logIndex="0x8")]
    node.answers["eth_getTransactionReceipt"] = receipt(log(), log(logIndex="0x8"))

    assert transfers(node) == [(TXID, "0", 5_000_000), (TXID, "1", 5_000_000)]
    assert node.asked.count("eth_getTransactionReceipt") == 1


# Several forks -----------------------------------------------------------------------------------------------


def test_a_log_of_another_fork_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(blockHash=OTHER_BLOCK)]

    with pytest.raises(ProviderError, match="a log of another block"):
        scan(node)


def test_a_receipt_of_another_fork_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(), blockHash=OTHER_BLOCK)

    with pytest.raises(ProviderError, match="a receipt of another block"):
        scan(node)


def test_a_receipt_of_another_transaction_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(), txid=OTHER_TXID)

    with pytest.raises(ProviderError, match="another transaction"):
        scan(node)


def test_a_removed_log_is_ignored(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(removed=True)]

    assert transfers(node) == []


def test_a_block_of_another_height_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getBlockByNumber"] = header(number=hex(HEIGHT - 1))

    with pytest.raises(ProviderError, match="asked for block 100, got 99"):
        scan(node)


# Lagging and cutting -----------------------------------------------------------------------------------------


def test_a_null_block_is_not_yet(node: JsonRpcNode) -> None:
    node.answers["eth_getBlockByNumber"] = None

    assert scan(node) is None


@pytest.mark.parametrize("method", ["eth_getTransactionReceipt", "eth_getLogs"])
def test_a_missing_block_is_no_answer_and_no_empty_list(node: JsonRpcNode, method: str) -> None:
    node.answers[method] = None

    with pytest.raises(ProviderError, match="no result"):
        scan(node)


def test_a_node_that_does_not_know_its_own_block_is_no_answer(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = Refusal(-32000, "unknown block")

    with pytest.raises(ProviderError, match="unknown block"):
        scan(node)


def test_a_pending_block_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getBlockByNumber"] = header(hash=None)

    with pytest.raises(ProviderError):
        scan(node)


@pytest.mark.parametrize("data", ["0x", "0x4c4b40", f"0x{5_000_000:064x}"[:-2]])
def test_a_cut_amount_is_refused_not_read(node: JsonRpcNode, data: str) -> None:
    node.answers["eth_getLogs"] = [log(data=data)]

    with pytest.raises(ProviderError, match="cut short"):
        scan(node)


# Silence -----------------------------------------------------------------------------------------------------


def whole(*logs: Mapping[str, object], **changes: object) -> list[dict[str, object]]:
    return [receipt(*logs) | changes]


def test_silence_that_the_filter_contradicts_needs_proof(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole(log())}
    node.answers["eth_getBlockByNumber"] = header(transactions=[transaction(hash=TXID, to=THEIRS)])

    with pytest.raises(ProviderError, match="were cut: 0 of 1"):
        scan(node)


def test_silence_that_the_filter_confirms_asks_no_more(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockByNumber": header(logsBloom=bloom())}

    assert transfers(node) == []
    assert "eth_getBlockReceipts" not in node.asked


def test_a_filter_that_only_seems_to_hold_our_tokens_is_explained_by_the_receipts(node: JsonRpcNode) -> None:
    other = log(address="0x" + "cc" * 20)
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole(other)}
    node.answers["eth_getBlockByNumber"] = header(logsBloom=bloom(USDT, "0x" + "cc" * 20))

    with pytest.raises(ProviderError, match="lack logs that its header knows of"):
        scan(node)
    node.answers["eth_getBlockReceipts"] = whole(other, log(topics=["0x" + "cd" * 32]))
    assert transfers(node) == []


def test_receipts_that_do_not_fill_the_filter_are_cut_too(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole()}

    with pytest.raises(ProviderError, match="lack logs that its header knows of"):
        scan(node)


def test_receipts_that_lack_a_transaction_are_refused(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole(log())}
    node.answers["eth_getBlockByNumber"] = header(transactions=[transaction(to=THEIRS)])

    with pytest.raises(ProviderError, match="transactions without receipt"):
        scan(node)


def test_receipts_of_another_block_are_refused(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole(log(), blockHash=OTHER_BLOCK)}

    with pytest.raises(ProviderError, match="receipts of another block"):
        scan(node)


def test_logs_beyond_the_filter_are_no_fault_where_their_receipt_has_them(node: JsonRpcNode) -> None:
    """Polygon's bridge writes logs that its headers do not count."""
    node.answers["eth_getBlockByNumber"] = header(logsBloom=bloom())

    assert transfers(node) == [(TXID, "0", 5_000_000)]


def test_a_receipt_with_more_transfers_than_were_shown_betrays_the_cut(node: JsonRpcNode) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(), log(logIndex="0x8"))

    with pytest.raises(ProviderError, match="lack some that a receipt has"):
        scan(node)


def test_a_thorough_scan_reads_the_receipts_and_not_the_logs(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getLogs": [], "eth_getBlockReceipts": whole(log())}
    result = evm_reader(node.url).reread(HEIGHT, Finds(lambda seen: {OURS} & set(seen)))

    assert result is not None
    assert [transfer.txid for transfer in result.transfers] == [TXID]
    assert "eth_getLogs" not in node.asked


def test_where_no_node_has_receipts_its_logs_have_to_do(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = []

    assert transfers(node) == []


# Transactions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"gasUsed": "0x5208"}, "has lost its transactions"),
        ({"transactions": [transaction(transactionIndex="0x1")]}, "lacks its transaction 0"),
        ({"transactions": [transaction(), transaction()]}, "names a transaction twice"),
        ({"transactions": [transaction(blockHash=OTHER_BLOCK)]}, "holds a transaction of another block"),
    ],
)
def test_a_list_of_transactions_that_cannot_be_whole_is_refused(
    node: JsonRpcNode, change: dict[str, object], problem: str
) -> None:
    node.answers["eth_getBlockByNumber"] = header(**change)

    with pytest.raises(ProviderError, match=problem):
        scan(node)


# Inventions --------------------------------------------------------------------------------------------------


def test_a_log_that_its_receipt_lacks_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(logIndex="0x8"))

    with pytest.raises(ProviderError, match="does not have"):
        scan(node)


@pytest.mark.parametrize(
    "change",
    [
        {"data": f"0x{4_000_000:064x}"},
        {"address": "0x" + "cc" * 20},
        {"topics": [TRANSFER_TOPIC, topic(THEIRS), topic(THEIRS)]},
    ],
)
def test_a_log_that_differs_from_its_receipt_is_refused(node: JsonRpcNode, change: dict[str, object]) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(**change))

    with pytest.raises(ProviderError, match="does not have"):
        scan(node)


def test_a_log_of_a_failed_transaction_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_getTransactionReceipt"] = receipt(log(), status="0x0")

    with pytest.raises(ProviderError, match="does not have"):
        scan(node)


def test_a_log_of_a_contract_that_was_not_asked_for_is_ignored(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(address="0x" + "cc" * 20)]

    assert transfers(node) == []


def test_a_log_of_a_topic_that_was_not_asked_for_is_ignored(node: JsonRpcNode) -> None:
    node.answers["eth_getLogs"] = [log(topics=["0x" + "cc" * 32, topic(THEIRS), topic(OURS)])]

    assert transfers(node) == []


def test_a_failed_native_transfer_pays_nothing(node: JsonRpcNode) -> None:
    node.answers["eth_getBlockByNumber"] = header(transactions=[transaction()])
    node.answers["eth_getLogs"] = []
    node.answers["eth_getTransactionReceipt"] = receipt(txid=OTHER_TXID, status="0x0")

    assert transfers(node) == []


def test_a_receipt_without_status_proves_nothing(node: JsonRpcNode) -> None:
    without = receipt(log())
    del without["status"]
    node.answers["eth_getTransactionReceipt"] = without

    with pytest.raises(ProviderError):
        scan(node)


@pytest.mark.parametrize(
    "change",
    [
        {"hash": "0x12"},
        {"hash": BLOCK[:-1]},
        {"parentHash": "aa" * 32},
        {"parentHash": "0x" + "zz" * 32},
        {"timestamp": "1700000000"},
        {"timestamp": "0x"},
        {"timestamp": "0x" + "f" * 64},
        {"number": "0x6_4"},
        {"number": 100},
        {"number": "0x٦٤"},
        {"transactions": ["0x" + "01" * 32]},
        {"transactions": [transaction(value="1000")]},
        {"transactions": [transaction(value="-0x1")]},
        {"transactions": [transaction(to="0x1234")]},
        {"transactions": [transaction(to="0x" + "zz" * 20)]},
        {"transactions": None},
    ],
)
def test_rubbish_in_a_block_is_refused(node: JsonRpcNode, change: dict[str, object]) -> None:
    node.answers["eth_getBlockByNumber"] = header(**change)

    with pytest.raises(ProviderError):
        scan(node)


@pytest.mark.parametrize(
    "change",
    [
        {"data": "0xzz"},
        {"data": "0x123"},
        {"data": "5000000"},
        {"topics": [TRANSFER_TOPIC, topic(THEIRS), "0x1234"]},
        {"topics": "none"},
        {"address": "0x12"},
        {"transactionHash": "0x12"},
        {"transactionHash": None},
        {"blockHash": None},
    ],
)
def test_rubbish_in_a_log_is_refused(node: JsonRpcNode, change: dict[str, object]) -> None:
    node.answers["eth_getLogs"] = [log(**change)]

    with pytest.raises(ProviderError):
        scan(node)


def test_a_node_of_another_chain_is_refused(node: JsonRpcNode) -> None:
    node.answers["eth_chainId"] = "0x38"

    with pytest.raises(ProviderError, match="ethereum: a provider serves chain 56"):
        scan(node)
    assert node.asked == ["eth_chainId"]
