"""Each output of a spend has its own effect and end, and the books are sound at every step."""

from __future__ import annotations

import random

import pytest
from psycopg2.extras import Json

from models.db.base import column, execute, rows, transaction
from models.outcomes import manual, payout_hooks
from models.payouts import freezes
from models.spends import limit_counters, outputs, tracking
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends.tracking import WATCHED_ON_BLOCKS
from models.spends.unexplained import Part
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.outcomes.many import FEE_UNITS, Many
from tests.models.treasury.builders import other_with_slot

WHOLE = 100 * USDT
HELD = 11 * USDT
# The smallest unit of USDT on the chain, in the ledger's units.
STEP = 10**12


@pytest.fixture
def many(database: str) -> Many:
    del database
    return Many(Chain())


def mature(many: Many) -> None:
    many.chain.mature()
    many.ripen()
    assert_sound()


def test_outputs_with_exact_effects_are_confirmed_and_the_fee_is_booked_once(many: Many) -> None:
    many.chain.mine()
    many.include("exact", "exact", "exact")
    assert many.states() == ("mined", "open", "open", "open")
    many.chain.confirm()
    many.ripen()

    assert many.states() == ("confirmed", "confirmed", "confirmed", "confirmed")
    assert many.statuses() == ["confirmed"] * 3
    assert many.spend.booked_fee_units == FEE_UNITS
    assert (many.spend.effect, many.spend.is_success, many.spend.left_units) == ("exact", True, None)
    assert_sound()


def test_movements_of_our_addresses_are_kept_while_the_spend_is_in_a_block(many: Many) -> None:
    many.chain.mine()
    many.include("exact", "none", "other")
    assert rows("SELECT currency, decimals, units, height FROM spend_movements ORDER BY 1") == [
        ("ETH", 18, -FEE_UNITS, many.chain.height), ("USDT", 6, -2 * 10**7, many.chain.height),
    ]  # fmt: skip
    many.chain.mine()
    many.include("none", "none", "none")
    assert rows("SELECT currency, units, height FROM spend_movements") == [("ETH", -FEE_UNITS, many.chain.height)]
    many.take_out()
    assert rows("SELECT 1 FROM spend_movements") == []


def test_one_output_ends_in_a_step(many: Many) -> None:
    many.chain.mine()
    many.include("exact", "exact", "exact")
    many.chain.confirm()
    with transaction():
        assert tracking.ripen(CATALOGUE, many.spend_id) is not None
    assert many.states() == ("mined", "confirmed", "open", "open")
    assert many.spend.booked_fee_units == 0, "the fee is booked with the last output"
    assert_sound()


def test_an_output_without_effect_is_returned_less_its_part_of_the_fee(many: Many) -> None:
    execute("UPDATE payouts SET quote_units = 1000000000000, quote_gas_units = 1")
    many.chain.mine()
    many.include("exact", "none", "none")
    mature(many)

    assert many.states() == ("confirmed", "confirmed", "failed", "failed")
    assert many.statuses() == ["confirmed", "failed", "failed"]
    assert [row for (row,) in rows("SELECT kept_units FROM payouts ORDER BY id")] == [0, 66_667 * STEP, 66_666 * STEP]
    assert many.owned() == [WHOLE - HELD - 66_667 * STEP, WHOLE - 66_666 * STEP]
    assert (many.spend.effect, many.spend.left_units, many.spend.arrived_units) == ("other", 10**7, 10**7)
    assert limit_counters.spent().hour == 1000
    assert [limit_counters.spent_by(shop).hour for shop in many.shops] == [1000, 0]


def test_a_spend_fails_only_if_no_output_had_an_effect(many: Many) -> None:
    many.chain.mine()
    many.include("none", "none", "none")
    many.chain.confirm()
    many.ripen()
    assert many.states() == ("mined", "open", "open", "open"), "a reorg may still pay them"
    mature(many)

    assert many.states() == ("failed", "failed", "failed", "failed")
    assert many.statuses() == ["failed"] * 3
    assert (many.spend.effect, many.spend.problem) == ("none", "refused")


def test_on_a_frozen_network_no_output_is_returned_and_the_others_are_confirmed(many: Many) -> None:
    many.chain.mine()
    many.include("none", "exact", "none")
    freezes.freeze("network", "ethereum", reason="test", frozen_by="test")
    mature(many)
    assert many.states() == ("mined", "open", "confirmed", "open")

    freezes.unfreeze("network", "ethereum")
    many.ripen()
    assert many.states() == ("confirmed", "failed", "confirmed", "failed")
    assert_sound()


