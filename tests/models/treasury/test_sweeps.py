"""Walks over addresses, sweeps that return deposits they could not take, and payouts that are woken."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.ids import uuid7
from core.rates.pricing import Market
from core.rates.worth import SweepPolicy
from models.db.base import column, execute, one, rows, transaction
from models.deposits import cursors
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends import unread_departures
from models.spends.outputs import Moved
from models.spends.rows import AttemptRow, Inclusion, Movement
from models.treasury import addresses, sweeps, topup_doubts, topups
from models.treasury import plan as treasury_plan
from models.treasury.rows import Topup
from models.treasury.sweeps import Unswept
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.invoices.builders import invoice, paid
from tests.models.ledger.figures import balances_of, net_of
from tests.models.treasury.builders import COLD, HOT, other_with_slot, pin_hot, spend, topup, topup_rows


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("currency", "fee_units", "cost_units"), [("ETH", 30_000, 21_000), ("USDT", 70_000, 91_000)])
def test_a_sweep_is_judged_by_its_own_fee_and_not_by_a_payouts(currency: str, fee_units: int, cost_units: int) -> None:
    method = (currency, "ethereum")
    market = Market(rates={}, network_fees={method: fee_units}, sweep_fees={method: cost_units})
    unswept = Unswept(currency=currency, address="0x1", ordinal=1, units=10**18)
    policy = SweepPolicy(min_usd=1, fee_max_percent=1)
    [planned] = treasury_plan.judged(CATALOGUE, market, policy, CATALOGUE.networks["ethereum"], [unswept])
    assert planned.cost_units == cost_units


def deposited(chain: Chain, count: int = 1) -> list[InvoiceRow]:
    return [paid(chain, invoice()) for _ in range(count)]


def sweep_of(made: InvoiceRow) -> UUID | None:
    row = one("SELECT sweep_id FROM deposits WHERE address = %s", (made.address.lower(),))
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def take(unswept: Unswept) -> UUID:
    """Claim an address for a sweep, in the order in which the signer does it."""
    with transaction():
        spend_id = uuid7()
        assert sweeps.take("ethereum", unswept, spend_id)
        spend(purpose="sweep", sender=unswept.address, recipient=HOT, currency="USDT", token_units=1, id=spend_id)
    return spend_id


def test_a_walk_repeats_page_by_page(database: str) -> None:
    del database
    wanted = sorted(made.address.lower() for made in deposited(Chain(), 5))

    def step() -> list[str]:
        return [page.address for page in sweeps.walk("ethereum", "sweep", family="evm", limit=2)]

    assert [step() for _ in range(4)] == [wanted[:2], wanted[2:4], wanted[4:], wanted[:2]]
    assert sweeps.walk("ethereum", "reconcile", family="evm", limit=9)[0].units == 10 * USDT


def test_a_walk_over_left_gas_visits_swept_addresses_that_got_gas(chain: Chain) -> None:
    pin_hot()
    here = (chain.height, chain._hash())
    wanted, other, waiting = [], "", ""
    for number, each in enumerate(made.address.lower() for made in deposited(chain, 5)):
        if number < 3:
            wanted.append(each)
            spend(recipient=each, token_units=9, mined=here)
        elif number == 3:
            other = each
            spend(purpose="sweep", recipient=other, token_units=9, mined=here)
        else:
            waiting = each
            spend(recipient=waiting, token_units=9, mined=here)
    for each in sweeps.unswept("ethereum", family="evm", limit=9):
        if each.address != waiting:
            take(each)
    spend(purpose="sweep", sender=other, recipient=HOT, token_units=9, mined=here)

    def walk() -> list[str]:
        # Six addresses got something: the hot wallet, one without gas and one whose deposit waits among them.
        pages = [sweeps.walk_gas("ethereum", "ETH", family="evm", limit=2) for _ in range(4)]
        return [each.address for page in pages for each in page]

    assert walk() == sorted(wanted)
    assert walk() == sorted(wanted)


def test_unconfirmed_and_swept_deposits_are_left_out(chain: Chain) -> None:
    (made,) = deposited(chain)
    chain.pay(invoice(), USDT)
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    assert (unswept.address, unswept.units) == (made.address.lower(), 10 * USDT)
    assert sweeps.unswept("ethereum", family="evm", limit=9, height=chain.height - 5) == []

    take(unswept)
    assert sweeps.unswept("ethereum", family="evm", limit=9) == []
    assert sweeps.busy_addresses("ethereum") == {unswept.address, HOT}


def test_a_claim_of_a_wrong_sum_takes_no_deposit(database: str) -> None:
    del database
    (made,) = deposited(Chain())
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    with transaction():
        assert not sweeps.take("ethereum", Unswept("USDT", unswept.address, unswept.ordinal, USDT), uuid7())
        execute("UPDATE deposits SET sweep_id = NULL")
    assert sweep_of(made) is None


@pytest.mark.parametrize("ending", ["failed", "dead"])
def test_a_failed_or_dead_sweep_returns_its_deposits(chain: Chain, ending: str) -> None:
    (made,) = deposited(chain)
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    spend_id = take(unswept)
    assert sweep_of(made) == spend_id

    if ending == "dead":
        with transaction():
            assert spend_tracking.bury(CATALOGUE, spend_id, attempts=1) is None, "no transaction is known in its slot"
            other_with_slot(spend_id)
            assert spend_tracking.bury(CATALOGUE, spend_id, attempts=1) is not None
    else:
        chain.mine()
        include(chain, spend_id, is_success=False)
        chain.mature()
        with transaction():
            assert spend_tracking.ripen(CATALOGUE, spend_id) is not None
    assert rows("SELECT state FROM spends") == [(ending,)]
    assert sweep_of(made) is None
    assert [again.address for again in sweeps.unswept("ethereum", family="evm", limit=9)] == [unswept.address]
    assert_sound()


@pytest.mark.parametrize("currency", ["USDT", "ETH"])
def test_a_failed_sweep_that_took_effect_after_a_reorg_has_its_deposits_again(chain: Chain, currency: str) -> None:
    """Later deposits are still at the address. In the network's coin, the fee is missing from the moved sum."""
    (made,) = deposited(chain)
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    spend_id = take(unswept)
    chain.mine()
    include(chain, spend_id, is_success=False)
    chain.mature()
    with transaction():
        assert spend_tracking.ripen(CATALOGUE, spend_id) is not None
        spend_tracking.reopen(spend_id)
        spend_tracking.note_taken_out(CATALOGUE, spend_id)
    assert sweep_of(made) is None
    chain.pay_and_confirm(made, USDT)
    token = CATALOGUE.pairs["USDT", "ethereum"].contract
    moved = (10 * 10**6, token) if currency == "USDT" else (1, None)
    execute("UPDATE spends SET (token_units, contract, decimals, currency) = (%s, %s, 6, %s)", (*moved, currency))
    execute("UPDATE deposits SET currency = %s, status = 'credited'", (currency,))

    chain.mine()
    include(chain, spend_id)
    chain.confirm()
    with transaction():
        assert spend_tracking.ripen(CATALOGUE, spend_id) is not None

    assert rows("SELECT state, settled_at IS NULL FROM spends") == [("failed", False)]
    swept = [taken == spend_id for (taken,) in rows("SELECT sweep_id FROM deposits ORDER BY block_height")]
    assert swept == ([True, False] if currency == "USDT" else [True, True])


