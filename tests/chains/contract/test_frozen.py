"""Duties for payouts that others block: an issuer that freezes a holder, a second key for our wallet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors import context
from actors.rates import network_fees
from actors.treasury import sweep
from core.catalogue.families import traits_of
from models.db.base import rows, value
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.queue import REFUSED_FOR_S
from tests.chains.contract.rig import Rig, dies_at, status, stored

# Until what waits for an operator is tried again.
PAUSE_S = 61
# Until what no node seems to have is sent once more.
RESEND_S = 30


@pytest.mark.needs("freeze")
def test_a_recipient_frozen_by_the_issuer_is_not_paid_and_the_hold_returns(rich: Rig) -> None:
    frozen, other = rich.recipient(), rich.recipient()
    rich.freeze(frozen)
    kept, paid = rich.order(frozen), rich.order(other)
    before = rich.holding()
    rich.sign()
    rich.follow()
    assert (status(kept), status(paid), rich.units_at(other)) == ("approved", "confirmed", rich.price)
    assert value("SELECT wait_reason <> '' FROM payouts WHERE id = %s", (kept.id,))
    assert rows("SELECT count(*) FROM spends") == [(1,)], "nothing is signed that would only cost a fee"

    rich.pass_time(REFUSED_FOR_S)
    assert dies_at("broadcast.failed", rich.sign)
    rich.sign()
    assert (status(kept), rich.units_at(frozen)) == ("failed", 0)
    assert rich.holding() == before + kept.amount_units + kept.fee_units
    assert rich.findings() == []


@pytest.mark.needs("freeze")
def test_a_payout_whose_recipient_is_frozen_before_its_block_returns_less_the_fee(rich: Rig) -> None:
    frozen = rich.recipient()
    order = rich.order(frozen)
    before = rich.holding()
    rich.sign()
    assert status(order) == "sent"
    rich.forget_waiting()
    rich.freeze(frozen)
    rich.pass_time(RESEND_S)
    rich.sign()
    rich.follow()

    assert (status(order), rich.units_at(frozen)) == ("failed", 0)
    # The fee of the failed transaction was charged all the same.
    assert rich.holding() == before + order.amount_units
    assert rows("SELECT state FROM spends") == [("failed",)]
    assert rich.findings() == []


@pytest.mark.needs("freeze")
def test_where_the_issuer_freezes_our_own_wallet_the_coin_is_frozen_and_its_payouts_are_paid_later(rich: Rig) -> None:
    rich.pay(stored(rich.invoice()), rich.price)
    rich.bury()
    rich.freeze(rich.hot)
    rich.keep_and_follow()
    assert rows("SELECT count(*) FROM spends") == [(0,)], "no gas is sent for what cannot come home"
    assert [each.frozen_by for each in freezes.listing()] == [freezes.REFUSAL], "a refused sweep tells it too"
    freezes.unfreeze("coin", freezes.coin(rich.currency, rich.code))

    # Charged for what TRON's fee is when it leaves.
    fee_units = 20 * 10 ** rich.catalogue.scale(rich.currency)
    orders = [rich.order(rich.recipient(), fee_units=fee_units) for _ in range(2)]
    coin = freezes.coin(rich.currency, rich.code)
    rich.sign()
    for stop in (rich.sign, lambda: rich.melt(is_paused=True), rich.melt):
        assert [(each.scope, each.name, each.frozen_by) for each in freezes.listing()] == [
            ("coin", coin, freezes.REFUSAL)
        ]
        rich.pass_time(REFUSED_FOR_S)
        rich.sign()
        assert [payouts.find(rich.shop, order.id).waiting_for for order in orders] == ["freeze"] * 2
        # An operator lifts the freeze too early, and it is set again at once.
        stop()
        rich.advance()
        freezes.unfreeze("coin", coin)
        rich.sign()
    assert [status(order) for order in orders] == ["sent"] * 2
    rich.follow()

    assert [(rich.units_at(order.address), status(order)) for order in orders] == [(rich.price, "confirmed")] * 2
    spends = 2 if traits_of(rich.network).outputs_max == 1 else 1
    assert rows("SELECT purpose, count(*) FROM spends WHERE purpose = 'payout' GROUP BY 1") == [("payout", spends)]
    assert freezes.listing() == []
    assert rich.findings() == []


@pytest.mark.needs("freeze")
def test_a_sweep_from_an_address_that_was_frozen_under_way_is_tried_no_more_at_a_price(rich: Rig) -> None:
    invoice = rich.invoice()
    rich.pay(stored(invoice), rich.price)
    rich.bury()
    network_fees.refresh_network_fees(rich.code)
    context.context().market.forget()
    sweep.keep_treasury(rich.code)
    if traits_of(rich.network).funds_addresses:
        # Its gas comes first.
        rich.follow(1)
        sweep.keep_treasury(rich.code)
    rich.sign()
    rich.forget_waiting()
    rich.freeze(stored(invoice))
    rich.pass_time(RESEND_S)
    rich.sign()
    rich.follow()
    before = rows("SELECT purpose, state FROM spends ORDER BY created_at")
    assert before[-1] == ("sweep", "failed")

    for _ in range(2):
        rich.keep_and_follow()
    assert rows("SELECT purpose, state FROM spends ORDER BY created_at") == before
    assert (freezes.listing(), rich.findings()) == ([], [])


@pytest.mark.needs("freeze")
def test_a_payout_refused_to_our_wallet_is_signed_again_after_the_freeze(rich: Rig) -> None:
    fee_units = 20 * 10 ** rich.catalogue.scale(rich.currency)
    order = rich.order(rich.recipient(), fee_units=fee_units)
    before = rich.holding()
    rich.sign()
    rich.forget_waiting()
    rich.freeze(rich.hot)
    rich.pass_time(RESEND_S)
    rich.sign()
    rich.advance()
    rich.sign()
    assert [each.frozen_by for each in freezes.listing()] == [freezes.REFUSAL], "before it fails"
    payout = payouts.find(rich.shop, order.id)
    assert payout is not None
    assert (payout.status, payout.waiting_for) == ("sent", "freeze")
    rich.follow()
    assert (status(order), rich.holding()) == ("approved", before)
    rich.sign()

    rich.melt()
    freezes.unfreeze("coin", freezes.coin(rich.currency, rich.code))
    rich.pass_time(RESEND_S)
    rich.advance()
    rich.sign()
    rich.follow()
    assert (status(order), rich.units_at(order.address)) == ("confirmed", rich.price)
    assert rows("SELECT purpose, state, count(*) FROM spends GROUP BY 1, 2 ORDER BY 1") == [
        ("lost", "failed", 1), ("payout", "confirmed", 1),
    ]  # fmt: skip
    assert rich.findings() == []


@pytest.mark.needs("freeze")
def test_one_of_two_providers_freezes_no_coin_and_fails_no_payout(start: Callable[..., Rig]) -> None:
    rig = start(2)
    rig.enrich()
    rig.advance(rig.network.maturity)
    frozen = rig.recipient()
    rig.freeze(frozen)
    rig.refuse_transfers(0)
    kept, paid = rig.order(frozen), rig.order(rig.recipient())
    for _ in range(2):
        rig.sign()
        rig.pass_time(REFUSED_FOR_S)
    assert (status(kept), status(paid), freezes.listing()) == ("approved", "sent", [])

    rig.be_honest()
    # Where a wallet sends one spend after the other, this one ends first.
    rig.follow()
    for _ in range(2):
        rig.pass_time(REFUSED_FOR_S)
        rig.sign()
    assert (status(kept), rig.units_at(frozen), freezes.listing()) == ("failed", 0, [])


@pytest.mark.needs("share")
def test_where_others_may_sign_for_the_wallet_the_network_is_frozen_until_an_operator_lifts_it(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.share(rich.hot)
    rich.sign()
    rich.pass_time(PAUSE_S)
    rich.sign()
    sweep.keep_treasury(rich.code)
    assert [(each.name, each.frozen_by) for each in freezes.listing()] == [(rich.code, freezes.SIGNER)]
    assert (rows("SELECT count(*) FROM spends"), status(order)) == ([(0,)], "approved")

    rich.share(rich.hot, is_shared=False)
    rich.pass_time(PAUSE_S)
    rich.sign()
    assert rows("SELECT count(*) FROM spends") == [(0,)], "nobody has said yet that it is ours again"
    freezes.unfreeze("network", rich.code)
    rich.pass_time(PAUSE_S)
    rich.sign()
    rich.follow()
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")


@pytest.mark.needs("share")
def test_where_others_may_sign_for_the_wallet_the_treasury_freezes_the_network_too(rich: Rig) -> None:
    rich.env |= {f"{rich.code.upper()}_COLD_ADDRESS": rich.recipient(), "HOT_LIMIT_USD": "50"}
    rich.restart()
    rich.share(rich.hot)
    rich.keep_and_follow()
    assert [(each.name, each.frozen_by) for each in freezes.listing()] == [(rich.code, freezes.SIGNER)]
    assert rows("SELECT count(*) FROM spends") == [(0,)]
