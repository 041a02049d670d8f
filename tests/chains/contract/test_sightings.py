"""Duties for a payment without a block: its time counts, it is shown, and it credits nothing."""

from __future__ import annotations

from datetime import datetime

import pytest

from actors import context
from actors.invoices import ticks
from chains.bitcoin.transactions import read_hex
from models.db.base import column, execute, rows, value
from models.deposits import sightings
from models.invoices import quoting, timeline, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from tests.actors.scan.paper import dying_at
from tests.chains.contract.bitcoin import BitcoinRig
from tests.chains.contract.conftest import Start
from tests.chains.contract.rig import Rig, stored
from tests.models.builders import endpoint
from tests.models.invoices.builders import keep_rates
from tests.models.spends.departures import note_taker


@pytest.fixture
def rig(rig: Rig) -> Rig:
    """A gateway with one provider, whose shop gets webhooks."""
    endpoint(rig.shop)
    return rig


DAY_S = 86_400


def looked(of: InvoiceRow) -> Shown:
    """Return a payment as a reader of its page sees it."""
    return quoting.seen_one(context.context().catalogue, invoices.reread(of.id))


def shown(of: InvoiceRow) -> tuple[str, bool, int, str]:
    """Return what the payment object says: status, whether all is paid, confirmations, transaction."""
    payment = views.payment(context.context().catalogue, looked(of), pay_url="http://x", public=True)
    return payment["payment_status"], payment["amount_remaining"] == "0", payment["confirmations"], payment["txid"]


def events(of: InvoiceRow) -> list[str]:
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))


def detected(of: InvoiceRow) -> list[dict[str, object]]:
    read_rows = timeline.read(context.context().catalogue, looked(of))
    return [event["detail"] for event in read_rows if event["event"] == "detected"]


def know_rates() -> None:
    for coin in column("SELECT pay_currency FROM invoices"):
        keep_rates(**{"USD": 1, coin: 1})


def pass_by(rig: Rig, seconds: int) -> None:
    """Let time pass, blocks be made and what is due be done."""
    know_rates()
    rig.pass_time(seconds)
    rig.advance()
    ticks.settle_due_invoices()


def seen_at() -> datetime:
    moment: datetime = value("SELECT seen_at FROM sightings")
    return moment


@pytest.mark.needs("offer")
def test_a_payment_that_all_providers_see_is_shown_before_its_block(rig: Rig) -> None:
    """A payment seen as soon keeps its quote, however late its block is; any other counts by the time of its block."""
    mine = rig.invoice()
    paid = rig.pay(stored(mine), rig.price)
    rig.look()
    assert shown(mine) == ("check", True, 0, paid.txid)
    assert (rig.deposits(), rig.holding()) == ([], 0)
    if column("SELECT is_soon FROM sightings") == [True]:
        rig.pass_time(5_000)
    rig.bury()
    rig.look()

    assert (shown(mine)[0], rig.credited(mine), events(mine)) == ("paid", rig.price, ["invoice.paid"])
    assert sightings.known(rig.code) == {}