def include(chain: Chain, spend_id: UUID, *, is_success: bool = True) -> None:
    sweep = spends.find(spend_id)
    assert sweep is not None
    coin, units = sweep.currency, sweep.token_units
    moved = [Movement(sweep.sender, coin, -units), Movement(HOT, coin, units)]
    with transaction():
        spend_tracking.note_mined(
            CATALOGUE,
            spend_id,
            Inclusion(
                txid="0xswept",
                height=chain.height,
                block_hash=chain._hash(),
                outputs=(Moved("exact") if is_success else Moved("none", problem="reverted"),),
                fee_units=7,
                movements=(*(moved if is_success else ()), Movement("0xpayer", "ETH", -7)),
            ),
        )


def test_a_sweep_changes_no_balance_and_books_only_its_gas(chain: Chain) -> None:
    (made,) = deposited(chain)
    before = balances_of(made.merchant_id)
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    spend_id = take(unswept)
    chain.mine()
    include(chain, spend_id)
    chain.confirm()
    with transaction():
        spend_tracking.ripen(CATALOGUE, spend_id)

    assert balances_of(made.merchant_id) == before
    assert net_of(Account(GATEWAY, CUSTODY, "ETH", "ethereum")) == 7
    assert net_of(Account(GATEWAY, CUSTODY, "USDT", "ethereum")) == -10 * USDT
    assert_sound()


