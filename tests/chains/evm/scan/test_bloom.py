"""The filter of a block's logs, held against a real node's headers."""

import pytest

from chains.base import ProviderError
from chains.evm import wire
from chains.evm.scan import bloom
from tests.chains.conftest import THEIRS, Chain


def header(logs_bloom: str | None) -> wire.Header:
    return wire.Header(number="0x1", hash="0x", parent_hash="0x", timestamp="0x1", logs_bloom=logs_bloom)


def test_the_filter_of_a_real_block_is_that_of_its_logs(chain: Chain) -> None:
    for currency in ("USDT", "DAI"):
        chain.pay(currency, 5)
        chain.pay(currency, 7, to=THEIRS)
    height = hex(chain.node.mine())
    receipts = chain.node.rpc.call("eth_getBlockReceipts", [height], list[wire.Receipt])
    block = chain.node.rpc.call("eth_getBlockByNumber", [height, False], wire.Header)

    assert bloom.of_header(block) == bloom.of_logs(log for receipt in receipts for log in receipt.logs) != 0


def test_the_bloom_admits_written_values_and_denies_others(chain: Chain) -> None:
    chain.pay("USDT", 5)
    height = hex(chain.node.mine())
    admitted = bloom.of_header(chain.node.rpc.call("eth_getBlockByNumber", [height, False], wire.Header))

    assert bloom.may_hold(admitted, chain.contract("USDT").lower())
    assert not bloom.may_hold(admitted, chain.contract("USDC").lower())


def test_without_a_filter_everything_may_be() -> None:
    assert bloom.may_hold(bloom.of_header(header(None)), "0x" + "12" * 20)


@pytest.mark.parametrize("text", ["0x", "0x00", "0x" + "00" * 255, "0x" + "00" * 257, "zz"])
def test_a_filter_of_another_length_is_refused(text: str) -> None:
    with pytest.raises(ProviderError):
        bloom.of_header(header(text))
