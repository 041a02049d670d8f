"""Blocks whose outcomes are too much for one answer: anybody can fill one with calls that return long data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chains.base import BlockScan, ProviderError, Recorded
from chains.net import budget, http
from tests.chains.tron.twists import twisted
from tests.chains.tron.world import OURS, World
from tests.peers.json_rpc_node import Raw
from tests.peers.tron.chain import TRX

BYTES_MAX = 100_000


def fat(infos: Any) -> Any:
    """Return the outcomes of a block with long data that a call returned."""
    return [infos[0] | {"contractResult": ["00" * BYTES_MAX]}, *infos[1:]] if infos else infos


@pytest.fixture
def paid(chain: World, monkeypatch: pytest.MonkeyPatch) -> BlockScan:
    """Return the scan of a block that pays us by two calls and a plain transfer, before answers become short."""
    for units in (3, 5):
        chain.tron.send(chain.tron.token(OURS.address, units * TRX))
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    chain.tron.mine()
    scan = chain.scan()
    assert len(scan.transfers) == 3
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", BYTES_MAX)
    return scan


def counted(asked: list[str], lie: Callable[[Any], Any] = lambda info: info) -> Callable[[Any], Any]:
    def twist(info: Any) -> Any:
        asked.append(info["id"])
        return lie(info)

    return twist


def test_outcomes_that_are_too_much_are_fetched_one_by_one(chain: World, paid: BlockScan) -> None:
    asked: list[str] = []
    with twisted(chain, gettransactioninfobyblocknum=fat, gettransactioninfobyid=counted(asked)) as liar:
        for _ in range(2):
            assert liar.scan(paid.block.height).transfers == paid.transfers
    # Of the calls alone, and once.
    assert sorted(asked) == sorted(each.txid for each in paid.transfers if each.ordinal != "native")


@pytest.mark.parametrize("refusal", [Raw(status=413), Raw(status=400), {"Error": "class java.lang.Exception"}])
def test_outcomes_are_fetched_one_by_one_from_a_node_that_refuses_the_list(
    chain: World, paid: BlockScan, refusal: object
) -> None:
    with twisted(chain, gettransactioninfobyblocknum=lambda _: refusal) as liar:
        assert liar.scan(paid.block.height).transfers == paid.transfers


@pytest.mark.parametrize("failure", [Raw(status=429), Raw(status=500), Raw(b"[{"), None])
def test_outcomes_are_not_fetched_one_by_one_after_another_failure(
    chain: World, paid: BlockScan, failure: object
) -> None:
    asked: list[str] = []
    with (
        twisted(chain, gettransactioninfobyblocknum=lambda _: failure, gettransactioninfobyid=counted(asked)) as liar,
        pytest.raises(ProviderError),
    ):
        liar.scan(paid.block.height)
    assert asked == []


def test_outcomes_are_fetched_one_by_one_only_once_a_node_is_late_with_the_block_again(
    chain: World, paid: BlockScan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is late once may be slow with everything: one by one it would be asked hundreds of questions."""
    asked: list[str] = []
    monkeypatch.setattr(budget, "take", lambda _timeout_s: 1.0)
    late = Raw(b"[]", pause_s=2.5)
    with twisted(chain, gettransactioninfobyblocknum=lambda _: late, gettransactioninfobyid=counted(asked)) as liar:
        with pytest.raises(ProviderError, match="Timeout"):
            liar.scan(paid.block.height)
        assert asked == []
        assert liar.scan(paid.block.height).transfers == paid.transfers


def test_a_deposit_in_such_a_block_has_a_second_opinion(chain: World, paid: BlockScan) -> None:
    first = paid.transfers[0]
    recorded = Recorded(
        txid=first.txid, ordinal=first.ordinal, currency=first.currency, units=first.units, recipient=first.recipient,
        height=paid.block.height, block_hash=paid.block.hash,
    )  # fmt: skip
    with twisted(chain, gettransactioninfobyblocknum=fat) as liar:
        assert liar.reader.second_opinion(recorded).same == 1


def test_outcomes_that_were_fetched_are_not_fetched_again_after_a_failure(chain: World, paid: BlockScan) -> None:
    asked: list[str] = []
    last = [each.txid for each in paid.transfers if each.ordinal != "native"][-1]
    failures = [{}]

    def fail_once(info: Any) -> Any:
        return failures.pop() if info["id"] == last and failures else info

    with twisted(chain, gettransactioninfobyblocknum=fat, gettransactioninfobyid=counted(asked, fail_once)) as liar:
        with pytest.raises(ProviderError, match="no outcome"):
            liar.scan(paid.block.height)
        assert liar.scan(paid.block.height).transfers == paid.transfers
    assert (asked.count(last), len(asked)) == (2, 3)


@pytest.mark.parametrize("change", [{"id": "00" * 32}, {"blockNumber": 1}])
def test_an_outcome_of_another_transaction_or_block_is_refused(
    chain: World, paid: BlockScan, change: dict[str, object]
) -> None:
    with (
        twisted(chain, gettransactioninfobyblocknum=fat, gettransactioninfobyid=lambda info: info | change) as liar,
        pytest.raises(ProviderError, match="no outcome"),
    ):
        liar.scan(paid.block.height)
