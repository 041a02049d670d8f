"""A block is found to pay us by what took effect in it, and is not read where its parts contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chains.base import Agreement, DisagreementError, NotYetError, Place, ProviderError, Recorded, Transfer
from chains.net import http
from chains.net.usage import Kind
from devstack.contracts.code import PLAIN
from tests.chains.tron.twists import Twist, twisted, twisting
from tests.chains.tron.world import HOT_KEY, OURS, PAIRS, THEIRS, USDT_PAIR, World, payment, world
from tests.peers.tron.chain import BUYER, FORWARDER, TRX, USDT


def test_trx_and_tokens_are_found_with_their_sender(chain: World) -> None:
    paid = chain.tron.send(chain.tron.transfer(OURS.address, 3 * TRX))
    moved = chain.tron.send(chain.tron.token(OURS.address, 5 * TRX))
    chain.tron.send(chain.tron.transfer(THEIRS, TRX))
    chain.tron.mine()

    scan = chain.scan()

    assert [(t.txid, t.ordinal, t.currency, t.units, t.sender, t.recipient) for t in scan.transfers] == [
        (paid, "native", "TRX", 3 * TRX, BUYER.address, OURS.address),
        (moved, "0", "USDT", 5 * TRX, BUYER.address, OURS.address),
    ]
    assert set(scan.sent) >= {(BUYER.address, paid), (BUYER.address, moved)}
    assert scan.block == chain.reader.block(scan.block.height)


def test_trx_that_a_contract_passes_on_is_found_by_its_place(chain: World) -> None:
    chain.tron.act("code", address=FORWARDER, code="forwarder")
    txid = chain.tron.send(chain.tron.called(FORWARDER, "forward(address)", OURS.address, units=4 * TRX))

    assert chain.transfers() == [("internal:0", "TRX", 4 * TRX, OURS.address)]
    assert chain.scan().transfers[0].txid == txid


def test_a_look_alike_a_failure_and_a_namesake_count_for_nothing(chain: World) -> None:
    other = "TNPeeaaFB7K9cmo4uQpcU32zGK8G1NYqeL"
    chain.tron.act("token", address=other, code=PLAIN, symbol="USDT", decimals=6, balances={BUYER.address: 9})
    chain.tron.act("asset", address=BUYER.address, asset="USDT", units=9)
    chain.tron.send(chain.tron.called(other, "transfer(address,uint256)", OURS.address, 9))
    chain.tron.send(chain.tron.token(OURS.address, 9, fee_limit=1))

    assert chain.transfers() == []


def test_a_missing_block_is_none(chain: World) -> None:
    height = chain.tron.chain.head.height

    assert chain.reader.block(height + 1) is None
    assert list(chain.reader.scan(height, height, _Nobody())) == []
    assert chain.reader.reread(height + 1, _Nobody()) is None
    assert chain.reader.head() == height
    assert chain.reader.final_height() == height - 3


class _Nobody:
    def addresses(self, _seen: Any) -> Sequence[str]:
        return ()

    def coins(self, _seen: Any) -> Sequence[tuple[str, int]]:
        return ()


def _without_last(infos: list[Any]) -> list[Any]:
    return infos[:-1]


def _twice(infos: list[Any]) -> list[Any]:
    return infos + infos[-1:]


def _elsewhere(infos: list[Any]) -> list[Any]:
    return [info | {"blockNumber": 1} for info in infos]


def _more(block: dict[str, Any]) -> dict[str, Any]:
    for transaction in block.get("transactions", ()):
        transaction["raw_data"]["contract"][0]["parameter"]["value"]["amount"] = 10**12
    return block


def _other_bytes(block: dict[str, Any]) -> dict[str, Any]:
    for transaction in block.get("transactions", ()):
        transaction["raw_data_hex"] = transaction["raw_data_hex"][:-2] + "00"
    return block


def _other_number(block: dict[str, Any]) -> dict[str, Any]:
    return block | {"blockID": "f" * 16 + block["blockID"][16:]}


@pytest.mark.parametrize(
    "twists",
    [
        {"gettransactioninfobyblocknum": _without_last},
        {"gettransactioninfobyblocknum": _twice},
        {"gettransactioninfobyblocknum": _elsewhere},
        {"getblockbynum": _more},
        {"getblockbynum": _other_bytes},
    ],
    ids=["an outcome less", "an outcome twice", "another block's", "another amount", "another id"],
)
def test_a_block_whose_parts_contradict_each_other_is_not_read(chain: World, twists: dict[str, Twist]) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    height = chain.tron.mine()

    def later(name: str, twist: Twist) -> Twist:
        # The first block names the chain, and stays as it is.
        return lambda answer: twist(answer) if name != "getblockbynum" or "transactions" in answer else answer

    with (
        twisted(chain, **{name: later(name, twist) for name, twist in twists.items()}) as liar,
        pytest.raises(ProviderError),
    ):
        liar.scan(height)
    with twisted(chain) as honest:
        assert len(honest.scan(height).transfers) == 1


def test_logs_of_bytes_that_are_another_transaction_are_refused(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, TRX))
    height = chain.tron.mine()

    with twisted(chain, getblockbynum=_other_bytes) as liar, pytest.raises(ProviderError, match="not its hash"):
        liar.scan(height)


def test_a_number_that_its_id_does_not_bear_is_refused(chain: World) -> None:
    height = chain.tron.mine()

    def later(answer: Any) -> Any:
        return _other_number(answer) if answer.get("blockID") != chain.tron.chain.ids[0] else answer

    with twisted(chain, getblockbynum=later) as liar, pytest.raises(ProviderError, match=f"asked for block {height}"):
        liar.reader.block(height)


@pytest.mark.parametrize(
    "twist",
    [
        lambda infos: [info | {"receipt": info["receipt"] | {"result": "REVERT"}} for info in infos],
        lambda infos: [info | {"result": "FAILED"} for info in infos],
        lambda infos: [
            info | {"internal_transactions": [one | {"rejected": True} for one in info["internal_transactions"]]}
            for info in infos
        ],
        lambda infos: [
            info
            | {
                "internal_transactions": [
                    one | {"callValueInfo": [{"callValue": 9, "tokenId": "1000001"}]}
                    for one in info["internal_transactions"]
                ]
            }
            for info in infos
        ],
    ],
    ids=["reverted", "failed", "rejected", "another token"],
)
def test_a_rejected_internal_transfer_counts_for_nothing(chain: World, twist: Twist) -> None:
    chain.tron.act("code", address=FORWARDER, code="forwarder")
    chain.tron.send(chain.tron.called(FORWARDER, "forward(address)", OURS.address, units=4 * TRX))
    height = chain.tron.mine()

    with twisted(chain, gettransactioninfobyblocknum=twist) as liar:
        assert liar.scan(height).transfers == ()


def recorded(transfer: Transfer, height: int, block_hash: str, units: int = 0) -> Recorded:
    return Recorded(
        txid=transfer.txid, ordinal=transfer.ordinal, currency=transfer.currency, units=units or transfer.units,
        recipient=transfer.recipient, height=height, block_hash=block_hash,
    )  # fmt: skip


def test_a_deposit_is_read_again_by_its_block(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, 5 * TRX))
    chain.tron.mine()
    scan = chain.scan()
    (transfer,) = scan.transfers
    at = (scan.block.height, scan.block.hash)

    assert chain.reader.second_opinion(recorded(transfer, *at)) == Agreement(same=1, other=0)
    assert chain.reader.second_opinion(recorded(transfer, *at, units=1)) == Agreement(same=0, other=1)
    assert chain.reader.second_opinion(recorded(transfer, at[0], "00" * 32)) == Agreement(same=0, other=1)
    assert chain.reader.locate(transfer.txid) == at[0]
    assert chain.reader.locate("00" * 32) is None
    assert chain.reader.agreement(*at) == Agreement(same=1, other=0)


def test_a_reorg_is_seen_by_hashes(chain: World) -> None:
    height = chain.tron.mine()
    before = chain.reader.block(height)
    chain.tron.chain.reorg(2)

    after = chain.reader.block(height)

    assert before is not None
    assert after is not None
    assert before.hash != after.hash
    assert chain.reader.agreement(height, before.hash) == Agreement(same=0, other=1)


PLACES = [Place(address=HOT_KEY.address, pair=None), Place(address=HOT_KEY.address, pair=USDT_PAIR)]


def test_balances_are_those_of_the_irreversible_block(chain: World) -> None:
    chain.tron.send(chain.tron.token(HOT_KEY.address, 1))
    chain.tron.mine(3)
    solid = chain.tron.chain.blocks[chain.tron.chain.solid_height()]

    snapshot = chain.reader.snapshot(PLACES, height=1, block_hash="any")

    assert (snapshot.height, snapshot.block_hash) == (solid.height, solid.id)
    assert snapshot.units == (10_000 * TRX, 5_000 * TRX)
    chain.tron.mine()
    assert chain.reader.snapshot(PLACES, height=1, block_hash="any").units == (10_000 * TRX, 5_000 * TRX + 1)


def test_balances_of_a_chain_that_goes_on_are_nobodys(chain: World) -> None:
    def goes_on(answer: Any) -> Any:
        chain.tron.mine()
        return answer

    with twisted(chain, getaccount=goes_on) as hasty, pytest.raises(NotYetError, match="faster"):
        hasty.reader.snapshot(PLACES, height=1, block_hash="any")


def test_two_witnesses_have_to_agree_on_one_block(chain: World) -> None:
    def richer(answer: Any) -> Any:
        return answer | {"balance": 1}

    with twisting(chain, getaccount=richer) as liar, twisting(chain) as honest:
        assert world(chain.tron, [chain.tron.url, honest]).reader.snapshot(
            PLACES, height=1, block_hash="any", witnesses=2
        ).units == (10_000 * TRX, 5_000 * TRX)
        with pytest.raises(DisagreementError):
            world(chain.tron, [chain.tron.url, liar]).reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2)
    with pytest.raises(NotYetError, match="too few"):
        world(chain.tron, [chain.tron.url, liar]).reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2)


def test_what_moving_costs_is_more_than_it_takes_and_no_more_than_the_cap(chain: World) -> None:
    costs = chain.reader.costs(cap_units=100 * TRX)

    assert costs.keys() == {pair.currency for pair in PAIRS}
    # 131,000 of energy and 400 bytes, at 100 and 1,000 sun; a new account and 300 bytes.
    price = chain.tron.chain.world.energy_price
    assert costs["USDT"].payout_units == 131_000 * price + 400_000
    assert costs["TRX"].payout_units == 1_400_000
    assert costs["TRX"].sweep_units == 300_000
    assert chain.reader.costs(cap_units=TRX)["USDT"].payout_units == TRX


def test_nodes_are_asked_for_what_the_scan_leans_on(chain: World) -> None:
    assert list(chain.reader.lacking()) == [[]]
    assert list(chain.reader.identify()) == [chain.tron.chain.ids[0]]
    assert chain.reader.providers == 1


def test_a_node_that_keeps_no_outcomes_is_found_out(chain: World) -> None:
    with twisted(chain, gettransactioninfobyblocknum=lambda _answer: []) as forgetful:
        chain.tron.send(chain.tron.transfer(THEIRS, TRX))
        chain.tron.mine()
        ((lacking,),) = forgetful.reader.lacking()  # type: ignore[misc]
        assert lacking.startswith("keeps no outcomes")
        chain.tron.mine()
        assert list(forgetful.reader.lacking()) == [[]]


def test_a_departure_without_a_row_is_read_whole(chain: World) -> None:
    for pair, units in ((None, 2 * TRX), (USDT_PAIR, 3 * TRX)):
        draft, attempt = chain.signed(payment(units, pair=pair))
        chain.spender.send(attempt.raw)
        chain.tron.mine()
        block = chain.scan().block

        departure = chain.reader.departure(attempt.txid, block)

        assert departure is not None
        assert (departure.sender, departure.pair, departure.raw, departure.is_transfer) == (
            HOT_KEY.address,
            pair,
            attempt.raw,
            True,
        )
        assert departure.outputs == draft.intent.outputs
        assert departure.offer.terms == draft.offer.terms
        assert departure.failed == frozenset()
        assert departure.window is not None
        assert departure.window.ends_at == draft.claim.ends_at  # type: ignore[union-attr]
        with pytest.raises(ProviderError):
            chain.reader.departure("00" * 32, block)


def test_a_call_without_a_transfer_returns_none(chain: World) -> None:
    txid = chain.tron.send(chain.tron.called(USDT, "approve(address,uint256)", THEIRS, 1))
    chain.tron.mine()

    departure = chain.reader.departure(txid, chain.scan().block)

    assert departure is not None
    assert (departure.is_transfer, departure.pair, departure.outputs[0].recipient) == (False, None, USDT)


def test_another_signers_signature_proves_nothing(chain: World) -> None:
    txid = chain.tron.send(chain.tron.transfer(THEIRS, TRX))
    height = chain.tron.mine()

    def other(answer: Any) -> Any:
        for transaction in answer.get("transactions", ()):
            transaction["signature"] = ["11" * 64 + "00"]
        return answer

    with twisted(chain, getblockbynum=other) as liar:
        assert liar.reader.departure(txid, liar.scan(height).block) is None


def test_a_transfer_without_success_counts_for_nothing(chain: World) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    height = chain.tron.mine()

    def failed(answer: Any) -> Any:
        for transaction in answer.get("transactions", ()):
            transaction["ret"] = [{"contractRet": "OUT_OF_TIME"}]
        return answer

    with twisted(chain, getblockbynum=failed) as other:
        assert other.scan(height).transfers == ()


def test_a_deposit_in_a_long_block_has_a_second_opinion(chain: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block is read whole for it, and may be as long as the scan takes one."""
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    chain.tron.mine()
    scan = chain.scan()
    (paid,) = scan.transfers
    monkeypatch.setattr(http, "KIND_BYTES_MAX", {**http.KIND_BYTES_MAX, Kind.SMALL: 16})

    assert chain.reader.second_opinion(recorded(paid, scan.block.height, scan.block.hash)).same == 1