def test_a_sweep_wakes_payouts_that_wait_for_its_coin(chain: Chain) -> None:
    shop = merchant()
    mine = paid(chain, invoice(shop))
    for number, currency in enumerate(("USDT", "DAI")):
        execute(
            "INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, currency, network, address,"
            " amount_units, fee_units, to_units, held_units, is_fee_on_top, status, created_by, due_at, wait_reason)"
            " VALUES (%s, %s, %s, 'payout', %s, %s, 'ethereum', '0xto', 1, 0, 1, 1, true, 'approved', 'test',"
            " app_now() + interval '1 hour', 'too little')",
            (uuid7(), shop, str(number), f"hold:{number}", currency),
        )
    assert sweeps.wanted_currencies("ethereum") == {"USDT", "DAI"}
    assert sweeps.open_payout_units("ethereum") == {"USDT": 1, "DAI": 1}
    (unswept,) = sweeps.unswept("ethereum", family="evm", limit=9)
    spend_id = take(unswept)
    chain.mine()
    include(chain, spend_id)

    assert rows("SELECT currency FROM payouts WHERE due_at <= app_now()") == [("USDT",)]
    assert mine.merchant_id == shop


# Top-ups ----------------------------------------------------------------------------------------------------


def test_a_doubted_top_up_is_not_booked_and_delays_no_other(chain: Chain) -> None:
    for units in (5, 7):
        chain.mine()
        topup(chain, units)
    chain.mine(chain.network.maturity)
    doubted, believed = column("SELECT txid FROM treasury_topups ORDER BY block_height")
    assert topup_doubts.doubt("ethereum", doubted, str(rows("SELECT ordinal FROM treasury_topups")[0][0]))
    assert topups.book_matured(chain.network, limit=1) == 1
    assert topups.book_matured(chain.network, limit=9) == 0
    assert rows("SELECT txid FROM treasury_topups WHERE status = 'booked'") == [(believed,)]


def test_a_top_up_with_a_larger_depth_is_booked_later(chain: Chain) -> None:
    chain.mine()
    deep = chain.network.maturity + 3
    execute("UPDATE treasury_topups SET depth_min = %s WHERE id = %s", (deep, topup(chain, 5).id))
    chain.mine(deep - 2)
    assert topups.book_matured(chain.network, limit=9) == 0
    chain.mine()
    assert topups.book_matured(chain.network, limit=9) == 1


def test_a_top_up_is_booked_once_its_block_is_final(chain: Chain) -> None:
    chain.mine()
    topup(chain, 5)
    height = chain.height
    chain.mature()
    cursors.seen_final("ethereum", height - 1)
    assert topups.book_matured(chain.network, limit=9) == 0
    cursors.seen_final("ethereum", height)
    assert topups.book_matured(chain.network, limit=9) == 1
    assert_sound()


def test_a_top_up_is_booked_at_maturity_and_reversed_once(chain: Chain) -> None:
    chain.mine()
    topup(chain, 5)
    chain.mine(chain.network.maturity - 2)
    assert topups.book_matured(chain.network, limit=9) == 0
    chain.mine()
    assert topups.book_matured(chain.network, limit=9) == 1
    assert topups.book_matured(chain.network, limit=9) == 0
    assert net_of(Account(GATEWAY, EQUITY, "ETH")) == 5
    assert_sound()

    chain.fork(chain.network.maturity)
    assert topups.reverse_orphans("ethereum") == 1
    assert topups.reverse_orphans("ethereum") == 0
    assert net_of(Account(GATEWAY, EQUITY, "ETH")) == 0
    assert topup_rows() == [(5, "reversed", "transfer")]
    assert_sound()


def test_a_transfer_that_was_counted_as_balance_names_it(chain: Chain) -> None:
    known = topup(chain, 5)
    chain.mine()
    with transaction():
        assert topups.record(unnamed(chain, 7))
        # A transfer of a part of it was counted too, though it names no transaction.
        assert not topups.record(at(known, chain.height - 1, txid="0xpart", units=2))
        assert not topups.record(at(known, chain.height - 1, txid="0xlate", units=7))
        # A later transfer is new.
        assert topups.record(at(known, chain.height + 1, txid="0xnew", units=7))
    assert topup_rows("units", "txid")[1:] == [(7, "0xlate"), (7, "0xnew")]


def unnamed(chain: Chain, units: int) -> Topup:
    return Topup(
        id=uuid7(),
        network="ethereum",
        txid="",
        ordinal=topups.balance_ordinal("ETH", chain.height),
        currency="ETH",
        units=units,
        sender="",
        address=HOT,
        origin="balance",
        block_height=chain.height,
        block_hash=chain._hash(),
    )


