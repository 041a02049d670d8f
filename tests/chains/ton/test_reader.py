"""The scan of a TON network, its balances, numbers and departures, from providers of which one may lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chains.base import CHARGE, AbsentError, Agreement, DisagreementError, NotYetError, Place, ProviderError, Recorded
from chains.spending import Departure
from chains.ton import boc, messages, requests
from chains.ton.cells import Cell
from chains.ton.credits import mark_of
from chains.ton.requests import Action
from chains.ton.slices import Builder
from chains.ton.wallet import wallet_id
from tests.chains.ton.reading import (
    COIN,
    HOT,
    KNOWN,
    OURS,
    SECOND,
    STRANGER,
    World,
    finds,
    lying,
    pair_of,
    recorded,
    world,
)
from tests.chains.ton.world import LIFE_S, TON, Wallet, coin
from tests.peers.json_rpc_node import Refusal

OTHER = "0:" + "66" * 32
# The body by which contracts return the coin that is left over.
REST = Builder().uint(0xD53276DB, 32).uint(7, 64).end()


@pytest.fixture
def chain() -> Iterator[World]:
    with world() as made:
        yield made


def give_hot(chain: World, units: int = 100 * TON) -> None:
    HOT.seqno = 0
    chain.simulator.give(HOT.address, units)
    chain.simulator.mine()


def charges(chain: World, first: int) -> list[tuple[str, int]]:
    return [(charge.address, charge.units) for scan in chain.scans(first) for charge in scan.charges]


def charge_of(chain: World, first: int) -> Recorded:
    """Return the only charge of the blocks from one on that a row has."""
    block = next(scan for scan in chain.scans(first) if scan.charges)
    [charge] = block.charges
    return Recorded(
        txid=charge.txid, ordinal=CHARGE, currency="TON", units=charge.units, recipient=charge.address,
        height=block.block.height, block_hash=block.block.hash,
    )  # fmt: skip


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_page_cut(chain: World) -> None:
    """A node shows one transaction a page: all are read. A page that does not go on contradicts itself."""
    paid = [coin(address, TON).message() for address in (OURS.address, SECOND, STRANGER)]
    first = chain.pay(*paid)

    def cut(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"transactions": truth["transactions"][:1], "incomplete": len(truth["transactions"]) > 1}

    with lying(chain, getBlockTransactionsExt=cut) as liar:
        assert liar.transfers(first) == chain.transfers(first)
    endless = lambda truth, _asked: truth | {"incomplete": True}  # noqa: E731
    with lying(chain, getBlockTransactionsExt=endless) as liar, pytest.raises(ProviderError, match="no last page"):
        liar.transfers(first)


def test_coin_between_our_own_addresses_is_no_payment(chain: World) -> None:
    give_hot(chain)
    first = chain.send(HOT, coin(OURS.address, TON), coin(STRANGER, TON))
    chain.simulator.settle()
    assert chain.transfers(first) == []
    assert [(sender, len(txid)) for scan in chain.scans(first) for sender, txid in scan.sent] == [(HOT.address, 64)]


def test_a_transaction_of_another_account_than_its_bytes_show_is_not_read(chain: World) -> None:
    first = chain.pay(coin(OURS.address, TON), coin(SECOND, TON))

    def swapped(truth: Any, _asked: dict[str, Any]) -> Any:
        texts = [one["data"] for one in truth["transactions"]]
        for one, text in zip(truth["transactions"], reversed(texts), strict=True):
            one["data"] = text
        return truth

    with lying(chain, getBlockTransactionsExt=swapped) as liar, pytest.raises(ProviderError):
        liar.transfers(first)


def test_charges_are_what_an_address_lost_besides_its_spends(chain: World) -> None:
    give_hot(chain)
    chain.send(HOT, coin(STRANGER, 1))
    chain.simulator.settle()
    first = chain.pay(coin(HOT.address, TON))
    (paid,) = [each.transaction for each in chain.simulator.ran[HOT.address] if each.transaction.incoming.units == TON]
    assert charges(chain, first) == [(HOT.address, paid.total_fees)]
    assert paid.total_fees > 0

    back = chain.deliver(OTHER, messages.internal(HOT.address, TON, bounce=False, body=REST))
    received = chain.simulator.ran[HOT.address][-1].transaction
    assert charges(chain, back) == [(HOT.address, received.total_fees - TON)]
    assert chain.transfers(back) == []

    assert [chain.reader.second_opinion(asked).same for asked in (charge_of(chain, first), charge_of(chain, back))] == [
        1, 1,
    ]  # fmt: skip
    others = {"txid": "ab" * 32}, {"recipient": OURS.address}, {"block_hash": "ab" * 32}
    for other in others:
        assert chain.reader.second_opinion(replace(charge_of(chain, first), **other)).other == 1

    bounced = chain.send(HOT, coin(OTHER, TON, bounce=True))
    chain.simulator.settle()
    returned = chain.simulator.ran[HOT.address][-1].transaction
    assert (returned.incoming.bounced, charges(chain, bounced)) == (True, [(HOT.address, returned.total_fees)])


def test_coin_that_contracts_call_left_over_is_a_payment_at_a_deposit_address(chain: World) -> None:
    """The rest of our own spends goes to the hot wallet alone."""
    first = chain.deliver(OTHER, messages.internal(OURS.address, 10 * TON, bounce=False, body=REST))
    [transfer] = chain.transfers(first)
    assert (transfer.units, transfer.sender, transfer.recipient) == (10 * TON, OTHER, OURS.address)
    assert charges(chain, first) == []
    [paid] = [scan for scan in chain.scans(first) if scan.transfers]
    assert chain.reader.second_opinion(recorded(paid)).same == 1


def test_money_from_an_address_without_an_owner_is_no_payment(chain: World) -> None:
    """A restored database has lost whose it was: its sweep comes back as a departure, and is nothing else."""
    give_hot(chain)
    chain.simulator.give(OURS.address, 5 * TON)
    chain.pay(chain.jettons(OURS.address, 900))
    OURS.seqno = 0
    unnamed = replace(chain.usd.transfer(OURS, HOT.address, 500), query_id=0)
    first = chain.send(OURS, coin(HOT.address, TON), unnamed)
    chain.simulator.settle()
    lost = finds(KNOWN - {OURS.address}, keys=KNOWN)
    scans = [chain.reader.scan(at - 1, at, lost)[0] for at in range(first, chain.simulator.head.id.seqno + 1)]
    assert [transfer for scan in scans for transfer in scan.transfers] == []
    assert OURS.address in {sender for scan in scans for sender, _ in scan.sent}
    of_strangers = [transfer.currency for transfer in chain.transfers(first, {HOT.address})]
    assert sorted(of_strangers) == ["TON", "USDT"]


def test_jettons_of_the_hot_wallet_for_a_deposit_address_are_no_payment(chain: World) -> None:
    """An operator sends them by another app, or a thief: without a number, they bear no mark."""
    give_hot(chain)
    chain.pay(chain.jettons(HOT.address, 900))
    first = chain.send(HOT, replace(chain.usd.transfer(HOT, OURS.address, 5), query_id=0))
    chain.simulator.settle()
    assert chain.transfers(first) == []
    assert [each.units for each in chain.transfers(first, {OURS.address})] == [5]


# Balances and numbers ------------------------------------------------------------------------------------------------


def places(chain: World) -> list[Place]:
    return [
        Place(address=OURS.address, pair=None),
        Place(address=OURS.address, pair=COIN),
        Place(address=OURS.address, pair=pair_of(chain.usd.jetton)),
        Place(address=SECOND, pair=pair_of(chain.usd.jetton)),
    ]


def test_balances_are_those_after_the_block_that_is_asked_for(chain: World) -> None:
    chain.pay(coin(OURS.address, TON), chain.jettons(OURS.address, 500))
    block = chain.reader.block(chain.simulator.head.id.seqno)
    chain.pay(coin(OURS.address, TON))

    shown = chain.reader.snapshot(places(chain), height=block.height, block_hash=block.hash)  # type: ignore[union-attr]
    assert shown.units == (TON, TON, 500, 0)
    with pytest.raises(NotYetError):
        chain.reader.snapshot(places(chain), height=shown.height, block_hash="00" * 32)


def test_a_frozen_jetton_wallet_holds_nothing_and_hides_no_other_balance(chain: World) -> None:
    """Its jettons cannot move before its state is brought again: the comparison names the address as short."""
    chain.pay(coin(OURS.address, TON), chain.jettons(OURS.address, 500), chain.jettons(SECOND, 7))
    block = chain.reader.block(chain.simulator.head.id.seqno)
    wallet = chain.usd.jetton.wallet(OURS.address)

    def frozen(truth: Any, asked: dict[str, Any]) -> Any:
        return truth | {"state": "frozen", "code": "", "data": ""} if asked["address"] == wallet else truth

    with lying(chain, getAddressInformation=frozen) as liar:
        shown = liar.reader.snapshot(places(chain), height=block.height, block_hash=block.hash)  # type: ignore[union-attr]
    assert shown.units == (TON, TON, 0, 7)


def test_providers_that_show_different_balances_disagree(chain: World) -> None:
    chain.pay(coin(OURS.address, TON))
    block = chain.reader.block(chain.simulator.head.id.seqno)

    def more(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"balance": str(int(truth["balance"]) + 1)}

    def ask(liar: World, witnesses: int) -> tuple[int, ...]:
        left = liar.reader.snapshot(
            [Place(address=OURS.address, pair=None)],
            height=block.height,  # type: ignore[union-attr]
            block_hash=block.hash,  # type: ignore[union-attr]
            witnesses=witnesses,
        )
        return left.units

    with lying(chain, providers=2, getAddressInformation=more) as liar, pytest.raises(DisagreementError):
        ask(liar, 1)
    with lying(chain, providers=3, getAddressInformation=more) as liar:
        assert ask(liar, 2) == (TON,)


def test_numbers_are_found_by_old_states(chain: World) -> None:
    give_hot(chain)
    begun = chain.simulator.head.id.seqno
    heights = [chain.send(HOT, coin(STRANGER, 1)) for _ in range(3)]
    head = chain.simulator.mine(5)
    assert [chain.reader.used_counters(HOT.address, height) for height in (begun, *heights, head)] == [0, 1, 2, 3, 3]
    assert [[*chain.reader.counter_heights(HOT.address, number, begun, head)] for number in range(3)] == [
        [height] for height in heights
    ]
    for low, high in ((begun, heights[0]), (heights[2], head)):
        with pytest.raises(ProviderError, match="did not take"):
            chain.reader.counter_heights(HOT.address, 1, low, high)


def test_a_request_in_no_master_block_yet_has_no_height(chain: World) -> None:
    give_hot(chain)
    behind = chain.nodes[0]._truth("getMasterchainInfo", {})
    height = chain.send(HOT, coin(STRANGER, 1))
    with lying(chain, getMasterchainInfo=behind) as liar, pytest.raises(NotYetError, match="in no master block"):
        liar.reader.counter_heights(HOT.address, 0, 0, height)


def test_a_node_without_old_states_is_named(chain: World) -> None:
    def pruned(truth: Any, asked: dict[str, Any]) -> Any:
        return Refusal(500, "LITE_SERVER_NOTREADY: block is not applied") if asked.get("seqno") else truth

    chain.simulator.mine(2)
    assert chain.reader.lacking() == [[]]
    with lying(chain, getAddressInformation=pruned) as liar:
        ((line,),) = liar.reader.lacking()  # type: ignore[misc]
        assert "old blocks" in line
        assert liar.reader.used_counters(HOT.address, 1) == 0


# Departures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["no message", "another form of address", "exotic"])
def garbage(request: pytest.FixtureRequest) -> Cell:
    """Return a cell that no wallet can send as a message."""
    if request.param == "another form of address":
        # A variable one, which no account has.
        return Builder().uint(0b010000, 6).uint(0b11, 2).uint(0, 1 + 9 + 32).coins(TON).uint(0, 107).end()
    return Cell(b"\xff" * 4, 32) if request.param == "no message" else Cell(b"\x02" + bytes(32), 264, is_exotic=True)


def of_mode(chain: World, mode: int, *cells: Cell) -> int:
    """Let the hot wallet send messages of a mode, and return the master block that has its transaction."""
    made = requests.Request(
        wallet_id=wallet_id(is_test=False), valid_until=chain.simulator.now() + LIFE_S, seqno=HOT.seqno,
        actions=tuple(Action(mode, cell) for cell in cells),
    ).cell()  # fmt: skip
    body = requests.signed(made, HOT.key.sign(made.hash))
    chain.simulator.broadcast(messages.external(HOT.address, body, None if HOT.seqno else HOT.state))
    return chain.simulator.mine()


def departed(chain: World, height: int) -> Departure | None:
    block = chain.reader.block(height)
    ((_, txid),) = chain.scan(height).sent
    return chain.reader.departure(txid, block)  # type: ignore[arg-type]


def test_a_departure_has_all_outputs_of_its_request(chain: World) -> None:
    give_hot(chain)
    sent = chain.send(HOT, coin(STRANGER, TON, memo="rent"), coin(OTHER, 2 * TON))
    left = departed(chain, sent)
    assert left is not None
    assert [(each.recipient, each.units, each.memo) for each in left.outputs] == [
        (STRANGER, TON, "rent"), (OTHER, 2 * TON, ""),
    ]  # fmt: skip
    own = chain.simulator.ran[HOT.address][-1].transaction
    assert (left.sender, left.slot, left.is_transfer, left.failed) == (
        HOT.address,
        0,
        True,
        frozenset(),
    )
    assert (left.pair, left.fee_units) == (COIN, -own.change - 3 * TON)
    assert boc.read(left.raw) == own.incoming.cell
    ends_at = requests.read(own.incoming.body).request.valid_until
    assert left.window is not None
    assert left.window.ends_at == datetime.fromtimestamp(ends_at, UTC)


def test_a_departure_of_jettons_is_known_by_its_mark(chain: World) -> None:
    give_hot(chain)
    chain.pay(chain.jettons(HOT.address, 900))
    sent = chain.send(HOT, chain.usd.transfer(HOT, STRANGER, 5), chain.usd.transfer(HOT, OTHER, 6))
    left = departed(chain, sent)
    assert left is not None
    assert left.pair is not None
    assert (left.pair.contract, left.is_transfer, left.mark) == (
        chain.usd.jetton.master,
        True,
        mark_of(7),
    )
    assert [each.units for each in left.outputs] == [5, 6]


def test_a_departure_that_is_no_transfer_shows_the_coin_that_left(chain: World) -> None:
    give_hot(chain)
    body = Builder().uint(0x12345678, 32).end()
    sent = chain.send(HOT, messages.internal(OTHER, TON, bounce=False, body=body))
    left = departed(chain, sent)
    assert left is not None
    assert (left.is_transfer, [(each.recipient, each.units) for each in left.outputs]) == (
        False,
        [(OTHER, TON)],
    )


def test_a_skipped_message_is_a_failed_output(chain: World) -> None:
    give_hot(chain, 5 * TON)
    sent = chain.send(HOT, coin(STRANGER, TON), coin(OTHER, 50 * TON))
    left = departed(chain, sent)
    assert left is not None
    assert (left.failed, len(left.outputs)) == (frozenset({1}), 2)


def test_a_request_of_another_mode_is_no_transfer(chain: World) -> None:
    give_hot(chain)
    left = departed(chain, of_mode(chain, 2, coin(STRANGER, TON).message()))
    assert left is not None
    assert not left.is_transfer


def test_a_departure_with_a_message_that_cannot_be_read_shows_all_that_left(chain: World, garbage: Cell) -> None:
    """The wallet skips the one and sends the other: a thief hides nothing behind it."""
    give_hot(chain)
    sent = chain.send(HOT, garbage, coin(STRANGER, TON))
    left = departed(chain, sent)
    own = chain.simulator.ran[HOT.address][-1].transaction
    assert left is not None
    assert (left.is_transfer, [(each.recipient, each.units) for each in left.outputs]) == (False, [(STRANGER, TON)])
    assert (left.fee_units, left.failed) == (-own.change - TON, frozenset())


def test_a_departure_of_all_coin_shows_the_coin_that_left(chain: World) -> None:
    give_hot(chain)
    left = departed(chain, of_mode(chain, 2 + 128, coin(STRANGER, 0).message()))
    [own] = [each.transaction for each in chain.simulator.ran[HOT.address] if each.transaction.outgoing]
    [message] = own.outgoing
    assert left is not None
    assert message.units > 99 * TON
    assert [(each.recipient, each.units) for each in left.outputs] == [(STRANGER, message.units)]
    assert (left.is_transfer, left.fee_units) == (False, -own.change - message.units)


def test_jettons_that_leave_with_coin_are_shown_and_the_coin_counts_as_lost(chain: World) -> None:
    give_hot(chain)
    chain.pay(chain.jettons(HOT.address, 900))
    sent = chain.send(HOT, coin(STRANGER, 7 * TON), Cell(b"\xff" * 4, 32), chain.usd.transfer(HOT, OTHER, 6))
    left = departed(chain, sent)
    own = chain.simulator.ran[HOT.address][-1].transaction
    assert left is not None
    assert left.pair == pair_of(chain.usd.jetton)
    assert [(each.recipient, each.units) for each in left.outputs] == [(OTHER, 6)]
    assert (left.is_transfer, left.failed, left.fee_units) == (False, frozenset(), -own.change)


def test_jettons_that_leave_with_all_coin_are_lost_and_those_that_stay_are_not(chain: World) -> None:
    give_hot(chain)
    chain.pay(chain.jettons(HOT.address, 900))
    asked = [replace(chain.usd.transfer(HOT, OTHER, units), gas_units=gas) for units, gas in ((6, 0), (7, 500 * TON))]
    left = departed(chain, of_mode(chain, 2 + 128, *(each.message() for each in asked)))
    assert left is not None
    assert ([each.units for each in left.outputs], left.failed, left.is_transfer) == ([6], frozenset(), False)


@pytest.mark.parametrize("change", ["a decoy", "another form", "a name without a number"])
def test_no_form_of_a_request_hides_the_jettons_that_left(chain: World, change: str) -> None:
    give_hot(chain)
    chain.pay(chain.jettons(HOT.address, 900))
    asked = chain.usd.transfer(HOT, OTHER, 6)
    decoy = replace(asked, jetton_wallet=STRANGER)
    body = Builder().uint(0x0F8A7EA5, 32).uint(7, 64).coins(6).address(OTHER).address(OTHER).bit(0).coins(1).uint(2, 3)
    sent = {
        "a decoy": [decoy, asked],
        "another form": [messages.internal(asked.jetton_wallet, TON // 10, bounce=False, body=body.end())],
        "a name without a number": [replace(asked, forward_units=1, memo="a\x00b")],
    }
    left = departed(chain, chain.send(HOT, *sent[change]))
    assert left is not None
    assert (left.pair, left.is_transfer) == (pair_of(chain.usd.jetton), False)
    assert [(each.recipient, each.units, each.memo) for each in left.outputs] == [(OTHER, 6, "")]


@pytest.mark.parametrize(
    "body",
    [
        Builder().uint(0x595F07BC, 32).uint(7, 64).coins(6).address(OTHER).end(),
        Builder().uint(0x0F8A7EA5, 32).uint(7, 64).end(),
        Builder().uint(0x0F8A7EA5, 32).uint(7, 64).coins(6).address("").end(),
    ],
)
def test_what_asks_our_jetton_wallet_for_anything_else_shows_its_coin(chain: World, body: Cell) -> None:
    give_hot(chain)
    wallet = chain.usd.jetton.wallet(HOT.address)
    left = departed(chain, chain.send(HOT, messages.internal(wallet, TON, bounce=False, body=body)))
    assert left is not None
    assert [(each.recipient, each.units) for each in left.outputs] == [(wallet, TON)]


def test_a_comment_that_no_row_holds_is_left_out(chain: World) -> None:
    """PostgreSQL refuses the character: the theft would never be recorded, nor its block."""
    give_hot(chain)
    left = departed(chain, chain.send(HOT, coin(STRANGER, TON, memo="a\x00b")))
    assert left is not None
    assert (left.is_transfer, [(each.units, each.memo) for each in left.outputs]) == (False, [(TON, "")])


def test_a_departure_that_no_block_has_is_absent(chain: World) -> None:
    give_hot(chain)
    sent = chain.send(HOT, coin(STRANGER, TON))
    block = chain.reader.block(sent)
    with pytest.raises(AbsentError):
        chain.reader._departure(chain.reader._providers._nodes[0].client, "ab" * 32, block)  # type: ignore[arg-type]


def test_inclusions_are_counted_by_blocks(chain: World) -> None:
    give_hot(chain)
    sent = chain.send(HOT, coin(STRANGER, TON))
    scan = chain.scan(sent)
    [(_, txid)] = scan.sent

    def other(truth: Any, asked: dict[str, Any]) -> Any:
        return truth | {"id": truth["id"] | {"root_hash": "q" * 42 + "o="}} if asked["workchain"] == -1 else truth

    with lying(chain, providers=3, getBlockTransactionsExt=lambda truth, _: truth | {"transactions": []}) as liar:
        assert liar.reader.inclusions(scan.block, [txid, "ab" * 32]) == {
            txid: Agreement(same=2, other=1),
            "ab" * 32: Agreement(same=0, other=3),
        }
    for lie in (other, Refusal(500, "LITE_SERVER_NOTREADY: block is not applied")):
        with lying(chain, providers=2, getBlockHeader=lie) as liar:
            assert liar.reader.inclusions(scan.block, [txid]) == {txid: Agreement(same=1, other=0)}


def test_a_key_of_another_wallet_proves_nothing(chain: World) -> None:
    give_hot(chain)
    sent = chain.send(HOT, coin(STRANGER, TON))
    thief = Wallet("thief")

    def another(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"data": boc.write_base64(thief.state.data)}

    with lying(chain, getAddressInformation=another) as liar:
        assert departed(liar, sent) is None
