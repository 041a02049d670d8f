"""Metrics of payouts that an operator has to look at."""

from __future__ import annotations

from api.health.gauges import payout_gauges
from models.payouts.withdrawals import WithdrawalRule
from tests.models.builders import Chain, merchant
from tests.models.payouts.held import funded, payout, taken
from tests.models.spends import by_hand
from tests.models.treasury.builders import spend


def shown(name: str, label: str) -> dict[str, float]:
    return {
        sample.labels[label]: sample.value
        for metric in payout_gauges()
        if metric.name == name
        for sample in metric.samples
    }


def unsettled() -> dict[str, float]:
    return shown("sluice_payouts_to_settle", "network")


def test_payouts_that_moved_something_else_show_until_they_are_settled(chain: Chain) -> None:
    order = taken(payout(funded(chain=chain), is_approval_required=False, status="approved"), "broadcasting", "sent")
    spend(purpose="sweep", recipient="0xhot", token_units=1, mined=(chain.height, chain._hash()), effect="other")
    assert unsettled() == {}, "sweeps end by themselves"
    by_hand.change("state = 'mined', effect = 'other'", by_hand.OF_PAYOUT, (order.id,))
    assert unsettled() == {"ethereum": 1}
    by_hand.change("state = 'failed'")
    assert unsettled() == {}


def test_rules_that_wait_show_by_their_reason(database: str) -> None:
    del database
    for number, reason in enumerate(("payout.frozen", "payout.frozen", "fault", "")):
        rule = WithdrawalRule(
            merchant_id=merchant(),
            currency="USDT",
            network="ethereum",
            address="0x1",
            threshold_units=1 + number,
            is_enabled=True,
            set_by="pk_creator",
            wait_reason=reason,
        )
        assert rule.write()

    assert shown("sluice_withdrawals_waiting", "reason") == {"payout.frozen": 2, "fault": 1}
