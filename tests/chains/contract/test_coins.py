"""Duties of families with coins: each coin is spent once, whether by us or a thief, and whatever a reorg removes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from actors import context
from actors.signer import sign
from actors.signer.intents import coin_of
from actors.treasury import reconcile, sweep
from actors.treasury.join import COINS_FEW
from chains import registry
from chains.bitcoin import treasurer
from chains.bitcoin.spends import selection
from chains.spending import Case, Coin, Coins, Fate, Intent, KeyRef, Output, OutputFate, Purse
from cli.treasury import commands
from core.logs import checkpoints
from models.db.base import execute, rows
from models.payouts import freezes
from models.spends import coins
from models.treasury import plan as treasury_plan
from tests.actors.signer.moments import once
from tests.chains.contract.bitcoin import BitcoinRig
from tests.chains.contract.rig import PATIENCE_S, Payment, Rig, status, stored
from tests.chains.contract.toy import CoinsRig

pytestmark = pytest.mark.claims("coins")


def fill(rig: Rig, *units: int) -> list[Payment]:
    """Give the hot wallet coins of these sizes, free to be spent; the first is the deepest."""
    paid = []
    for each in units:
        paid.append(rig.pay(rig.hot, each))
        rig.mine()
    rig.advance(rig.network.maturity)
    return paid


def free(rig: Rig) -> list[Coin]:
    return list(map(coin_of, coins.free(rig.code, rig.network.family, rig.currency, limit=1_000)))


def holders() -> list[tuple[int, int]]:
    """Return, of each spend that holds coins, how many its first attempt claims, and how many only later ones."""
    return rows(
        "SELECT count(*) FILTER (WHERE held_number = 0), count(*) FILTER (WHERE held_number > 0) FROM coins"
        " WHERE held_by IS NOT NULL GROUP BY held_by ORDER BY held_by"
    )


def fee_of(rig: Rig) -> int:
    """Return what a payment of one coin costs that leaves no change."""
    spender, one = registry.spender(rig.network, context.context().settings), free(rig)[0]
    wallet = KeyRef(address=rig.hot, ordinal=None)
    cap = registry.fee_cap_units(rig.network, context.context().settings)
    intent = Intent(wallet=wallet, pair=None, outputs=(Output(recipient=rig.recipient(), units=one.units // 2),))
    return spender.draft(intent, Purse(coins=(one,)), cap_units=cap).offer.ceiling_units


@pytest.fixture(autouse=True)
def _deaf() -> None:
    checkpoints.listen(None)


def test_two_workers_on_the_same_coins_spend_each_once(rig: Rig) -> None:
    fill(rig, rig.price * 3, rig.price * 3)
    recipient = rig.recipient()
    order = rig.order(recipient)
    wallet = sign.hot_wallet(rig.network)
    intent = Intent(wallet=wallet, pair=None, outputs=(Output(recipient=rig.hot, units=rig.price),))
    once(
        "spending.quoted",
        lambda: sign.start(context.context(), rig.network, purpose="filler", intent=intent),
    )
    rig.sign()
    checkpoints.listen(None)
    assert holders() == [(1, 0), (1, 0)]
    rig.follow()

    assert (rig.units_at(recipient), status(order)) == (rig.price, "confirmed")
    assert rows("SELECT state FROM spends") == [("confirmed",)] * 2


def test_a_reorg_that_takes_a_coins_making_and_its_spending_loses_neither(rig: Rig) -> None:
    (made,) = fill(rig, rig.price * 3)
    recipient = rig.recipient()
    order = rig.order(recipient)
    rig.sign()
    rig.follow(1)
    depth = rig.network.maturity + rig.network.confirmations + 1
    rig.reorg(depth, (made, depth - 1))
    rig.catch_up()
    assert free(rig) == [], "what a spend holds stays held"
    assert rows("SELECT count(*) FROM coins WHERE spent_by_txid IS NOT NULL") == [(0,)]

    rig.sign()
    rig.pass_time(PATIENCE_S)
    rig.sign()
    rig.follow()
    assert (rig.units_at(recipient), status(order)) == (rig.price, "confirmed")
    # The change, in as many coins as the family makes of it.
    assert {coin.key.address for coin in free(rig)} == {rig.hot}


def bumped(rig: Rig) -> tuple[str, tuple[str, bytes], str]:
    """Let what pays without change be stuck until it takes a further coin.

    Returns the recipient, its first attempt, and the id of the second.
    """
    fill(rig, rig.price * 3)
    exact = rig.price + fee_of(rig)
    spent = free(rig)[0]
    # The first coin is spent already; one remains that pays to the last unit, and one more.
    elsewhere = Intent(
        wallet=sign.hot_wallet(rig.network), pair=None, outputs=(Output(recipient=rig.hot, units=exact),)
    )
    cap = registry.fee_cap_units(rig.network, context.context().settings)
    spender = registry.spender(rig.network, context.context().settings)
    draft = spender.draft(elsewhere, Purse(coins=(spent,)), cap_units=cap)
    assert isinstance(draft.claim, Coins)
    sign.start(context.context(), rig.network, purpose="join", intent=elsewhere, draft=draft)
    rig.follow(2)

    recipient = rig.recipient()
    rig.order(recipient)
    rig.sign()
    rig.stall()
    rig.sign()
    payout = rows(
        "SELECT a.txid, a.raw FROM spend_attempts a JOIN spends s ON s.id = a.spend_id WHERE s.purpose = 'payout'"
        " ORDER BY a.number"
    )
    assert len(payout) == 2
    return recipient, (payout[0][0], bytes(payout[0][1])), payout[1][0]


@pytest.mark.needs("stall")
def test_a_payout_without_change_is_offered_more_with_other_coins_and_paid_once(rig: Rig) -> None:
    recipient, _, dearer = bumped(rig)
    rig.follow()

    assert rig.units_at(recipient) == rig.price
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", dearer)]
    assert rig.findings() == []


@pytest.mark.needs("stall")
def test_the_coin_of_a_dearer_offer_is_free_again_once_the_older_one_is_in_for_good(rig: Rig) -> None:
    recipient, (original, raw), _ = bumped(rig)
    before = rows("SELECT count(*) FROM coins WHERE held_by IS NOT NULL AND spent_by_txid IS NULL")
    rig.include(raw)
    rig.follow()
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", original)]
    rig.advance(rig.network.maturity + 40)
    rig.sign()

    assert rig.units_at(recipient) == rig.price
    assert before != [(0,)]
    assert rows("SELECT count(*) FROM coins WHERE held_by IS NOT NULL AND spent_by_txid IS NULL") == [(0,)]
    assert rig.findings() == []


def many(rig: Rig, count: int) -> None:
    """Give the hot wallet this many coins, with nothing due."""
    for _ in range(count):
        rig.pay(rig.hot, rig.price)
    rig.advance(rig.network.maturity)


def test_many_coins_become_few_and_nothing_but_the_fee_is_gone(rig: Rig) -> None:
    many(rig, COINS_FEW)
    rig.keep_and_follow()
    assert rows("SELECT count(*) FROM spends") == [(0,)], "so many are few"

    many(rig, 2)
    (text,) = commands._joins(context.context(), rig.code)
    assert (text["coins"], text["verdict"]) == (COINS_FEW + 2, "join")
    assert "joined at the hot wallet once that is cheap" in commands._join_line(text)
    rig.keep_and_follow()

    ((fee,),) = rows("SELECT sum(chain_fee_units) FROM spends WHERE purpose = 'join' AND state = 'confirmed'")
    assert len(free(rig)) < COINS_FEW
    assert sum(coin.units for coin in free(rig)) == (COINS_FEW + 2) * rig.price - fee
    assert rows("SELECT count(*) FROM treasury_topups") == [(COINS_FEW + 2,)], "what we join is nobody's top-up"
    assert rig.findings() == []
    (text,) = commands._joins(context.context(), rig.code)
    assert "are spent where they lie" in commands._join_line(text)


@pytest.mark.rigs("bitcoind")
def test_coins_are_joined_one_transaction_at_a_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(rig, BitcoinRig)
    monkeypatch.setattr(treasurer, "COINS_MAX", 2)
    rig.peers[0].lies["estimatesmartfee"] = {"feerate": 0.00001, "blocks": 3}
    many(rig, COINS_FEW + 5)
    for _ in range(2):
        sweep.keep_treasury(rig.code)
    assert rows("SELECT purpose, count(*) FROM spends GROUP BY 1") == [("join", 1)]

    rig.follow(1)
    sweep.keep_treasury(rig.code)
    assert rows("SELECT purpose, count(*) FROM spends GROUP BY 1") == [("join", 2)]


@pytest.mark.parametrize("reason", ["frozen", "due", "no room"])
def test_nothing_is_joined_while_a_network_is_frozen_a_payout_is_due_or_no_more_may_wait(
    rig: Rig, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(rig, COINS_FEW + 1)
    if reason == "no room":
        monkeypatch.setattr(sign, "has_room", lambda *_: False)
    elif reason == "frozen":
        freezes.freeze("network", rig.code, reason="a test", frozen_by="test")
    else:
        rig.order(rig.recipient())
    with capture_logs() as logs:
        sweep.keep_treasury(rig.code)
    assert (rows("SELECT count(*) FROM spends"), logs) == ([(0,)], [])


def test_deposited_coins_pay_out_directly(rig: Rig) -> None:
    mine, recipient = rig.invoice(), rig.recipient()
    rig.pay(stored(mine), rig.price * 3)
    rig.advance(rig.network.maturity)
    order = rig.order(recipient)
    rig.sign()
    rig.follow()

    assert (rig.units_at(recipient), status(order), rig.units_at(stored(mine))) == (
        rig.price, "confirmed", 0,
    )  # fmt: skip
    ((fee,),) = rows("SELECT chain_fee_units FROM spends")
    assert rig.units_at(rig.hot) == 2 * rig.price - fee
    assert rows("SELECT (SELECT count(*) FROM deposits), (SELECT count(*) FROM treasury_topups)") == [(1, 0)]
    assert rig.findings() == []
    assert treasury_plan.whole(
        context.context().catalogue, context.context().market.read(),
        treasury_plan.policy_of(context.context().settings), rig.network, limit=9,
    ) == ()  # fmt: skip


def test_foreign_coins_are_spent_once_mature_and_change_at_once(rig: Rig) -> None:
    rig.pay(rig.hot, rig.price * 3)
    for _ in range(rig.network.maturity - 1):
        rig.advance()
        assert sign.free_coins(rig.network, rig.currency) == ()
    rig.advance()
    assert len(sign.free_coins(rig.network, rig.currency)) == 1

    rig.order(rig.recipient())
    rig.sign()
    rig.advance()
    change = sign.free_coins(rig.network, rig.currency)
    assert {coin.depth for coin in change} == {1}


def test_a_flood_of_small_coins_stops_no_payout(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "COINS_MAX", 3)
    fill(rig, *[rig.price // 100] * 4, rig.price * 3)
    recipient = rig.recipient()
    order = rig.order(recipient)
    rig.sign()
    rig.follow()

    assert (rig.units_at(recipient), status(order)) == (rig.price, "confirmed")


@pytest.mark.needs("pay_ripening")
def test_a_miners_coin_is_spent_when_it_is_ripe(rig: Rig) -> None:
    takes = rig.pay_ripening(rig.hot, rig.price)
    rig.advance(takes - 1)
    assert sign.free_coins(rig.network, rig.currency) == ()
    rig.advance()
    assert len(sign.free_coins(rig.network, rig.currency)) == 1


def test_coins_spent_and_made_above_the_scan_are_no_loss(rig: Rig) -> None:
    fill(rig, rig.price * 3, rig.price * 3)
    rig.order(rig.recipient())
    rig.sign()
    rig.pay(rig.hot, rig.price)
    # The chain is asked at a tip that the scan has not come to.
    rig.mine(2)
    reconcile.reconcile(rig.code)
    assert rows("SELECT count(*), max(height) FROM balance_snapshots") == [(1, rig.tip())]
    rig.catch_up()
    reconcile.reconcile(rig.code)

    assert rows("SELECT is_sound, height FROM reconciliations") == [(True, rig.tip())]


@pytest.fixture
def toy(rig: Rig) -> CoinsRig:
    """The rig of which it is known which coins it takes."""
    assert isinstance(rig, CoinsRig)
    return rig


@pytest.mark.rigs("toycoins")
def test_a_thief_who_takes_the_coin_of_a_dearer_offer_alone_buries_nothing(toy: CoinsRig) -> None:
    recipient, (original, raw), dearer = bumped(toy)
    assert holders()[-1] == (1, 1)
    ((txid, vout),) = rows("SELECT txid, vout FROM coins WHERE held_number = 1")
    tx = toy.chain.pool.pop(dearer)
    toy.chain.pool[toy.stolen(tx, (txid, vout)).txid] = toy.stolen(tx, (txid, vout))
    toy.advance(toy.network.maturity + 1)
    toy.sign()
    assert rows("SELECT state FROM spends WHERE purpose = 'payout'") == [("sent",)], "the older offer can be included"

    toy.include(raw)
    toy.follow()
    assert toy.units_at(recipient) == toy.price
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", original)]


@pytest.mark.rigs("toycoins")
def test_a_payout_that_lost_a_coin_of_its_dearer_offer_is_offered_more_and_paid_once(toy: CoinsRig) -> None:
    recipient, (original, _), dearer = bumped(toy)
    ((txid, vout, units),) = rows("SELECT txid, vout, units FROM coins WHERE held_number = 1")
    thief = toy.stolen(toy.chain.pool.pop(dearer), (txid, vout))
    toy.chain.pool[thief.txid] = thief
    # The fee of the older transaction is never enough.
    toy.chain.withheld.add(original)
    toy.pay(toy.hot, toy.price)
    toy.advance(toy.network.maturity + 1)
    toy.sign()
    toy.write_off(units)
    toy.catch_up()
    toy.stall()
    toy.sign()
    toy.follow()

    attempts = rows("SELECT a.txid FROM spend_attempts a JOIN spends s ON s.id = a.spend_id WHERE purpose = 'payout'")
    ((state, mined),) = rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'")
    assert (state, toy.units_at(recipient)) == ("confirmed", toy.price)
    assert (mined,) in attempts
    assert mined not in {original, dearer}
    assert rows(
        "SELECT s.purpose FROM coins k JOIN spends s ON s.id = k.held_by WHERE (k.txid, k.vout) = (%s, %s)",
        (txid, vout),
    ) == [("lost",)]
    assert toy.findings() == []


@pytest.mark.rigs("toycoins")
def test_a_coin_taken_meanwhile_is_not_signed_for(toy: CoinsRig) -> None:
    wallet = sign.hot_wallet(toy.network)
    intent = Intent(wallet=wallet, pair=None, outputs=(Output(recipient=toy.recipient(), units=1_000),))
    once("watch.priced", lambda: sign.start(context.context(), toy.network, purpose="cold", intent=intent))
    # The further coin is gone when it is to be held.
    with pytest.raises(AssertionError):
        bumped(toy)
    checkpoints.listen(None)
    assert rows(
        "SELECT count(*) FROM spend_attempts a JOIN spends s ON s.id = a.spend_id WHERE purpose = 'payout'"
    ) == [(1,)]


@pytest.mark.rigs("toycoins")
def test_a_family_that_says_that_coins_had_no_effect_is_not_believed(
    toy: CoinsRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(toy, toy.price * 3)
    recipient = toy.recipient()
    order = toy.order(recipient)
    toy.sign()
    spender = registry.spender(toy.network, context.context().settings)
    real_fate = spender.fate

    def lie(case: Case) -> Fate:
        fate = real_fate(case)
        return replace(fate, outputs=tuple(OutputFate(effect="none") for _ in fate.outputs))

    with monkeypatch.context() as patch:
        patch.setattr(spender, "fate", lie)
        toy.follow(3)
    assert (status(order), rows("SELECT state FROM spends")) == ("sent", [("sent",)])

    toy.follow(1)
    assert (toy.units_at(recipient), status(order)) == (toy.price, "confirmed")


@pytest.mark.rigs("toycoins")
def test_a_coin_that_the_chain_lacks_freezes_the_payouts(toy: CoinsRig) -> None:
    fill(toy, toy.price, toy.price)
    assert toy.findings() == []
    lost = free(toy)[0]
    del toy.chain.state.coins[lost.txid, lost.vout]

    ((currency, place, misses),) = toy.findings()
    assert (currency, place, misses >= 3) == (toy.currency, "hot", True)
    ((reason,),) = rows("SELECT reason FROM payout_freezes")
    assert "our coins should be worth 20" in reason
    assert "and 10" in reason


@pytest.mark.rigs("toycoins")
def test_a_coin_of_one_provider_alone_is_neither_spent_nor_missed(toy: CoinsRig) -> None:
    fill(toy, toy.price, toy.price)
    first = free(toy)[0]
    execute("UPDATE treasury_topups SET doubted_for = 'missing' WHERE txid = %s", (first.txid,))
    assert first not in sign.free_coins(toy.network, toy.currency)
    assert len(sign.free_coins(toy.network, toy.currency)) == 1
    del toy.chain.state.coins[first.txid, first.vout]
    assert toy.findings() == []
    execute("UPDATE treasury_topups SET doubted_for = NULL")
    assert toy.findings() != []
    execute("DELETE FROM payout_freezes")


@pytest.mark.rigs("toycoins")
def test_unspent_coin_beyond_our_coins_credits_nothing(toy: CoinsRig) -> None:
    fill(toy, toy.price)
    assert toy.findings() == []
    toy.nodes[0].lies["unspent"] = lambda truth, *_: truth + 1
    assert toy.findings() == []
    assert (toy.compared(), rows("SELECT count(*) FROM treasury_topups")) == (1, [(1,)])


@pytest.mark.rigs("toycoins")
def test_a_snapshot_whose_coins_a_reorg_replaced_proves_nothing(toy: CoinsRig) -> None:
    fill(toy, toy.price)
    toy.mine()
    reconcile.reconcile(toy.code)
    assert rows("SELECT count(*) FROM balance_snapshots") == [(1,)]
    execute("UPDATE balance_snapshots SET asked_hash = 'another'")
    toy.catch_up()
    reconcile.reconcile(toy.code)
    assert (toy.compared(), rows("SELECT count(*) FROM balance_snapshots")) == (0, [(0,)])


def test_what_all_together_cannot_be_paid_from_leaves_as_far_as_there_is_coin(rig: Rig) -> None:
    fill(rig, rig.price * 3 // 2, rig.price * 3 // 2)
    orders = [rig.order(rig.recipient()) for _ in range(4)]
    rig.sign()

    assert sorted(status(order) for order in orders) == ["approved", "approved", "sent", "sent"]
    assert rows("SELECT count(*), count(DISTINCT spend_id) FROM spend_outputs") == [(2, 1)]
    assert rows("SELECT DISTINCT wait_reason FROM payouts WHERE status = 'approved'") == [
        ("the hot wallet holds too little",)
    ]


@pytest.mark.rigs("toycoins")
def test_payouts_leave_in_as_few_spends_as_hold_them(toy: CoinsRig) -> None:
    fill(toy, *[toy.price * 9] * 3)
    orders = [toy.order(toy.recipient()) for _ in range(12)]
    toy.sign()
    assert rows("SELECT count(*) FROM spend_outputs GROUP BY spend_id") == [(4,), (4,), (4,)]
    toy.follow()
    assert {status(order) for order in orders} == {"confirmed"}
    assert toy.findings() == []


@pytest.mark.rigs("toycoins")
def test_what_is_too_much_goes_to_the_cold_address_and_what_payouts_hold_is_not_taken_off_twice(toy: CoinsRig) -> None:
    fill(toy, toy.price * 4, toy.price * 9)
    cold = toy.recipient()
    toy.env |= {f"{toy.code.upper()}_COLD_ADDRESS": cold, "HOT_LIMIT_USD": "50"}
    toy.restart()
    toy.poll()
    toy.order(toy.recipient())
    toy.sign()
    toy.pass_time(0)
    sweep.keep_treasury(toy.code)
    toy.follow()

    # Of the coin that no payout holds, what is above the limit, whatever the payout takes.
    assert toy.units_at(cold) == 4 * toy.price
    assert toy.findings() == []


@pytest.mark.rigs("bitcoind")
def test_a_large_surplus_goes_to_the_cold_address_in_parts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    # Room for one coin and its change.
    monkeypatch.setattr(selection, "VBYTES_MAX", 400)
    fill(rig, *[rig.price * 4] * 3)
    cold = rig.recipient()
    rig.env |= {f"{rig.code.upper()}_COLD_ADDRESS": cold, "HOT_LIMIT_USD": "50"}
    rig.restart()
    rig.pass_time(0)
    for _ in range(2):
        sweep.keep_treasury(rig.code)
        rig.follow()

    assert rig.units_at(cold) > 6 * rig.price
    assert rows("SELECT state FROM spends WHERE purpose = 'cold'") == [("confirmed",)] * 2
    assert rig.findings() == []
