"""Lies and accidents that the reader has to survive: one of two providers hides, cuts, invents or contradicts."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from chains.base import (
    NATIVE,
    Agreement,
    Block,
    ContradictionError,
    DisagreementError,
    DisownedError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    WrongChainError,
)
from chains.ton import boc, messages, nodes, requests
from chains.ton.credits import is_departure, mark_of
from chains.ton.nodes import LackedError
from chains.ton.scan.block import JETTONS_ORDINAL, assets_of
from chains.ton.slices import Builder, Slice
from chains.ton.spends import history
from chains.ton.wallet import wallet_id
from devstack.ton.blocks import WHOLE, halves
from tests.chains.ton.reading import (
    CATALOGUE,
    HOT,
    NETWORK,
    OURS,
    SECOND,
    SILENT,
    STRANGER,
    World,
    finds,
    lying,
    pair_of,
    reader_of,
    recorded,
)
from tests.chains.ton.world import LIFE_S, TON, Wallet, coin, issuer, with_state
from tests.peers.json_rpc_node import Refusal
from tests.peers.ours import NOBODY

T = TypeVar("T")

HASH = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo="
YEAR_S = 365 * 86_400


def head_of(chain: World) -> int:
    return chain.simulator.head.id.seqno


# Blocks --------------------------------------------------------------------------------------------------------------


def test_every_payment_is_found_through_splits_and_merges(chain: World) -> None:
    left, right = halves(WHOLE)
    first = head_of(chain) + 1
    paid = [coin(f"0:{place * 16 + 3:02x}{'00' * 31}", TON) for place in range(16)]
    ours = {each.recipient for each in paid}
    chain.simulator.split(WHOLE)
    chain.send(chain.payer, *paid)
    chain.simulator.mine(between=3)
    chain.simulator.split(right)
    chain.send(chain.payer, *paid)
    chain.simulator.merge(*halves(right))
    chain.simulator.mine(between=2)
    chain.simulator.merge(left, right)
    chain.simulator.settle()

    one_by_one = chain.transfers(first, ours)
    scans = chain.reader.scan(first - 1, head_of(chain), finds(ours))

    assert sorted(each.recipient for each in one_by_one) == sorted([*ours, *ours])
    assert [transfer for scan in scans for transfer in scan.transfers] == one_by_one
    assert len({(each.txid, each.ordinal) for each in one_by_one}) == 32


def test_a_shard_block_between_left_out(chain: World) -> None:
    """A provider that leads past a block is not believed, and the next one is asked."""
    seqno = chain.simulator.mine(between=3)
    [first] = chain.nodes[0]._truth("shards", {"seqno": seqno - 1})["shards"]

    def skips(truth: Any, asked: dict[str, Any]) -> Any:
        return truth | {"prev_blocks": [first]} if asked["workchain"] == 0 else truth

    def hides(truth: Any, _asked: dict[str, Any]) -> Any:
        return {"shards": [each | {"shard": str(1 << 62)} for each in truth["shards"]]}

    for lies in ({"getBlockHeader": skips}, {"shards": hides}):
        with lying(chain, **lies) as liar, pytest.raises(ContradictionError):
            liar.scan(seqno)
        with lying(chain, providers=2, **lies) as two:
            scan = two.scan(seqno)
            assert (scan.block, scan.read_by != "") == (chain.scan(seqno).block, True)
            assert scan.read_by == two.reader._providers._nodes[1].mark


def test_a_page_cut_in_silence_is_found_by_the_other_provider(chain: World) -> None:
    """No proof shows that transactions are missing: the second reading is another provider's."""
    first = chain.pay(coin(OURS.address, TON), coin(SECOND, TON))

    def cut(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": []}

    with lying(chain, providers=2, getBlockTransactionsExt=cut) as two:
        scan = next(each for each in two.scans(first) if chain.scan(each.block.height).transfers)
        again = two.reader.reread(scan.block.height, finds({OURS.address, SECOND}), but_by=scan.read_by)
        assert scan.transfers == ()
        assert again is not None
        assert {each.recipient for each in again.transfers} == {OURS.address, SECOND}


@pytest.mark.parametrize("change", ["twice", "reversed", "of another shard"])
def test_transactions_out_of_order_are_not_read(chain: World, change: str) -> None:
    chain.simulator.split(WHOLE)
    chain.simulator.mine()
    first = chain.pay(coin("0:01" + "00" * 31, TON), coin("0:02" + "00" * 31, TON), coin("0:f2" + "00" * 31, TON))
    other = chain.nodes[0]._truth("shards", {"seqno": head_of(chain)})["shards"]

    def disorder(truth: Any, asked: dict[str, Any]) -> Any:
        listed = truth["transactions"]
        if change == "twice":
            return truth | {"transactions": [*listed, *listed]}
        if change == "reversed":
            return truth | {"transactions": listed[::-1]}
        [elsewhere] = [each["shard"] for each in other if each["shard"] != asked["shard"]]
        return chain.nodes[0]._truth("getBlockTransactionsExt", asked | {"shard": elsewhere}) | {"id": truth["id"]}

    with (
        lying(chain, getBlockTransactionsExt=disorder) as liar,
        pytest.raises(ContradictionError, match="out of order"),
    ):
        liar.transfers(first)


@pytest.mark.parametrize("data", ["", "????", "te6", "te6ccgEBAQEAAgAAAA==", "tèst"])
def test_bytes_that_are_no_transaction_are_not_read(chain: World, data: str) -> None:
    first = chain.pay(coin(OURS.address, TON))

    def rubbish(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": [each | {"data": data} for each in truth["transactions"]]}

    with lying(chain, getBlockTransactionsExt=rubbish) as liar, pytest.raises(ProviderError):
        liar.transfers(first)


def test_the_newest_block_whose_shards_a_node_lacks_is_waited_for(chain: World) -> None:
    lacked = Refusal(500, "LITE_SERVER_NOTREADY: block is not applied")
    head = chain.simulator.mine(3)
    for method in ("shards", "getBlockTransactionsExt", "getBlockHeader"):
        with lying(chain, **{method: lacked}) as late:
            assert late.reader.scan(head - 1, head, NOBODY) == ()
            with pytest.raises(LackedError):
                late.reader.scan(head - 3, head, NOBODY)
            assert late.reader.reread(head, NOBODY) is None


def test_another_chain_at_the_provider(chain: World) -> None:
    def other(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"init": truth["init"] | {"root_hash": HASH}}

    with lying(chain, providers=2, getMasterchainInfo=other) as two:
        assert two.reader.identify() == [HASH, NETWORK.chain_identity]
        scan = two.scan(head_of(chain))
        assert two.reader.agreement(scan.block.height, scan.block.hash) == Agreement(same=1, other=0)
    with lying(chain, getMasterchainInfo=other) as alone, pytest.raises(WrongChainError):
        alone.scan(head_of(chain))


def test_a_lagging_provider_is_not_waited_for(chain: World) -> None:
    head = chain.simulator.mine(60)
    with lying(chain, providers=2) as two:
        two.nodes[0].lag(50)
        assert two.reader.head() == head
        assert (two.reader.final_height(), two.scan(head).block.height) == (head - 50, head)
    with lying(chain) as alone:
        alone.nodes[0].lag(50)
        assert alone.reader.scan(head - 1, head, NOBODY) == ()


def test_a_head_that_is_invented_does_not_count(chain: World) -> None:
    head = head_of(chain)

    def ahead(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"last": truth["last"] | {"seqno": head + 1_000}}

    with lying(chain, providers=2, getMasterchainInfo=ahead) as liar:
        assert (liar.reader.final_height(), liar.reader.head()) == (head, head)
    single = reader_of([chain.usd.jetton], [chain.nodes[0].url, SILENT])
    assert single.final_height() is None


def test_the_time_of_a_payment_takes_no_other_time_of_its_block(chain: World) -> None:
    first = chain.pay(coin(OURS.address, TON))
    paid = next(scan for scan in chain.scans(first) if scan.transfers)

    def older(truth: Any, asked: dict[str, Any]) -> Any:
        return truth | {"gen_utime": truth["gen_utime"] - 900} if asked["workchain"] == -1 else truth

    with lying(chain, providers=2, getBlockHeader=older) as liar:
        with pytest.raises(DisagreementError):
            liar.scan(paid.block.height)
        # A block without a payment needs no time.
        empty = liar.reader.scan(paid.block.height - 1, paid.block.height, NOBODY)
        assert empty[0].transfers == ()
    with lying(chain, getBlockHeader=older) as alone:
        assert paid.block.time - alone.scan(paid.block.height).block.time == timedelta(seconds=900)


def test_a_block_upon_another_than_its_own_provider_has_is_refused(chain: World) -> None:
    head = chain.simulator.mine(3)

    def other(truth: Any, asked: dict[str, Any]) -> Any:
        if asked["workchain"] == -1 and asked["seqno"] == head:
            truth["prev_blocks"][0]["root_hash"] = HASH
        return truth

    before = chain.reader.block(head - 1)
    assert isinstance(before, Block)
    with lying(chain, getBlockHeader=other) as liar:
        with pytest.raises(ProviderError, match="does not stand upon"):
            liar.reader.scan(head - 1, head, NOBODY, upon=before.hash)
        with pytest.raises(ContradictionError, match="not upon"):
            liar.reader.scan(head - 3, head, NOBODY)
    assert chain.reader.scan(head - 1, head, NOBODY, upon="ab" * 32)[0].block.parent_hash == before.hash


def test_far_behind_several_blocks_come_at_once_and_in_order(chain: World) -> None:
    before = head_of(chain)
    head = chain.simulator.mine(30)
    scans = chain.reader.scan(before, head, NOBODY)
    assert [scan.block.height for scan in scans] == list(range(before + 1, before + 9))
    assert all(scan.read_by for scan in scans)


def test_all_accounts_of_several_blocks_are_asked_for_once(chain: World) -> None:
    before, asked = head_of(chain), list[set[str]]()
    for _ in range(3):
        chain.send(chain.payer, coin(STRANGER, TON))
    chain.simulator.settle()

    class Counts(Ours):
        def addresses(self, seen: Any) -> Any:
            asked.append(set(seen))
            return ()

        def coins(self, _seen: Any) -> Any:
            return ()

    chain.reader.scan(before, head_of(chain), Counts())
    assert asked == [{chain.payer.address, STRANGER}]


# Payments ------------------------------------------------------------------------------------------------------------


def test_no_notification(chain: World) -> None:
    """Jettons count by the wallet that they came to, whether or not its owner is notified."""
    for forward in (0, TON // 50):
        first = chain.pay(chain.jettons(OURS.address, 250, forward=forward))
        [transfer] = chain.transfers(first)
        assert (transfer.currency, transfer.units, transfer.recipient) == ("USDT", 250, OURS.address)
        assert (transfer.ordinal, transfer.sender, transfer.mark) == (
            JETTONS_ORDINAL, chain.payer.address, mark_of(7),
        )  # fmt: skip


def test_a_forged_notification_is_no_payment_of_jettons(chain: World) -> None:
    body = Builder().uint(0x7362D09C, 32).uint(7, 64).coins(10**9).address(chain.payer.address).bit(0).end()
    forged = messages.internal(OURS.address, TON // 100, bounce=False, body=body)
    assert chain.credits(forged) == [("TON", TON // 100, OURS.address)]


def test_a_wallet_of_another_master(chain: World) -> None:
    other = issuer(chain.payer, "usd")
    mint = other.mint(OURS.address, 500)
    assert other.jetton.master != chain.usd.jetton.master
    first = chain.pay(mint)
    assert [each for each in chain.transfers(first) if each.currency != "TON"] == []
    # The master's notice is coin at most.
    assert chain.simulator.account(other.jetton.wallet(OURS.address), head_of(chain)).status == "active"


def test_a_namesake_jetton_called_gram(chain: World) -> None:
    gram = issuer(chain.payer, "GRAM")
    first = chain.pay(gram.mint(chain.payer.address, 10**9))
    sent = chain.pay(gram.transfer(chain.payer, OURS.address, 10**9, forward=1))
    assert [(each.currency, each.units) for each in chain.transfers(first)] == [("TON", 1)]
    assert sent > first


def test_a_state_without_its_code_or_by_a_stranger_is_no_payment(chain: World) -> None:
    """Anyone can bring the state of our jetton wallet: its code refuses any sender but a wallet of the same master."""
    wallet = chain.usd.jetton.wallet(OURS.address)
    body = Builder().uint(0x178D4519, 32).uint(7, 64).coins(10**9).address(chain.payer.address).address("")
    forged = messages.internal(wallet, TON // 10, bounce=True, body=body.coins(0).bit(0).end())
    assert chain.credits(with_state(forged, chain.usd.jetton.state(OURS.address))) == []
    assert chain.simulator.ran[wallet][-1].transaction.aborted


def test_a_payment_that_bounces_is_none(chain: World) -> None:
    assert chain.credits(coin(OURS.address, TON, bounce=True)) == []
    assert chain.credits(coin(OURS.address, TON)) == [("TON", TON, OURS.address)]


def test_a_decoy_does_not_hide_the_owner_of_jettons(chain: World) -> None:
    """The payer's memo may hold the data of another owner's wallet: all that the bytes show are looked up."""
    decoy = chain.usd.jetton.state(STRANGER).data
    text = (b"x" + decoy.data * 2).hex()
    assert chain.credits(chain.jettons(OURS.address, 3, forward=1, memo=text)) == [("USDT", 3, OURS.address)]


def test_storage_debt(chain: World) -> None:
    """Rent of years is a charge of the address and not the payer's; the payment counts whole."""
    chain.simulator.give(OURS.address, TON // 20)
    chain.simulator.mine()
    OURS.seqno = 0
    chain.send(OURS, coin(STRANGER, TON // 25))
    chain.simulator.settle()
    chain.simulator.advance(8 * YEAR_S)
    before = chain.simulator.account(OURS.address, head_of(chain)).units
    first = chain.pay(coin(OURS.address, TON))
    [scan] = [each for each in chain.scans(first) if each.transfers]
    [transfer], [charge] = scan.transfers, scan.charges
    assert (transfer.units, transfer.recipient, charge.address) == (TON, OURS.address, OURS.address)
    assert charge.units > before
    assert chain.simulator.account(OURS.address, head_of(chain)).units == before + TON - charge.units


def test_books_follow_every_balance(chain: World) -> None:
    """Payments less charges are the change of an address that sends nothing."""
    first = chain.pay(
        coin(SECOND, TON, memo="one"), coin(SECOND, TON, bounce=True), chain.jettons(SECOND, 9, forward=TON // 50),
    )  # fmt: skip
    scans = chain.scans(first)
    came = sum(each.units for scan in scans for each in scan.transfers if each.currency == "TON")
    charged = sum(each.units for scan in scans for each in scan.charges if each.address == SECOND)
    # Rent, if a second has passed between two of them.
    rent = sum(each.transaction.storage_fees for each in chain.simulator.ran[SECOND])
    assert charged == rent - TON // 50
    assert chain.simulator.account(SECOND, head_of(chain)).units == came - charged == TON + TON // 50 - rent


def test_a_jetton_whose_wallets_are_not_known_is_not_offered() -> None:
    with pytest.raises(ValueError, match="not known"):
        assets_of([pair_of(issuer(Wallet("admin")).jetton)])
    assert assets_of(CATALOGUE.pairs_on("ton")).native == "TON"


# Second opinions -----------------------------------------------------------------------------------------------------


def paid_by(chain: World, *, jettons: bool) -> Recorded:
    first = chain.pay(chain.jettons(OURS.address, 250) if jettons else coin(OURS.address, TON))
    return recorded(next(scan for scan in chain.scans(first) if scan.transfers))


@pytest.mark.parametrize("jettons", [False, True])
def test_a_deposit_is_confirmed_by_its_own_transaction(chain: World, *, jettons: bool) -> None:
    deposit = paid_by(chain, jettons=jettons)
    assert chain.reader.second_opinion(deposit) == Agreement(same=1, other=0)
    for changes in (
        {"units": deposit.units + 1}, {"ordinal": NATIVE if jettons else JETTONS_ORDINAL}, {"recipient": SECOND},
        {"txid": "ab" * 32}, {"block_hash": "cd" * 32}, {"height": deposit.height - 1},
        {"currency": "TON" if jettons else "USDT"},
    ):  # fmt: skip
        other = dataclasses.replace(deposit, **changes)
        assert chain.reader.second_opinion(other) == Agreement(same=0, other=1)


def test_one_of_two_providers_denies_a_deposit(chain: World) -> None:
    deposit = paid_by(chain, jettons=False)

    def emptied(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": []}

    with lying(chain, providers=2, getBlockTransactionsExt=emptied) as two:
        assert two.reader.second_opinion(deposit) == Agreement(same=1, other=1)
    with lying(chain, providers=3, getBlockTransactionsExt=emptied) as three:
        assert three.reader.second_opinion(deposit) == Agreement(same=2, other=1)


def test_two_blocks_at_one_height_have_no_majority(chain: World) -> None:
    head = head_of(chain)
    honest = chain.scan(head).block

    def other(truth: Any, asked: dict[str, Any]) -> Any:
        if asked["workchain"] == -1 and asked["seqno"] == head:
            truth["id"]["root_hash"] = HASH
        return truth

    with lying(chain, providers=2, getBlockHeader=other) as two:
        assert two.reader.agreement(head, honest.hash) == Agreement(same=1, other=1)
    with lying(chain, providers=3, getBlockHeader=other) as three:
        assert three.reader.agreement(head, honest.hash) == Agreement(same=2, other=1)


def test_nothing_is_located_without_an_index(chain: World) -> None:
    assert chain.reader.locate("ab" * 32) is None


# Departures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(chain: World) -> int:
    """Return the block in which the hot wallet sends."""
    HOT.seqno = 0
    chain.simulator.give(HOT.address, 100 * TON)
    chain.simulator.mine()
    return chain.send(HOT, coin(STRANGER, TON))


def test_a_departure_takes_more_than_one_provider_of_three(chain: World, sent: int) -> None:
    scan = chain.scan(sent)
    ((_, txid),) = scan.sent

    def hidden(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": []}

    with lying(chain, providers=2, getBlockTransactionsExt=hidden) as two:
        departure = two.reader.departure(txid, scan.block)
        assert departure is not None
        assert departure.txid == txid
    with lying(chain, providers=3, getBlockTransactionsExt=hidden) as three:
        three.nodes[1].lies["getBlockTransactionsExt"] = hidden
        with pytest.raises(DisownedError):
            three.reader.departure(txid, scan.block)
    with pytest.raises(DisownedError):
        chain.reader.departure("ab" * 32, scan.block)


def test_a_wallet_without_an_owner_leaves_by_the_hash_of_its_transaction(chain: World, sent: int) -> None:
    """Every request is listed: addresses that no row gave away are among them, and are read when they are ours."""
    ((address, txid),) = chain.scan(sent, ours=()).sent
    own = chain.simulator.ran[HOT.address][-1].transaction
    assert (address, txid) == (HOT.address, own.hash.hex())
    block = chain.reader.block(sent)
    assert isinstance(block, Block)
    departure = chain.reader.departure(txid, block)
    assert departure is not None
    assert (departure.sender, departure.txid) == (HOT.address, own.incoming.normalized_hash.hex())


def test_a_request_through_another_contract_is_a_departure(chain: World, sent: int) -> None:
    number = wallet_id(is_test=False)
    made = requests.request(
        number, seqno=1, valid_until=chain.simulator.now() + LIFE_S, messages=[coin(STRANGER, TON).message()]
    ).cell()
    # The operation of requests that another contract brings.
    parts = bytes.fromhex("73696e74") + made.data[4:]
    inner = with_data(made, parts)
    body = requests.signed(inner, HOT.key.sign(inner.hash))
    height = chain.deliver(STRANGER, messages.internal(HOT.address, 3 * TON, bounce=True, body=body))
    scan = chain.scan(height)
    own = chain.simulator.ran[HOT.address][-1].transaction
    assert is_departure(own)
    assert (HOT.address, own.hash.hex()) in scan.sent
    departure = chain.reader.departure(own.hash.hex(), scan.block)
    assert departure is not None
    assert (departure.is_transfer, departure.slot, departure.outputs[0].units) == (False, 1, TON)
    # The coin that came along is a payment, and nothing is charged twice. It counts towards the fee.
    assert ([each.units for each in scan.transfers], scan.charges) == ([3 * TON], ())
    assert departure.fee_units == 3 * TON - own.change - TON > 0
    assert sent < height


def with_data(cell: Any, data: bytes) -> Any:
    """Return a cell with other bytes of the same length."""
    return type(cell)(data, cell.bits, cell.refs)


def test_a_request_for_another_network_proves_nothing(chain: World, sent: int) -> None:
    """Our keys are the same on test networks: a request names the number of its own."""
    scan = chain.scan(sent)
    ((_, txid),) = scan.sent
    own = chain.simulator.ran[HOT.address][-1]
    test = requests.request(
        wallet_id(is_test=True), seqno=0, valid_until=2**31, messages=[coin(STRANGER, TON).message()]
    )
    body = requests.signed(test.cell(), HOT.key.sign(test.cell().hash))
    message = messages.external(HOT.address, body, HOT.state)
    forged = with_incoming(own.cell, message)
    named = messages.read(message).normalized_hash.hex()

    def invented(truth: Any, _asked: dict[str, Any]) -> Any:
        changed = copy.deepcopy(truth)
        for entry in changed["transactions"]:
            entry["data"] = boc.write_base64(forged)
        return changed

    with lying(chain, getBlockTransactionsExt=invented) as liar:
        assert liar.reader.departure(named, scan.block) is None
    assert chain.reader.departure(txid, scan.block) is not None


def test_bytes_that_our_key_did_not_sign_prove_nothing(chain: World, sent: int) -> None:
    """A provider shows a request that another key signed, in the place of the true one."""
    scan = chain.scan(sent)
    own = chain.simulator.ran[HOT.address][-1]
    made = requests.request(
        wallet_id(is_test=False), seqno=0, valid_until=2**31, messages=[coin(STRANGER, 7).message()]
    )
    thief = Wallet("thief")
    body = requests.signed(made.cell(), thief.key.sign(made.cell().hash))
    message = messages.external(HOT.address, body, HOT.state)
    forged = boc.write_base64(with_incoming(own.cell, message))

    def invented(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": [each | {"data": forged} for each in truth["transactions"]]}

    with lying(chain, getBlockTransactionsExt=invented) as liar:
        assert liar.reader.departure(messages.read(message).normalized_hash.hex(), scan.block) is None


def test_a_request_that_changes_the_wallet_is_no_transfer(chain: World, sent: int) -> None:
    """A thief of the key may let another contract send, along with a payment like ours."""
    number = wallet_id(is_test=False)
    plain = requests.request(
        number, seqno=1, valid_until=chain.simulator.now() + LIFE_S, messages=[coin(STRANGER, 7).message()]
    ).cell()
    # The last bit says that there are changes: add a contract that may send.
    parts = Slice(plain)
    changed = Builder().uint(parts.uint(plain.bits - 1), plain.bits - 1).bit(1).uint(0x02, 8).address(STRANGER)
    cell = changed.ref(plain.refs[0]).end()
    message = messages.external(HOT.address, requests.signed(cell, HOT.key.sign(cell.hash)))
    chain.simulator.broadcast(message)
    height = chain.simulator.mine()
    departure = chain.reader.departure(messages.read(message).normalized_hash.hex(), chain.scan(height).block)
    assert departure is not None
    assert (departure.is_transfer, departure.slot, sent < height) == (False, 1, True)


def test_a_node_with_another_block_has_no_voice_about_a_departure(chain: World, sent: int) -> None:
    block = dataclasses.replace(chain.scan(sent).block, hash="ab" * 32)
    with pytest.raises(NotYetError):
        chain.reader.departure("cd" * 32, block)


def test_balances_take_as_many_witnesses_as_are_asked_for(chain: World) -> None:
    block = chain.scan(head_of(chain)).block
    place = Place(address=STRANGER, pair=None)
    alone = reader_of([chain.usd.jetton], [chain.nodes[0].url, SILENT])
    assert alone.snapshot([place], height=block.height, block_hash=block.hash).units == (0,)
    with pytest.raises(NotYetError, match="too few"):
        alone.snapshot([place], height=block.height, block_hash=block.hash, witnesses=2)


def with_incoming(transaction: Any, message: Any) -> Any:
    """Return a transaction's cell with another message that came in."""
    inside = transaction.refs[0]
    changed = type(inside)(inside.data, inside.bits, (message, *inside.refs[1:]))
    return type(transaction)(transaction.data, transaction.bits, (changed, *transaction.refs[1:]))


def test_numbers_are_found_without_old_states(chain: World, sent: int) -> None:
    heights = [sent, *(chain.send(HOT, coin(STRANGER, 1)) for _ in range(2))]
    head = chain.simulator.mine(5)

    def pruned(truth: Any, asked: dict[str, Any]) -> Any:
        return Refusal(500, "LITE_SERVER_UNKNOWN: cannot load state: not in db") if "seqno" in asked else truth

    with lying(chain, getAddressInformation=pruned) as forgetful:
        used = [forgetful.reader.used_counters(HOT.address, height) for height in (sent - 1, *heights, head)]
        assert used == [0, 1, 2, 3, 3]
        assert [
            height
            for number in range(3)
            for height in forgetful.reader.counter_heights(HOT.address, number, sent - 1, head)
        ] == heights
        for number, low, high in ((1, sent - 1, sent), (1, heights[1], head), (3, sent - 1, head)):
            with pytest.raises(ProviderError, match="did not take"):
                forgetful.reader.counter_heights(HOT.address, number, low, high)


def test_numbers_are_found_though_a_stranger_sends_very_much(
    chain: World, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old states are lost, and each look goes on where one stopped."""
    monkeypatch.setattr(nodes, "HISTORY_PAGE", 5)
    monkeypatch.setattr(history, "PAGES_MAX", 2)
    heights = [sent, chain.send(HOT, coin(STRANGER, 1))]
    for _ in range(30):
        chain.simulator.give(HOT.address, 1)
    head = chain.simulator.mine(3)

    def patient(ask: Callable[[], T]) -> T:
        for _ in range(5):
            with suppress(NotYetError):
                return ask()
        return ask()

    def pruned(truth: Any, asked: dict[str, Any]) -> Any:
        return Refusal(500, "LITE_SERVER_NOTREADY: state is already pruned") if "seqno" in asked else truth

    with lying(chain, getAddressInformation=pruned) as forgetful:
        with pytest.raises(NotYetError, match="more transactions"):
            forgetful.reader.used_counters(HOT.address, head)
        used = [
            patient(partial(forgetful.reader.used_counters, HOT.address, height))
            for height in (sent - 1, *heights, head)
        ]
        assert used == [0, 1, 2, 2]
        taken = [patient(partial(forgetful.reader.counter_heights, HOT.address, n, sent - 1, head)) for n in (0, 1)]
        assert [[*each] for each in taken] == [[height] for height in heights]


def test_a_provider_may_be_distrusted(chain: World) -> None:
    with lying(chain, providers=2) as two:
        scan = two.scan(head_of(chain))
        two.reader.distrust(scan.read_by, "shows another departure")
        assert two.scan(head_of(chain)).read_by != scan.read_by


def test_features_are_listed_in_the_order_of_providers(chain: World) -> None:
    chain.simulator.mine(3)
    lacked = Refusal(404, "method not departure")
    with lying(chain, providers=2, getBlockTransactionsExt=lacked) as two:
        first, second = two.reader.lacking()
        assert not isinstance(first, ProviderError)
        assert ("no block can be read" in first[0], second) == (True, [])
    silent = reader_of([chain.usd.jetton], [SILENT, chain.nodes[0].url]).lacking()
    assert isinstance(silent[0], ProviderError)
    assert silent[1] == []