@pytest.mark.parametrize("outcome", ["paid", "failed"])
def test_an_output_with_another_effect_waits_for_an_operator(many: Many, outcome: manual.Outcome) -> None:
    many.chain.mine()
    many.include("other", "exact", "other")
    mature(many)
    assert many.states() == ("mined", "open", "confirmed", "open")
    assert spend_reads.unclear_by_network() == [("ethereum", 2)]

    for left in (1, 0):
        unclear = manual.listing(CATALOGUE)[0]
        assert (unclear.left_units, unclear.arrived_units) == (10 * USDT, 10 * USDT - USDT // 10**6)
        with transaction():
            manual.settle(CATALOGUE, unclear, outcome, settled_by="test")
        assert len(manual.listing(CATALOGUE)) == left
        assert_sound()

    ending = "confirmed" if outcome == "paid" else "failed"
    assert many.states() == ("confirmed", ending, "confirmed", ending)
    assert many.statuses() == [ending, "confirmed", ending]
    assert many.spend.lost_units == (0 if outcome == "paid" else 20 * USDT)
    assert column("SELECT lost_units FROM payout_settlements") == [0 if outcome == "paid" else 10 * USDT] * 2


def test_only_a_waiting_output_is_settled_by_hand(many: Many) -> None:
    many.chain.mine()
    many.include("exact", "other", "none")
    first = manual.listing(CATALOGUE)[0]
    for place in (0, 2, 3):
        with pytest.raises(manual.SettleError), transaction():
            manual.settle(CATALOGUE, _at(first, place), "paid", settled_by="test")
    with pytest.raises(manual.SettleError), transaction():
        manual.settle(CATALOGUE, first, "paid", settled_by="test")
    assert many.states() == ("mined", "open", "open", "open")


def _at(unclear: manual.Unclear, place: int) -> manual.Unclear:
    return manual.Unclear(**{name: getattr(unclear, name) for name in unclear.__slots__} | {"place": place})


def test_a_reorg_does_not_change_outputs_that_ended(many: Many) -> None:
    """A failed output was returned. If its bytes take effect in another block, its merchant is charged in the end."""
    many.chain.mine()
    many.include("none", "exact", "other")
    mature(many)
    assert many.states() == ("mined", "failed", "confirmed", "open")
    given_back = many.owned()

    many.take_out()
    assert many.states() == ("sent", "failed", "confirmed", "open")
    assert [output.effect for output in many.spend.outputs] == [None] * 3
    many.chain.mine()
    many.include("exact", "none", "exact", fee_units=FEE_UNITS + 1)
    many.chain.confirm()
    many.ripen()
    assert many.states() == ("confirmed", "failed", "confirmed", "confirmed")
    assert many.owned() == given_back
    assert_sound()

    many.chain.mine(CATALOGUE.networks["ethereum"].maturity + WATCHED_ON_BLOCKS)
    many.ripen()
    assert many.owned() == [given_back[0] - 10 * USDT, given_back[1]]
    assert [output.charged_units for output in many.spend.outputs] == [10 * USDT, 0, 0]
    assert (many.spend.charged_units, many.spend.booked_fee_units) == (10 * USDT, FEE_UNITS + 1)
    assert many.spend.settled_at is not None
    assert_sound()


def test_a_charge_is_returned_when_a_deep_reorg_ends_its_reason(many: Many) -> None:
    many.chain.mine()
    many.include("none", "none", "none")
    mature(many)
    before = many.owned()
    for effects, charged in ((("exact", "none", "exact"), 10 * USDT), (("none", "none", "none"), 0)):
        many.reopen()
        many.take_out()
        many.chain.mine()
        many.include(*effects)  # type: ignore[arg-type]
        mature(many)
        assert many.owned() == [units - charged for units in before]
    assert many.statuses() == ["failed"] * 3


def test_payouts_of_an_expired_spend_are_signed_again(many: Many) -> None:
    assert many.bury() is not None

    assert many.states() == ("dead", "dead", "dead", "dead")
    assert many.statuses() == ["approved"] * 3
    assert limit_counters.spent().hour == 0
    assert_sound()
    again = many.sign(many.orders[0])
    assert spends.of_payout(many.orders[0].id) == spends.find(again)
    assert spends.of_payout(many.orders[1].id) is None


def test_of_a_half_ended_dead_spend_only_the_open_payouts_are_signed_again(many: Many) -> None:
    many.chain.mine()
    many.include("exact", "other", "none")
    mature(many)
    many.take_out()
    assert many.states() == ("sent", "confirmed", "open", "failed")

    assert many.bury() is not None
    assert many.states() == ("confirmed", "confirmed", "dead", "failed")
    assert many.statuses() == ["confirmed", "approved", "failed"]
    assert [output.problem for output in many.spend.outputs] == ["a reorg took it, and it expired", "",
                                                                  "a reorg took it, and it expired"]  # fmt: skip
    assert (many.spend.booked_fee_units, many.spend.settled_at is None) == (0, False)
    assert_sound()


def test_the_loss_of_a_settled_output_is_reversed_when_its_spend_dies(many: Many) -> None:
    many.chain.mine()
    many.include("other", "other", "none")
    mature(many)
    unclear = manual.listing(CATALOGUE)[0]
    with transaction():
        manual.settle(CATALOGUE, unclear, "failed", settled_by="test")
    assert many.spend.lost_units == 10 * USDT
    assert_sound()
    many.take_out()

    assert many.bury() is not None
    assert many.states() == ("failed", "failed", "dead", "failed")
    assert (many.spend.lost_units, [output.lost_units for output in many.spend.outputs]) == (0, [0, 0, 0])
    assert_sound()


def test_a_spend_is_buried_by_another_transaction_unless_it_pays_the_same_recipients(many: Many) -> None:
    with transaction():
        other_with_slot(many.spend_id)
    same = [Part(output.recipient, output.token_units).to_json() for output in reversed(many.spend.outputs)]
    update = "UPDATE unexplained_departures SET outputs = %s, contract = (SELECT contract FROM spends WHERE id = %s)"
    execute(update, (Json(same), many.spend_id))
    assert many.bury("claim_used") is None
    assert many.states() == ("sent", "open", "open", "open")

    execute(update, (Json(same[1:]), many.spend_id))
    assert many.bury("claim_used") is not None
    assert many.states() == ("dead", "dead", "dead", "dead")


def test_a_payout_has_one_output_that_may_still_pay_it(many: Many) -> None:
    with pytest.raises(Exception, match="spend_outputs_by_payout"):
        execute(
            "INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units)"
            " VALUES (%s, 3, %s, '0xr', 1)",
            (many.spend_id, many.orders[0].id),
        )


def test_an_output_ends_once(many: Many) -> None:
    first = many.spend.outputs[0]
    assert [outputs.end(first, "confirmed", lost_units=units) for units in (7, 8)] == [True, False]
    assert (many.spend.outputs[0].lost_units, many.spend.lost_units) == (7, 7)


def test_an_output_without_a_payout_ends_no_payout(many: Many) -> None:
    before = rows("SELECT id, status FROM payouts ORDER BY id")
    output = many.spend.outputs[0].but(payout_id=None)
    for end in (payout_hooks._confirmed, payout_hooks._failed, payout_hooks._failed_anew):
        end(CATALOGUE, many.spend, output)
    assert rows("SELECT id, status FROM payouts ORDER BY id") == before


@pytest.mark.parametrize("seed", range(8))
def test_the_books_are_sound_in_any_order_of_events(many: Many, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    network = CATALOGUE.networks["ethereum"]
    for _ in range(25):
        step = chance.choice(["mine", "include", "include", "take_out", "reopen", "ripen", "ripen", "settle", "bury"])
        if step == "mine":
            many.chain.mine(chance.choice([1, network.confirmations, network.maturity + WATCHED_ON_BLOCKS]))
        elif step == "include" and many.spend.state != "dead":
            many.chain.mine()
            many.include(*(chance.choice(["exact", "none", "other"]) for _ in range(3)))
            if chance.random() < 0.7:
                many.chain.mine(network.maturity)
        elif step == "settle":
            _settle_one(chance)
        elif step == "bury" and chance.random() < 0.2:
            many.bury()
        elif step in {"take_out", "reopen", "ripen"}:
            getattr(many, step)()
        assert_sound()


def _settle_one(chance: random.Random) -> None:
    for unclear in manual.listing(CATALOGUE)[:1]:
        try:
            with transaction():
                manual.settle(CATALOGUE, unclear, chance.choice(["paid", "failed"]), settled_by="test")
        except manual.SettleError:
            pass
