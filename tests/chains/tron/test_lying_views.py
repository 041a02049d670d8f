"""One provider's report of prices, energy, permissions and time does not decide if others answer too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from chains.base import (
    COUNT_MAX,
    UNITS_MAX,
    ContradictionError,
    DisownedError,
    ForeignKeyError,
    NotYetError,
    ProviderError,
)
from chains.spending import SpendRefusedError, Window
from chains.tron import accounts, wire
from chains.tron.accounts import Prices
from chains.tron.nodes import tron_providers
from chains.tron.spends.fees import agreed_prices
from devstack.tron.shapes import block_json
from tests.chains.tron.twists import SILENT, Twist, one_of, twisting
from tests.chains.tron.world import OURS, USDT_PAIR, World, payment, world
from tests.peers.tron.chain import BUYER, NETWORK, USDT

DAY_MS = 20 * 3_600_000


def _parameter(name: str, value: object) -> Twist:
    def lie(answer: Any) -> object:
        for entry in answer["chainParameter"]:
            if entry["key"] == name:
                entry["value"] = value
        return answer

    return lie


@pytest.mark.parametrize(
    ("path", "lie"),
    [
        *(
            ("wallet/getchainparameters", _parameter(name, value))
            for name in ("getEnergyFee", "getTransactionFee", "getCreateAccountFee")
            for value in (-(10**9), 10**30)
        ),
        ("wallet/getchainparameters", _parameter("getEnergyFee", 0)),
        ("wallet/getchainparameters", lambda _answer: {"chainParameter": []}),
        ("wallet/triggerconstantcontract", lambda drafted: drafted | {"energy_used": 10**30}),
        ("wallet/triggerconstantcontract", lambda drafted: drafted | {"energy_used": -1}),
        ("wallet/triggerconstantcontract", lambda drafted: drafted | {"energy_used": 0}),
        ("wallet/triggerconstantcontract", lambda drafted: drafted | {"constant_result": ["ff"]}),
        ("wallet/getaccount", lambda drafted: drafted | {"balance": -1}),
        ("wallet/getaccount", lambda drafted: drafted | {"balance": 10**30}),
        ("wallet/getaccount", lambda drafted: drafted | {"address": "41" + BUYER.raw.hex()}),
    ],
)
def test_an_impossible_answer_does_not_count(chain: World, path: str, lie: Twist) -> None:
    intent = payment(1, pair=USDT_PAIR)
    with one_of(1, chain, path, lie) as alone, pytest.raises(ProviderError):
        alone.drafted(intent)
    with one_of(3, chain, path, lie) as outvoted:
        drafted = outvoted.drafted(intent)
    assert drafted.offer.terms["fee_limit"] == chain.drafted(intent).offer.terms["fee_limit"]


def test_numbers_that_no_row_can_hold_are_refused() -> None:
    call = msgspec.convert({"result": {"result": True}, "constant_result": [f"{UNITS_MAX + 1:064x}"]}, accounts.Call)
    node = cast("Any", SimpleNamespace(ask=lambda *_: call))
    with pytest.raises(ContradictionError):
        accounts.balance(node, OURS.address, USDT_PAIR)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"blockNumber": COUNT_MAX + 1}, wire.Info)


def test_a_price_that_one_of_two_makes_up_is_at_most_twice_what_both_told() -> None:
    prices = Prices(energy=210, byte=1_000, activation=1_100_000, free_bytes=600)
    most = Prices(energy=420, byte=2_000, activation=2_200_000, free_bytes=600)
    lie = Prices(energy=10**8, byte=10**8, activation=10**8, free_bytes=10**8)
    two = tron_providers(NETWORK, [SILENT, f"{SILENT}/other"], timeout_s=1)
    assert agreed_prices(two, [prices, prices]) == prices
    for voices in ([prices, lie], [lie, prices]):
        assert agreed_prices(two, voices) == most
    assert agreed_prices(two, [lie]) == replace(most, free_bytes=10**8)
    assert agreed_prices(two, [prices, prices, lie]) == prices


@pytest.mark.parametrize("providers", [2, 3])
def test_no_liar_raises_what_payouts_are_charged_or_holds_them_up(chain: World, providers: int) -> None:
    is_lying = []

    def lie(answer: Any) -> object:
        return _parameter("getEnergyFee", 10**8)(answer) if is_lying else answer

    with one_of(providers, chain, "wallet/getchainparameters", lie) as some:
        honest = some.reader.costs(cap_units=10**9)["USDT"].payout_units
        some.drafted(payment(1, pair=USDT_PAIR))
        is_lying.append(True)
        assert some.reader.costs(cap_units=10**9)["USDT"].payout_units <= 2 * honest
        some.drafted(payment(1, pair=USDT_PAIR))


def _shared(answer: Any) -> object:
    # The recipient has none yet.
    if answer:
        answer["owner_permission"]["keys"].append({"address": "41" + BUYER.raw.hex(), "weight": 1})
    return answer


def _another_threshold(answer: Any) -> object:
    if answer:
        answer["owner_permission"]["threshold"] = 2
    return answer


@pytest.mark.parametrize("lie", [_shared, _another_threshold])
def test_one_of_three_who_says_that_others_may_sign_is_outvoted_and_one_of_two_is_not(chain: World, lie: Twist) -> None:
    with one_of(3, chain, "wallet/getaccount", lie) as outvoted:
        outvoted.drafted(payment(1))
    with one_of(2, chain, "wallet/getaccount", lie) as torn, pytest.raises(ProviderError, match="one provider alone"):
        torn.drafted(payment(1))
    with one_of(1, chain, "wallet/getaccount", lie) as alone, pytest.raises(ForeignKeyError):
        alone.drafted(payment(1))


def _another_day(answer: Any) -> object:
    answer["blockID"] = answer["blockID"][:16] + "ee" * 24
    answer["block_header"]["raw_data"]["timestamp"] += DAY_MS
    return answer


@pytest.mark.parametrize("providers", [2, 3])
def test_no_liar_has_a_payout_wait_for_a_day_of_his_choice(chain: World, providers: int) -> None:
    honest = chain.drafted(payment(1)).claim
    assert isinstance(honest, Window)

    with one_of(providers, chain, "walletsolidity/getnowblock", _another_day) as liar:
        claim = liar.drafted(payment(1)).claim
    assert isinstance(claim, Window)
    assert claim == honest


def test_of_two_the_end_is_the_earlier_one_s(chain: World) -> None:
    honest = chain.drafted(payment(1)).claim
    assert isinstance(honest, Window)

    def lower(liar: Any) -> object:
        block = block_json(chain.tron.chain.blocks[chain.tron.chain.solid_height() - 1])
        block["block_header"]["raw_data"]["timestamp"] += DAY_MS
        return liar | block

    with one_of(2, chain, "walletsolidity/getnowblock", lower) as liar:
        claim = liar.drafted(payment(1)).claim
    assert isinstance(claim, Window)
    assert claim.ends_at == honest.ends_at


def test_a_departure_proved_by_one_provider_counts_though_others_hide_it(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    block = chain.scan().block

    def empty(answer: Any) -> object:
        return {name: value for name, value in answer.items() if name != "transactions"}

    with one_of(2, chain, "wallet/getblockbynum", empty) as torn:
        departure = torn.reader.departure(attempt.txid, block)
    assert departure is not None
    assert (departure.txid, departure.outputs) == (attempt.txid, draft.intent.outputs)
    with one_of(1, chain, "wallet/getblockbynum", empty) as alone, pytest.raises(NotYetError):
        alone.reader.departure(attempt.txid, block)


def test_finality_is_the_lower_of_two_and_the_median_of_three(chain: World) -> None:
    solid = chain.tron.chain.solid_height()

    def other(height: int) -> Twist:
        return lambda _answer: block_json(chain.tron.chain.blocks[height])

    for providers, heights, final in ((2, solid + 2, solid), (2, solid - 2, solid - 2), (3, solid + 2, solid)):
        with one_of(providers, chain, "walletsolidity/getnowblock", other(heights)) as asked:
            assert asked.reader.final_height() == final
    assert world(chain.tron, [chain.tron.url, SILENT]).reader.final_height() is None


def _no_contract(answer: Any) -> object:
    return {name: value for name, value in answer.items() if name != "type"}


def _a_contract(answer: Any) -> object:
    return answer | {"type": "Contract"}


def test_a_majoritys_refusal_counts_against_one_provider(chain: World) -> None:
    with one_of(3, chain, "wallet/getaccount", _no_contract) as three, pytest.raises(SpendRefusedError):
        three.drafted(payment(1, to=USDT))
    with one_of(3, chain, "wallet/getaccount", _a_contract) as three:
        three.drafted(payment(1))


def test_one_refusal_while_the_other_is_silent_fails_no_payout(chain: World) -> None:
    with pytest.raises(ProviderError, match="one provider alone refuses"):
        world(chain.tron, [chain.tron.url, SILENT]).drafted(payment(1, to=USDT))


def test_a_transaction_is_looked_for_where_most_have_it(chain: World) -> None:
    txid = chain.tron.send(chain.tron.transfer(OURS.address, 1))
    height = chain.tron.mine()

    with one_of(3, chain, "wallet/gettransactioninfobyid", lambda answer: answer | {"blockNumber": 10**9}) as three:
        assert three.reader.locate(txid) == height


def test_a_departure_that_two_lack_is_missing_and_that_one_lacks_is_unknown(chain: World) -> None:
    chain.tron.mine()
    block = chain.scan().block

    with twisting(chain) as other:
        with pytest.raises(DisownedError):
            world(chain.tron, [chain.tron.url, other]).reader.departure("00" * 32, block)
        with pytest.raises(ProviderError) as raised:
            world(chain.tron, [other, SILENT]).reader.departure("00" * 32, block)
    assert not isinstance(raised.value, DisownedError)
    # A block of that height, and not the same one.
    chain.tron.chain.reorg(1)
    with twisting(chain) as other, pytest.raises(ProviderError) as raised:
        world(chain.tron, [chain.tron.url, other]).reader.departure("00" * 32, block)
    assert not isinstance(raised.value, DisownedError)


def test_providers_are_counted_that_have_and_that_lack_a_transaction_in_a_block(chain: World) -> None:
    txid = chain.tron.send(chain.tron.transfer(OURS.address, 1))
    chain.tron.mine()
    block = chain.scan().block

    def counted(urls: list[str]) -> tuple[int, int]:
        voices = world(chain.tron, urls).reader.inclusions(block, [txid])[txid]
        return voices.same, voices.other

    with twisting(chain, getblockbynum=lambda answer: answer | {"transactions": []}) as liar, twisting(chain) as other:
        assert counted([chain.tron.url, other, liar]) == (2, 1)
        assert counted([chain.tron.url, SILENT]) == (1, 0)
        chain.tron.chain.reorg(1)
        assert counted([chain.tron.url, other]) == (0, 0), "another block is no voice"


def test_one_of_two_providers_alone_dates_no_block(chain: World) -> None:
    chain.tron.mine()

    def later(answer: Any) -> object:
        if answer["block_header"]["raw_data"].get("number"):
            answer["block_header"]["raw_data"]["timestamp"] += DAY_MS
        return answer

    with twisting(chain, getblockbynum=later) as liar:
        with pytest.raises(ProviderError, match="nobody else tells it"):
            world(chain.tron, [f"{liar}/other", liar]).scan()
        assert world(chain.tron, [liar]).scan().block.time > chain.scan().block.time, "who is alone is believed"


def test_a_block_s_time_is_within_its_id(chain: World) -> None:
    def later(answer: Any) -> object:
        raw = answer["block_header"]["raw_data"]
        return answer | {"block_header": {"raw_data": raw | {"timestamp": raw.get("timestamp", 0) + DAY_MS}}}

    height, truth = chain.tron.chain.head.height, chain.scan().block
    assert truth.is_proved
    with one_of(1, chain, "wallet/getblockbynum", later) as alone:
        assert not alone.scan(height).block.is_proved
    with one_of(2, chain, "wallet/getblockbynum", later) as outvoted:
        for _ in range(2):
            assert outvoted.scan(height).block == truth


@pytest.mark.parametrize("lie", [{"version": -1}, {"txTrieRoot": "zz"}])
def test_a_header_that_cannot_be_written_proves_nothing(chain: World, lie: dict[str, object]) -> None:
    block = block_json(chain.tron.chain.head)
    block["block_header"]["raw_data"].update(lie)
    header = msgspec.convert(block, wire.Header)
    assert not wire.block(header, chain.tron.chain.head.height).is_proved
