"""What of the payouts an operator has to look at, in metrics."""

from __future__ import annotations

from api.health.gauges import payout_gauges
from models.db.base import execute
from tests.models.builders import Chain
from tests.models.payouts.held import funded, payout, taken
from tests.models.treasury.builders import spend


def unsettled() -> dict[str, float]:
    return {
        sample.labels["network"]: sample.value
        for metric in payout_gauges()
        if metric.name == "sluice_payouts_to_settle"
        for sample in metric.samples
    }


def test_payouts_that_moved_something_else_show_until_they_are_settled(chain: Chain) -> None:
    order = taken(payout(funded(chain=chain), is_approval_required=False, status="approved"), "broadcasting", "sent")
    spend(purpose="sweep", recipient="0xhot", token_units=1, mined=(chain.height, chain._hash()), effect="other")
    assert unsettled() == {}, "sweeps end by themselves"
    execute("UPDATE spends SET state = 'mined', effect = 'other' WHERE payout_id = %s", (order.id,))
    assert unsettled() == {"ethereum": 1}
    execute("UPDATE spends SET state = 'failed'")
    assert unsettled() == {}
