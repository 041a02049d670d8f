"""Fees are computed by the chain's settings, and cover what its own code takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chains.spending import Output
from chains.ton import boc, nodes
from chains.ton.cells import CellError
from chains.ton.nodes import Toncenter
from chains.ton.slices import Builder
from chains.ton.spends import fees, prices
from chains.ton.spends.prices import Prices
from chains.ton.wallet import wallet_state
from devstack.ton.engine import CONFIG
from tests.chains.ton.spends.world import CAP, CATALOGUE, FRESH, HOT_KEY, USDT, World, payment, payments, world
from tests.peers.ton.chain import TON

MAIN = prices.read(CONFIG.read_text("ascii").strip())
PAIRS = CATALOGUE.pairs_on("ton")


def test_the_main_net_s_prices_are_read() -> None:
    # 400 base units for gas, and for a bit on its way; 1 and 500 for a bit and a cell in 2^16 seconds.
    fraction = 1 << 16
    assert (
        Prices(
            gas=400 * fraction,
            way=400_000,
            way_bit=400 * fraction,
            way_cell=40_000 * fraction,
            rent_bit=1,
            rent_cell=500,
        )
        == MAIN
    )
    assert (MAIN.of_gas(1), MAIN.of_message(Builder().end())) == (400, 400_000)


@pytest.mark.parametrize(
    "cell",
    [
        Builder().uint(0b1010_0000, 8).end(),
        # One entry, number 21, with another tag.
        Builder().uint(0b10, 2).uint(32, 6).uint(21, 32).ref(Builder().uint(1, 8).end()).end(),
    ],
)
def test_settings_without_prices_are_refused(cell: object) -> None:
    with pytest.raises(CellError):
        prices.read(boc.write_base64(cell))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 2, 17, 50])
def test_a_request_costs_no_more_than_computed_and_hardly_less(ton: World, count: int) -> None:
    ton.paid(payment(TON))
    outputs = [Output(recipient=f"0:{number + 1:064x}", units=TON, memo="m" * number) for number in range(count)]
    draft, _, fate = ton.paid(payments(*outputs))
    assert fate.fee_units <= draft.offer.ceiling_units < 1.4 * fate.fee_units


def test_rent_is_computed_no_lower_than_the_chain_takes_it(ton: World) -> None:
    ton.paid(payment(TON))
    year = 365 * 86_400
    ton.chain.advance(year)
    ton.chain.mine()
    ton.paid(payment(TON))
    [*_, own] = [each for each in ton.ran(HOT_KEY.address) if each.incoming.kind == "in"]
    state = wallet_state(bytes(32), is_test=True)
    computed = MAIN.rent((state.code, state.data), year)
    assert own.storage_fees <= computed < 1.2 * own.storage_fees


def test_costs_cover_a_payout_to_a_fresh_recipient(ton: World) -> None:
    costs = fees.costs(ton.providers, PAIRS, cap_units=CAP)
    assert costs.keys() == {"TON", "USDT"}
    before = ton.units(HOT_KEY.address)
    ton.paid(payment(7, pair=USDT, to=FRESH))
    taken = before - ton.units(HOT_KEY.address)
    assert taken <= costs["USDT"].payout_units < 2 * taken
    assert costs["TON"].payout_units < costs["TON"].sweep_units < costs["USDT"].payout_units
    assert costs["USDT"].payout_units < costs["USDT"].sweep_units < 2 * costs["USDT"].payout_units
    capped = fees.costs(ton.providers, PAIRS, cap_units=5)
    assert (capped["TON"].payout_units, capped["USDT"].payout_units, capped["USDT"].sweep_units) == (5, 5, 10)


def test_one_provider_alone_may_at_most_double_a_price(ton: World) -> None:
    with world(ton.ton, 2) as two:
        agreed = fees.agreed(two.providers, [MAIN, MAIN])
        assert agreed == MAIN
        absurd = replace(MAIN, gas=MAIN.gas * 1_000, way=MAIN.way * 1_000)
        bounded = fees.agreed(two.providers, [MAIN, absurd])
        assert (bounded.gas, bounded.way, bounded.way_bit) == (2 * MAIN.gas, 2 * MAIN.way, MAIN.way_bit)
        # Two who agree are believed.
        assert fees.agreed(two.providers, [absurd, absurd]) == absurd


def test_prices_are_asked_of_a_node(ton: World) -> None:
    node = Toncenter(ton.nodes[0].url, timeout_s=5)
    assert fees.read(node) == MAIN
    assert nodes.config(node)