def at(like: Topup, height: int, *, txid: str, units: int) -> Topup:
    return like.but(id=uuid7(), txid=txid, units=units, origin="transfer", block_height=height, block_hash="0x")


# Moves between our own addresses ----------------------------------------------------------------------------


def test_gas_sweeps_and_fees_explain_a_balance_by_height(chain: Chain) -> None:
    pin_hot()
    address = "0x" + "dd" * 20
    block = (chain.height, chain._hash())
    spend(recipient=address, token_units=1_000, mined=block)
    spend(
        purpose="sweep", sender=address, recipient=HOT, currency="USDT", token_units=77, mined=block, chain_fee_units=30
    )
    chain.mine()
    later = (chain.height, chain._hash())
    spend(purpose="sweep", sender=address, recipient=HOT, token_units=900, mined=later, chain_fee_units=20)
    spend(purpose="sweep", sender=address, recipient=HOT, token_units=900, mined=later, is_success=False,
          chain_fee_units=5)  # fmt: skip

    def moved(at_height: int) -> int:
        return addresses.moved_native_units("ethereum", address, "ETH", height=at_height)

    assert moved(chain.height - 2) == 0
    assert moved(chain.height - 1) == 970
    assert moved(chain.height) == 970 - 900 - 20 - 5
    assert not addresses.is_in_motion("ethereum", [address])
    spend(recipient=address, token_units=1)
    assert addresses.is_in_motion("ethereum", [address])
    assert not addresses.is_in_motion("ethereum", ["0xother"])


def test_a_move_is_ours_by_transaction_and_sender(database: str) -> None:
    del database
    spend(recipient="0xdeposit", token_units=1, txid="0xmove")
    assert addresses.is_own_move("ethereum", "0xmove", HOT)
    assert not addresses.is_own_move("ethereum", "0xmove", "0xcontract")
    assert not addresses.is_own_move("bsc", "0xmove", HOT)
    assert not addresses.is_own_move("ethereum", "0xother", HOT)


def test_a_move_is_ours_by_its_mark_if_the_other_side_has_another_id(database: str) -> None:
    del database
    row = spends.find(spend(recipient="0xdeposit", token_units=1, txid="0xmove"))
    assert row is not None
    assert not addresses.is_own_move("ethereum", "", HOT)
    AttemptRow(
        spend_id=row.id, number=row.attempts + 1, network="ethereum", txid="0xdearer", raw=b"x", ceiling_units=1,
        terms={}, mark="message 7",
    ).write()  # fmt: skip
    for sender, is_ours in ((HOT, True), (None, True), ("0xcontract", False)):
        assert addresses.is_own_move("ethereum", "message 7", sender) is is_ours
    assert not addresses.is_own_move("bsc", "message 7", None)
    for blank in (HOT, None):
        assert not addresses.is_own_move("ethereum", "", blank), "a move without a mark is not ours"
    with pytest.raises(Exception, match="spend_attempts"):
        execute("UPDATE spend_attempts SET mark = 'message 8'")


def test_a_departure_is_not_a_payment_before_it_is_read(database: str) -> None:
    del database
    with transaction():
        unread_departures.note("ethereum", "window", {"0xlost": HOT}, height=1, block_hash="0x1")
    assert addresses.is_own_move("ethereum", "0xlost", HOT)
    assert not addresses.is_own_move("ethereum", "0xlost", "0xcontract")


def test_the_cold_address_may_be_replaced_and_removed(database: str) -> None:
    del database
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    assert addresses.set_cold("ethereum", None)
    assert addresses.address("ethereum", "cold") is None
    assert addresses.set_cold("ethereum", COLD)
    assert addresses.address("ethereum", "cold") == COLD


def test_a_page_of_the_walk_is_read_from_its_index_alone(database: str) -> None:
    del database
    execute("SET enable_seqscan = off")
    plan = "\n".join(
        row[0]
        for row in rows(
            "EXPLAIN SELECT currency, address, sum(amount_units) FROM deposits WHERE network = 'ethereum'"
            " AND sweep_id IS NULL AND status IN ('confirmed', 'credited') AND (currency, address) > ('USDT', '0x5')"
            " GROUP BY currency, address ORDER BY currency, address LIMIT 200"
        )
    )
    execute("RESET enable_seqscan")
    assert "deposits_to_sweep" in plan
    assert "Sort" not in plan
