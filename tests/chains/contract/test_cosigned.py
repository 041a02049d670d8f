"""Sweeps that the hot wallet signs too: it pays, and it gets the rent of the accounts that they close."""

from __future__ import annotations

import pytest

from actors import context
from actors.rates import network_fees
from actors.treasury import sweep
from chains.spending import KeyRef, Lying, Wait
from models.db.base import rows
from models.invariants import deposits
from models.spends import reads as spend_reads
from tests.chains.contract.rig import Rig, stored
from tests.chains.contract.toy import USUAL_FEE, WindowRig
from tests.chains.toy.chain import RENT
from tests.chains.toy.plug import TOKEN
from tests.chains.toy.treasurer import ToyTreasurer

TOKENS = 50_000_000


pytestmark = pytest.mark.rigs("toywindow")


@pytest.fixture
def window(rich: Rig) -> WindowRig:
    assert isinstance(rich, WindowRig)
    return rich


def funded(window: WindowRig) -> str:
    """Give a deposit address a token and none of the gas coin."""
    address = stored(window.invoice())
    window.chain.faucet(address, TOKENS, TOKEN)
    window.advance(window.network.maturity)
    return address


def test_a_swept_token_leaves_the_hot_wallet_richer_by_the_rent(window: WindowRig) -> None:
    address, before = funded(window), window.units_at(window.hot)
    window.gather()

    assert (window.chain.units_at(address, TOKEN), window.chain.units_at(window.hot, TOKEN)) == (0, TOKENS)
    assert window.units_at(window.hot) - before == RENT - USUAL_FEE
    assert rows("SELECT sender, payer, chain_fee_units::bigint, booked_fee_units < 0, state FROM spends") == [
        (address, window.hot, USUAL_FEE - RENT, True, "confirmed")
    ]
    assert rows("SELECT address, units::bigint FROM spend_movements WHERE currency = %s", (window.currency,)) == [
        (window.hot, RENT - USUAL_FEE)
    ]
    assert window.findings() == []
    # The addresses of the toy are of another sequence than their owner's.
    assert {broken.name for broken in deposits.check()} <= {"addresses_have_one_owner"}


def keep(window: WindowRig) -> None:
    """Take one step of the treasury, at costs of today."""
    network_fees.refresh_network_fees(window.code)
    context.context().market.forget()
    sweep.keep_treasury(window.code)


def started(window: WindowRig) -> str:
    """Start a sweep that waits for a block; return the address that it empties."""
    address = funded(window)
    keep(window)
    assert rows("SELECT purpose, payer, state FROM spends") == [("sweep", window.hot, "sent")]
    return address


def test_a_waiting_sweep_promises_its_fee_at_its_payer(window: WindowRig) -> None:
    address = started(window)
    locked = rows("SELECT sender FROM spend_accounts ORDER BY sender")
    assert locked == sorted([(address,), (window.hot,)])
    at_hot = spend_reads.promised(window.code, window.hot, None)
    at_owner = spend_reads.promised(window.code, address, TOKEN)

    assert (at_hot.gas_units, at_hot.native_units, len(at_hot.txids)) == (USUAL_FEE, 0, 1)
    assert (at_owner.gas_units, at_owner.token_units, at_owner.txids) == (0, TOKENS, at_hot.txids)


def test_the_rent_of_a_sweep_that_still_seems_to_wait_is_no_surplus(window: WindowRig) -> None:
    started(window)
    for node in window.nodes:
        node.lies["height_of"] = lambda _truth, _txid: None
    assert window.findings() == []
    assert window.chain.units_at(window.hot, TOKEN) == TOKENS


def test_a_treasurer_knows_the_promises_of_the_hot_wallet(window: WindowRig, monkeypatch: pytest.MonkeyPatch) -> None:
    promised: list[int] = []

    def step(_self: object, lying: Lying, _hot: KeyRef, *, cap_units: int) -> Wait:
        promised.append(lying.hot_promised_units * (cap_units > 0))
        return Wait(reason="dear")

    monkeypatch.setattr(ToyTreasurer, "step", step)
    funded(window)
    window.order(window.recipient())
    window.sign()
    keep(window)
    assert promised == [window.price + USUAL_FEE]
