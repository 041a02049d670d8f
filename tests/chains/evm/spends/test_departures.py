"""Departures of our keys, read whole from a real chain: the bytes are the proof, and no node can invent one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from chains.base import AbsentError, Block, ContradictionError, DisownedError, NotYetError, ProviderError
from chains.evm import wire
from chains.evm.reader import EvmReader
from chains.evm.spends import departures
from chains.evm.spends.library import eth
from chains.evm.spends.terms import gas_offer
from chains.one_transfer import departed_and_included
from core.addresses.evm import keccak256
from tests.chains.conftest import CATALOGUE, OURS
from tests.chains.evm.spends.world import HOT, World
from tests.peers.ours import NOBODY, scan_of


def reader(world: World) -> EvmReader:
    return EvmReader(CATALOGUE.networks["ethereum"], CATALOGUE.pairs_on("ethereum"), world.spender.providers)


def mined(world: World) -> Block:
    block = reader(world).block(world.node.mine())
    assert block is not None
    return block


@pytest.mark.parametrize("is_legacy", [True, False])
@pytest.mark.parametrize("currency", ["USDT", None])
def test_a_departure_is_read_with_its_bytes(alone: World, currency: str | None, *, is_legacy: bool) -> None:
    intent = alone.intent(1_000_000, currency=currency)
    fee = alone.quote(intent)
    offered = gas_offer(**fee.terms | {"tip_units": fee.terms["price_units"]}) if is_legacy else fee
    attempt = alone.sign(intent, offer=offered)
    alone.spender.send(attempt.raw)
    block = mined(alone)
    shown = reader(alone).departure(attempt.txid, block)
    assert shown is not None
    assert (shown.raw, shown.txid, shown.slot) == (attempt.raw, attempt.txid, 0)
    assert (shown.sender, shown.pair, shown.outputs) == (HOT, intent.pair, intent.outputs)
    assert (shown.is_transfer, shown.failed, shown.height, shown.block_hash) == (
        True,
        frozenset(),
        block.height,
        block.hash,
    )
    assert (shown.offer.terms["gas_limit"], shown.offer.terms["price_units"], shown.offer.terms["tip_units"]) == (
        offered.terms["gas_limit"], offered.terms["price_units"], offered.terms["tip_units"],
    )  # fmt: skip
    assert shown.fee_units == alone.fate(intent, attempt).fee_units


def test_the_scan_names_the_sender_of_each_transaction(alone: World) -> None:
    attempt = alone.sign(alone.intent(5))
    alone.spender.send(attempt.raw)
    block = mined(alone)
    single = scan_of(reader(alone), block.height, NOBODY)
    again = reader(alone).reread(block.height, NOBODY)
    assert single is not None
    assert again is not None
    assert single.sent == again.sent == ((HOT, attempt.txid),)


def test_a_call_of_another_kind_is_no_transfer_and_a_revert_has_no_effect(alone: World) -> None:
    alone.node.ask("anvil_setCode", OURS, "0x60006000fd")
    attempt = alone.sign(
        alone.intent(7, currency=None), offer=gas_offer(gas_limit=50_000, price_units=10**11, tip_units=10**9)
    )
    alone.spender.send(attempt.raw)
    departure = reader(alone).departure(attempt.txid, mined(alone))
    assert departure is not None
    assert (departure.is_transfer, departure.failed) == (True, {0})


def test_a_transaction_without_our_signature_is_no_departure(alone: World) -> None:
    """A node that acts for any sender, as a lying one does."""
    alone.node.ask("anvil_setBalance", HOT, hex(10**18))
    txid = alone.node.send(OURS, value=5, sender=HOT)
    assert reader(alone).departure(txid, mined(alone)) is None


@pytest.mark.parametrize("is_legacy", [True, False])
def test_our_transaction_for_another_chain_is_no_departure(alone: World, *, is_legacy: bool) -> None:
    """Our addresses are the same on every EVM network."""
    intent = alone.intent(5)
    fee = alone.quote(intent)
    offer = gas_offer(**fee.terms | {"tip_units": fee.terms["price_units"]}) if is_legacy else fee
    attempt = alone.sign(intent, offer=offer)
    alone.spender.send(attempt.raw)
    block = mined(alone)
    network = replace(CATALOGUE.networks["ethereum"], chain_identity="137")
    other = EvmReader(network, CATALOGUE.pairs_on("ethereum"), alone.spender.providers)

    assert other.departure(attempt.txid, block) is None
    assert reader(alone).departure(attempt.txid, block) is not None


def test_more_nodes_with_the_block_alone_outvote_a_proof(alone: World) -> None:
    attempt = alone.sign(alone.intent(5))
    alone.spender.send(attempt.raw)
    shown = reader(alone).departure(attempt.txid, mined(alone))
    assert shown is not None
    absent, silent = AbsentError("none"), NotYetError("lags")

    assert departed_and_included([shown, silent]) == shown
    assert departed_and_included([absent, shown]) == shown
    assert departed_and_included([replace(shown, fee_units=1), shown, shown, absent]) == shown
    for answers in ([shown, absent, absent], [None, absent], [absent]):
        with pytest.raises(DisownedError):
            departed_and_included(answers)
    assert departed_and_included([None, silent]) is None
    with pytest.raises(NotYetError):
        departed_and_included([silent])


def test_a_transaction_of_another_block_is_refused(alone: World) -> None:
    attempt = alone.sign(alone.intent(5))
    alone.spender.send(attempt.raw)
    block = mined(alone)
    with pytest.raises(ProviderError, match="another block"):
        reader(alone).departure(attempt.txid, replace(block, hash="0x" + "0" * 64))


def transaction_with(**fields: object) -> dict[str, object]:
    return {
        "from": HOT, "to": OURS, "nonce": "0x0", "input": "0x", "gas": "0x5208", "v": "0x1", "s": "0x2",
        "chainId": "0x1", **fields,
    }  # fmt: skip


class Liar:
    def __init__(self, body: dict[str, object]) -> None:
        self.body = body
        self.asked: list[str] = []

    def call(self, method: str, _params: Sequence[object], kind: type[Any]) -> Any:
        self.asked.append(method)
        return msgspec.convert(self.body, kind)

    call_or_none = call

    def transaction(self) -> Any:
        return eth(self).get_transaction("0x" + "00" * 32)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["0x1", "0x3"])
def test_other_kinds_are_encoded_or_left_alone(kind: str) -> None:
    body = transaction_with(
        r="0x1", type=kind, value="0x80", input="0x" + "ab" * 60, gasPrice="0x5",
        accessList=[{"address": OURS, "storageKeys": ["0x" + "00" * 32]}],
    )  # fmt: skip
    raw = departures.encode(Liar(body).transaction())
    assert (raw[:1] == b"\x01") if kind == "0x1" else raw == b""


def test_bytes_of_another_signer_are_not_ours() -> None:
    """A node that lies can make up everything but our signature."""
    liar = Liar(
        transaction_with(
            r="0x" + "11" * 32, s="0x" + "22" * 32, type="0x2", value="0x5", maxFeePerGas="0x5",
            maxPriorityFeePerGas="0x1",
        )
    )  # fmt: skip
    txid = "0x" + keccak256(departures.encode(liar.transaction())).hex()
    block = Block(height=1, hash="0x" + "0" * 64, parent_height=0, parent_hash="0x" + "1" * 64, time=datetime.now(UTC))
    liar.asked.clear()
    assert departures.read(liar, txid, block, {}, chain_id=1) is None
    assert liar.asked == ["eth_getTransactionByHash"]


def sent_in(world: World) -> int:
    """Send the first transaction of the wallet, between other blocks; return the height of its block."""
    world.node.mine()
    world.spender.send(world.sign(world.intent(5)).raw)
    height = world.node.mine()
    world.node.mine()
    return height


@pytest.mark.parametrize("lie", ["0x0", "0x9"])
def test_one_of_three_providers_hides_and_invents_no_used_nonce(trio: World, lie: str) -> None:
    height = sent_in(trio)
    used = int(trio.node.ask("eth_getTransactionCount", HOT, hex(height)), 16)
    trio.providers[0].lies["eth_getTransactionCount"] = lie
    assert reader(trio).used_counters(HOT, height) == used


def test_all_blocks_that_providers_name_for_a_nonce_are_returned_the_median_first(trio: World) -> None:
    height = sent_in(trio)
    used = int(trio.node.ask("eth_getTransactionCount", HOT, hex(height)), 16)
    assert list(reader(trio).counter_heights(HOT, used - 1, 0, height + 1)) == [height]
    trio.providers[0].lies["eth_getTransactionCount"] = hex(used)
    assert list(reader(trio).counter_heights(HOT, used - 1, 0, height + 1)) == [height, 1]


def test_a_second_reading_of_one_block_is_asked_of_the_next_provider_if_one_shows_another(trio: World) -> None:
    height = sent_in(trio)
    block = reader(trio).block(height)
    assert isinstance(block, Block)

    def replaced(truth: Any, params: list[Any]) -> Any:
        if params != [hex(height), True]:
            return truth
        lie = truth | {"extraData": "0x1234", "transactions": [], "gasUsed": "0x0"}
        return lie | {"hash": wire.proved_hash(msgspec.convert(lie, wire.Header))}

    trio.providers[1].lies["eth_getBlockByNumber"] = replaced
    again = reader(trio).reread(height, NOBODY, block_hash=block.hash)
    assert again is not None
    assert again.block.hash == block.hash
    with pytest.raises(ContradictionError):
        reader(trio).reread(height, NOBODY, block_hash="0x" + "ab" * 32)


def test_a_second_reading_is_asked_of_the_last_reader_only_if_no_other_answers(trio: World) -> None:
    height = sent_in(trio)
    first = reader(trio).reread(height, NOBODY)
    assert first is not None
    other = reader(trio).reread(height, NOBODY, last=first.read_by)
    assert other is not None
    assert other.read_by != first.read_by
