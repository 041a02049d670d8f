"""A second provider confirms a transaction only with the same block, status, amount and place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import pytest

from chains.base import NATIVE, ProviderError, Recorded, Total
from chains.evm.scan.witness import covers, is_listed, is_same
from chains.net.json_rpc import Rpc
from devstack.evm.tokens import install_code
from tests.chains.conftest import FORWARDER, OURS, THEIRS, Chain
from tests.peers.anvil import calldata

T = TypeVar("T")
ETHER = 10**18


@pytest.fixture
def paid(chain: Chain) -> Recorded:
    txid = chain.pay("USDT", 5)
    scan = chain.scan(chain.node.mine())
    return Recorded(
        txid=txid, ordinal="0", currency="USDT", units=5, recipient=OURS,
        height=scan.block.height, block_hash=scan.block.hash,
    )  # fmt: skip


@pytest.fixture
def coin(chain: Chain) -> Recorded:
    txid = chain.node.send(OURS, value=ETHER)
    scan = chain.scan(chain.node.mine())
    return Recorded(
        txid=txid, ordinal=NATIVE, currency="ETH", units=ETHER, recipient=OURS,
        height=scan.block.height, block_hash=scan.block.hash,
    )  # fmt: skip


def agrees(chain: Chain, recorded: Recorded) -> bool:
    contract = None if recorded.currency == "ETH" else chain.contract(recorded.currency).lower()
    return is_same(chain.node.rpc, recorded, contract)


def test_the_same_is_the_same(chain: Chain, paid: Recorded) -> None:
    assert agrees(chain, paid)


def test_a_transfer_of_coin_is_confirmed_alike(chain: Chain, coin: Recorded) -> None:
    assert agrees(chain, coin)


CHANGES: list[dict[str, object]] = [
    {"units": 6},
    {"ordinal": "1"},
    {"ordinal": "7"},
    {"recipient": THEIRS},
    {"block_hash": "0x" + "11" * 32},
    {"txid": "0x" + "22" * 32},
    {"currency": "USDC"},
]


@pytest.mark.parametrize("change", CHANGES, ids=[next(iter(change)) + str(n) for n, change in enumerate(CHANGES)])
def test_anything_else_is_not(chain: Chain, paid: Recorded, change: dict[str, object]) -> None:
    assert not agrees(chain, replace(paid, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [{"units": ETHER + 1}, {"recipient": THEIRS}, {"block_hash": "0x" + "11" * 32}, {"txid": "0x" + "22" * 32}],
)
def test_other_coin_is_not(chain: Chain, coin: Recorded, change: dict[str, object]) -> None:
    assert not agrees(chain, replace(coin, **change))  # type: ignore[arg-type]


def test_a_failed_transaction_is_not(chain: Chain) -> None:
    chain.pay("USDT", 100, to=FORWARDER)
    chain.node.mine()
    call = calldata("pay_and_revert(address,address,uint256)", chain.contract("USDT"), OURS, 5)
    txid = chain.node.send(FORWARDER, data=call)
    block = chain.scan(chain.node.mine()).block
    recorded = Recorded(
        txid=txid, ordinal="0", currency="USDT", units=5, recipient=OURS, height=block.height, block_hash=block.hash
    )

    assert not agrees(chain, recorded)


def test_a_balance_covers_no_more_than_it_has_after_the_block_of_a_total(chain: Chain, coin: Recorded) -> None:
    total = Total(address=OURS, units=ETHER, certain_units=ETHER, height=coin.height, block_hash=coin.block_hash)
    chain.node.send(OURS, value=ETHER)
    chain.node.mine()

    assert covers(chain.node.rpc, total)
    assert not covers(chain.node.rpc, replace(total, units=ETHER + 1, certain_units=ETHER + 1))
    with pytest.raises(ProviderError, match="waits for witnesses"):
        covers(chain.node.rpc, replace(total, units=ETHER + 1))
    assert not covers(chain.node.rpc, replace(total, block_hash="0x" + "11" * 32))
    with pytest.raises(ProviderError, match="not there yet"):
        covers(chain.node.rpc, replace(total, height=coin.height + 1000))


def test_a_block_lists_its_own_payments_alone(chain: Chain, coin: Recorded) -> None:
    assert is_listed(chain.node.rpc, coin)
    changes: list[dict[str, object]] = [{"txid": "0x" + "22" * 32}, {"recipient": THEIRS}, {"units": ETHER + 1}]
    for change in changes:
        assert not is_listed(chain.node.rpc, replace(coin, **change))  # type: ignore[arg-type]
    for elsewhere in (replace(coin, block_hash="0x" + "11" * 32), replace(coin, height=coin.height + 1000)):
        with pytest.raises(ProviderError, match="no such block"):
            is_listed(chain.node.rpc, elsewhere)


def test_a_failed_transaction_with_value_is_not(chain: Chain) -> None:
    install_code(chain.node.rpc, OURS, "forger")
    txid = chain.node.send(OURS, value=ETHER)
    block = chain.scan(chain.node.mine()).block
    recorded = Recorded(
        txid=txid, ordinal=NATIVE, currency="ETH", units=ETHER, recipient=OURS,
        height=block.height, block_hash=block.hash,
    )  # fmt: skip

    assert not agrees(chain, recorded)
    assert not is_listed(chain.node.rpc, recorded)


@dataclass
class Otherwise:
    """A node that answers questions of one method otherwise."""

    rpc: Rpc
    method: str
    answer: object

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        if method != self.method:
            return self.rpc.call_or_none(method, params, kind)
        return None if self.answer is None else msgspec.convert(self.answer, kind)

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        return self.rpc.call(method, params, kind)


def test_only_a_receipt_of_the_very_payment_shows_that_it_failed(chain: Chain, coin: Recorded) -> None:
    failed = {"transactionHash": coin.txid, "blockHash": coin.block_hash, "status": "0x0", "logs": []}
    other = "0x" + "11" * 32
    assert not is_listed(Otherwise(chain.node.rpc, "eth_getTransactionReceipt", failed), coin)
    for receipt in (None, failed | {"transactionHash": other}, failed | {"blockHash": other}):
        assert is_listed(Otherwise(chain.node.rpc, "eth_getTransactionReceipt", receipt), coin)


def test_a_block_with_gaps_lists_nothing(chain: Chain, coin: Recorded) -> None:
    chain.node.send(THEIRS, value=1)
    chain.node.send(OURS, value=ETHER)
    block = chain.scan(chain.node.mine()).block
    full = chain.node.ask("eth_getBlockByNumber", hex(block.height), True)
    cut = full | {"transactions": full["transactions"][1:]}
    recorded = replace(coin, height=block.height, block_hash=block.hash)
    with pytest.raises(ProviderError, match="lacks its transaction 0"):
        is_listed(Otherwise(chain.node.rpc, "eth_getBlockByNumber", cut), recorded)


def test_a_node_behind_the_block_cannot_confirm(chain: Chain, paid: Recorded) -> None:
    with pytest.raises(ProviderError, match="not there yet"):
        agrees(chain, replace(paid, height=paid.height + 1000))


def test_a_transaction_is_located_by_its_receipt(chain: Chain, paid: Recorded) -> None:
    assert chain.reader.locate(paid.txid) == paid.height
    assert chain.reader.locate("0x" + "22" * 32) is None