@pytest.mark.needs("offer")
def test_a_sighting_is_shown_and_credits_nothing(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()

    assert shown(mine) == ("check", True, 0, paid.txid)
    assert (rig.deposits(), rig.holding(), events(mine)) == ([], 0, [])
    assert rows("SELECT 1 FROM ledger_transfers") == []
    (event,) = detected(mine)
    assert (event["txid"], event["waiting_for"], event["is_late"]) == (paid.txid, "block", False)

    rig.take_in(paid)
    rig.pass_time(60)
    rig.bury()
    assert (shown(mine)[0], rig.credited(mine), events(mine)) == ("paid", rig.price, ["invoice.paid"])
    assert rows("SELECT seen_at, detected_at FROM deposits") == [(seen_at(), seen_at())]
    rig.look()
    assert (sightings.known(rig.code), len(detected(mine))) == ({}, 1)


@pytest.mark.needs("offer")
def test_a_payment_seen_in_time_keeps_its_quote_however_late_its_block(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    execute("UPDATE rates SET usd = usd / 2")
    pass_by(rig, 1_000)
    assert looked(mine).invoice.generation == 1
    pass_by(rig, 5_000)
    assert shown(mine)[0] == "check"

    rig.take_in(paid)
    rig.bury()
    assert (rig.status(mine), rig.credited(mine), events(mine)) == ("paid", rig.price, ["invoice.paid"])


@pytest.mark.needs("offer")
def test_a_replacement_has_a_moment_of_its_own(rig: Rig) -> None:
    mine = rig.invoice()
    first = rig.offer(stored(mine), rig.price)
    rig.look()
    pass_by(rig, 5_000)
    second = rig.offer(stored(mine), rig.price, instead_of=first)
    rig.look()
    # Made after the expiry: it is not shown as if it paid in time.
    assert (shown(mine)[0], shown(mine)[3]) == ("check", "")

    rig.take_in(second)
    rig.bury()
    rig.look()
    ticks.settle_due_invoices()
    assert (rig.status(mine), events(mine)) == ("wrong_amount", ["invoice.wrong_amount"])
    assert rig.holding() == 0


@pytest.mark.needs("offer")
def test_a_replacement_in_time_is_shown_once(rig: Rig) -> None:
    mine = rig.invoice()
    first = rig.offer(stored(mine), rig.price // 2)
    rig.look()
    second = rig.offer(stored(mine), rig.price // 4, instead_of=first)
    rig.look()

    invoice = looked(mine).invoice
    assert (invoice.shown_txid, invoice.sighted_units) == (second.txid, (invoice.payer_units or 0) // 4)


@pytest.mark.needs("offer")
def test_one_that_vanishes_is_forgotten(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    rig.forget_waiting()
    rig.look()
    # The scan has not come to where it might be found yet.
    assert shown(mine)[3] == paid.txid
    rig.advance(2)
    rig.look()

    assert shown(mine) == ("check", False, 0, "")
    assert "gone_at" in detected(mine)[0]
    pass_by(rig, 5_000)
    assert (rig.status(mine), events(mine)) == ("expired", ["invoice.expired"])


@pytest.mark.needs("offer")
def test_a_sighting_that_returns_begins_again(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    rig.forget_waiting()
    rig.look()
    rig.advance(2)
    rig.look()
    rig.pass_time(5_000)
    rig.offer_again(paid)
    rig.look()
    rig.take_in(paid)
    rig.bury()
    ticks.settle_due_invoices()

    assert rig.status(mine) == "wrong_amount"


@pytest.mark.needs("offer")
def test_a_mined_sighting_keeps_its_time_until_the_scan_sees_it(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    rig.take_in(paid)
    rig.pass_time(5_000)
    rig.mine()
    rig.look()
    rig.look()
    ticks.settle_due_invoices()
    assert rig.status(mine) == "check"

    rig.bury()
    assert rig.status(mine) == "paid"


@pytest.mark.needs("offer")
def test_a_mined_sighting_is_soon_until_the_scan_sees_it(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    rig.take_in(paid)
    rig.mine()
    rig.look()

    assert rows("SELECT is_soon, lost_height IS NOT NULL, gone_at FROM sightings") == [(True, True, None)]


@pytest.mark.needs("offer")
def test_a_reorg_gives_it_back_to_those_that_wait(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    rig.take_in(paid)
    rig.advance()
    assert shown(mine)[2] == 1
    rig.take_out(paid)
    rig.advance(2)
    rig.look()
    assert shown(mine) == ("check", True, 0, paid.txid)

    pass_by(rig, 5_000)
    rig.take_in(paid)
    rig.bury()
    assert rig.status(mine) == "paid"


@pytest.mark.rigs("bitcoind")
def test_a_payment_mined_under_another_id_is_credited_once(rig: Rig) -> None:
    """Of a signature of the older kind everybody can make another that is as good: it changes the id, not the money."""
    assert isinstance(rig, BitcoinRig)
    mine = rig.invoice()
    seen, mined = rig.node.two_ids_of((stored(mine), rig.price))
    txid = rig.node.send(seen)
    rig.look()
    assert shown(mine) == ("check", True, 0, txid)

    rig.include(bytes.fromhex(mined))
    rig.bury()
    rig.look()
    assert (rig.status(mine), rig.credited(mine), events(mine)) == ("paid", rig.price, ["invoice.paid"])
    assert [deposit[:2] for deposit in rig.deposits()] == [(read_hex(mined).txid, "credited")]
    rig.advance()
    rig.look()
    assert rows("SELECT txid FROM sightings WHERE gone_at IS NOT NULL") == [(txid,)]
    assert txid != read_hex(mined).txid


@pytest.mark.needs("offer")
def test_too_low_a_fee_holds_no_quote_and_gives_no_moment(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price, is_soon=False)
    rig.look()
    assert shown(mine) == ("check", True, 0, paid.txid)
    pass_by(rig, 1_000)
    assert looked(mine).invoice.generation == 2
    pass_by(rig, 5_000)
    # It may be on its way all the same.
    assert rig.status(mine) == "check"

    rig.take_in(paid)
    rig.bury()
    ticks.settle_due_invoices()
    assert (rig.status(mine), rig.holding()) == ("wrong_amount", 0)


@pytest.mark.needs("offer")
def test_a_payment_made_after_the_quote_does_not_hold_it(rig: Rig) -> None:
    """Whether or not another one was made by then."""
    mine = rig.invoice()
    know_rates()
    rig.pass_time(1_000)
    rig.offer(stored(mine), rig.price)
    rig.look()
    assert column("SELECT is_soon FROM sightings") == [True]
    pass_by(rig, 10)

    assert looked(mine).invoice.generation == 2


@pytest.mark.needs("offer")
def test_a_payment_is_waited_for_a_day_and_no_longer(rig: Rig) -> None:
    mine = rig.invoice()
    paid = rig.offer(stored(mine), rig.price)
    rig.look()
    pass_by(rig, DAY_S - 100)
    assert rig.status(mine) == "check"
    pass_by(rig, 200)
    rig.look()
    assert (rig.status(mine), shown(mine)[3]) == ("expired", "")

    rig.take_in(paid)
    rig.bury()
    assert rig.status(mine) == "wrong_amount"


@pytest.mark.needs("offer", "pretend")
def test_an_invented_sighting_only_keeps_an_invoice_open(start: Start) -> None:
    rig = start(3)
    endpoint(rig.shop)
    mine = rig.invoice()
    rig.pretend(1, stored(mine), rig.price)
    rig.look()
    pass_by(rig, 1_000)
    invoice = looked(mine).invoice
    assert (invoice.status, invoice.generation, rig.deposits(), rig.holding()) == ("check", 2, [], 0)
    pass_by(rig, DAY_S)
    rig.look()

    assert (rig.status(mine), events(mine)) == ("expired", ["invoice.expired"])


@pytest.mark.needs("offer")
def test_two_of_three_pools_make_a_sighting_soon_and_one_loss_does_not_end_it(start: Start) -> None:
    rig = start(3)
    mine = rig.invoice()
    rig.offer(stored(mine), rig.price)
    rig.hide_waiting(0)
    rig.look()
    assert column("SELECT is_soon FROM sightings") == [True]

    rig.hide_waiting(1)
    rig.look()
    rig.advance(3)
    rig.look()
    # The time of the sighting stays, but it no longer counts as soon.
    assert rows("SELECT is_soon, soon_at = seen_at, gone_at FROM sightings") == [(False, True, None)]
    rig.lies()["silent"](2, stored(mine))
    rig.look()
    rig.advance(3)
    rig.look()
    assert column("SELECT gone_at FROM sightings") == [None]


@pytest.mark.needs("offer")
def test_a_vanished_sighting_holds_no_quote_while_one_provider_is_down(start: Start) -> None:
    """A buyer who takes a payment back cannot keep its price, even while a provider is down."""
    rig = start(3)
    mine = rig.invoice()
    rig.offer(stored(mine), rig.price)
    rig.look()
    rig.lies()["silent"](2, stored(mine))
    rig.look()
    assert column("SELECT is_soon FROM sightings") == [True], "two have it still"

    for number in (0, 1):
        rig.hide_waiting(number)
    rig.look()
    assert rows("SELECT is_soon, soon_at = seen_at, gone_at FROM sightings") == [(False, True, None)]
    pass_by(rig, 1_000)
    assert looked(mine).invoice.generation == 2


@pytest.mark.needs("offer")
def test_a_flood_is_read_in_portions(rig: Rig, rung: list[str]) -> None:
    mine = rig.invoice()
    rig.advance()
    for _ in range(rig.flood):
        rig.offer(stored(mine), rig.price // rig.flood)
    steps = 0
    while not steps or rung:
        rung.clear()
        rig.look()
        steps += 1

    assert steps > 1
    assert column("SELECT count(*) FROM sightings") == [rig.flood]
    assert shown(mine)[:2] == ("check", True)
    assert [age < 60 for _, age in sightings.look_ages()] == [True]


@pytest.mark.needs("offer")
def test_a_step_that_dies_has_written_nothing_and_the_next_does(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = rig.invoice()
    rig.offer(stored(mine), rig.price)

    dying_at(monkeypatch, sightings, "forget_lost", rig.look)
    assert column("SELECT count(*) FROM sightings") == [0]
    rig.look()
    first = seen_at()
    rig.pass_time(60)
    rig.restart()
    rig.look()
    rig.look()
    assert (column("SELECT count(*) FROM sightings"), seen_at()) == ([1], first)


@pytest.mark.needs("offer")
def test_a_transfer_to_or_from_the_gateway_itself_is_no_sighting(rig: Rig) -> None:
    rig.enrich()
    ours = rig.offer(stored(rig.invoice()), rig.price)
    note_taker(rig.code, ours.txid)
    rig.look()

    assert column("SELECT count(*) FROM sightings") == [0]
