"""A wallet has room for a number of spends in no block, of all purposes; several addresses share one spend of gas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

import pytest

from actors.signer import funding, sign
from actors.signer.sign import WalletBusyError
from chains.spending import Fund, InsufficientCoinError, Intent, Output, SpendRefusedError
from models.db.base import rows
from models.spends import reads as spend_reads
from models.spends.rows import Purpose
from tests.actors.signer.moments import once
from tests.actors.signer.world import SpendWorld
from tests.models.builders import CATALOGUE
from tests.peers.paper_chain import transfer
from tests.peers.paper_spender import PaperSpender

PURPOSES: Final[tuple[Purpose, ...]] = ("payout", "gas", "cold", "filler", "sweep")


def start(world: SpendWorld, purpose: Purpose = "cold", **more: int) -> UUID | None:
    """Sign a spend whose purpose is only its name."""
    world.is_tampered = True
    wallet = sign.hot_wallet(world.network)
    intent = transfer(wallet, "0x" + "c1" * 20, 5, CATALOGUE.pairs["USDT", "ethereum"])
    return sign.start(world.ctx, world.network, purpose=purpose, intent=intent, **more)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_spend_of_any_purpose_takes_the_wallets_room(
    world: SpendWorld, paper: Callable[..., PaperSpender], purpose: Purpose
) -> None:
    spender = paper("counter", in_flight_max=1)
    start(world, purpose)
    for other in PURPOSES:
        with pytest.raises(WalletBusyError):
            start(world, other)
    assert funding.fund(world.ctx, world.network, gas(world, 1)) == 0
    order = world.order()
    world.step()
    assert (world.payout(order).status, world.payout(order).wait_reason) == ("approved", "")
    assert len(spender.drafted) == 1, "nothing is quoted for it"


def test_another_wallets_spends_take_no_room(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    paper("counter", in_flight_max=1)
    start(world)
    wallet = sign.deposit_wallet(world.network, 7)
    intent = transfer(wallet, world.hot, 5, CATALOGUE.pairs["USDT", "ethereum"])
    assert sign.start(world.ctx, world.network, purpose="sweep", intent=intent) is not None


def test_a_slot_before_those_that_wait_is_filled_without_room(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", in_flight_max=1)
    start(world)
    assert start(world, "filler", slot=9) is not None


def test_of_two_spends_for_the_last_room_one_is_signed(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    paper("counter", in_flight_max=2)
    start(world)
    once("spending.quoted", lambda: start(world, "gas"))
    with pytest.raises(WalletBusyError):
        start(world)
    assert spend_reads.waiting_of(world.network.code, world.hot) == 2


def test_a_payout_that_finds_no_room_waits_for_its_turn(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", in_flight_max=1)
    order = world.order()
    once("spending.quoted", lambda: start(world))
    world.step()
    payout = world.payout(order)
    assert (payout.status, payout.wait_reason) == ("approved", "")
    ((txid,),) = rows("SELECT txid FROM spend_attempts")
    spender.include(txid)
    world.scan()
    world.step()
    world.step()
    assert world.payout(order).status == "sent"


# Gas in company -----------------------------------------------------------------------------------------------------


def gas(world: SpendWorld, number: int, units: int = 1_000) -> Fund:
    outputs = (Output(recipient=f"0x{number:040x}", units=units),)
    return Fund(intent=Intent(wallet=sign.hot_wallet(world.network), pair=None, outputs=outputs), cost_units=2)


def funded() -> list[list[str]]:
    """Return the recipients of each spend of gas."""
    listed = rows(
        "SELECT array_agg(right(o.recipient, 1) ORDER BY o.place) FROM spends s"
        " JOIN spend_outputs o ON o.spend_id = s.id WHERE s.purpose = 'gas' GROUP BY s.id ORDER BY s.id"
    )
    return [recipients for (recipients,) in listed]


def test_one_spend_funds_as_many_addresses_as_it_has_outputs(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=2)
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 6))) == 5
    assert funded() == [["1", "2"], ["3", "4"], ["5"]]
    assert all(spend_reads.is_awaiting_gas("ethereum", f"0x{number:040x}") for number in range(1, 6))


def test_of_one_at_a_time_only_the_first_company_is_funded(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=2, in_flight_max=1)
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 4))) == 2
    assert funded() == [["1", "2"]]


def test_an_address_beyond_its_limit_is_left_out_of_the_company(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=4)
    most = funding.most_units(world.ctx, world.network)
    for _ in range(funding.FUNDINGS_MAX):
        assert funding.fund(world.ctx, world.network, gas(world, 1)) == 1
    steps = (gas(world, 1), gas(world, 2), gas(world, 3, most + 1), gas(world, 4, most))
    assert funding.fund(world.ctx, world.network, *steps) == 2
    assert funded()[-1] == ["2", "4"]


def test_a_refused_address_keeps_no_other_from_its_gas(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", outputs_max=4)
    spender.refused.add(f"0x{3:040x}")
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 5))) == 3
    assert funded() == [["1", "2"], ["4"]]
    with pytest.raises(SpendRefusedError):
        funding.fund(world.ctx, world.network, gas(world, 3))


def test_a_hot_wallet_short_of_coin_funds_whom_it_can(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    spender = paper("counter", outputs_max=4)
    real = spender.draft

    def draft(intent: Intent, *given: object, **more: object) -> object:
        if len(intent.outputs) > 1:
            raise InsufficientCoinError("too little for all")
        return real(intent, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(spender, "draft", draft)
    assert funding.fund(world.ctx, world.network, gas(world, 1), gas(world, 2)) == 2
    assert funded() == [["1"], ["2"]]


def test_a_company_that_cannot_be_funded_keeps_the_count_of_those_before(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("counter", outputs_max=1)
    spender.refused |= {f"0x{2:040x}", f"0x{3:040x}"}
    assert funding.fund(world.ctx, world.network, gas(world, 1), gas(world, 2), gas(world, 3)) == 1
    with pytest.raises(SpendRefusedError):
        funding.fund(world.ctx, world.network, gas(world, 2), gas(world, 3))
    assert funding.fund(world.ctx, world.network) == 0
