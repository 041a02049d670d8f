"""What a family whose money lies in coins owes: each spent once, by whoever holds it, whatever the chain takes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from actors import context
from actors.signer import spend as spending
from actors.signer.intents import coin_of
from chains import registry
from chains.base import Case, Coin, Coins, Fate, Intent, KeyRef, Output, OutputFate, Purse
from core.catalogue.families import traits_of
from core.logs import checkpoints
from models.db.base import rows
from models.spends import coins
from tests.chains.contract.rig import PATIENCE_S, Payment, Rig, status
from tests.chains.contract.toy import CoinsRig


@pytest.fixture
def coin_rig(rig: Rig) -> Rig:
    if traits_of(rig.network).claim != "coins":
        pytest.skip("money lies at addresses here")
    return rig


def fill(rig: Rig, *units: int) -> list[Payment]:
    """Let the hot wallet have coins of so much each, free to be spent, the first the deepest."""
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


def once(label: str, act: Callable[[], object]) -> None:
    """Do something the first time that a label is reached."""
    done: list[str] = []

    def hear(reached: str) -> None:
        if reached == label and not done:
            done.append(reached)
            act()

    checkpoints.listen(hear)


@pytest.fixture(autouse=True)
def _deaf() -> None:
    checkpoints.listen(None)


def test_two_workers_who_want_the_same_coins_spend_each_once(coin_rig: Rig) -> None:
    fill(coin_rig, coin_rig.price * 3, coin_rig.price * 3)
    recipient, other = coin_rig.recipient(), coin_rig.recipient()
    order = coin_rig.order(recipient)
    wallet = spending.hot_wallet(coin_rig.network)
    intent = Intent(wallet=wallet, pair=None, outputs=(Output(recipient=other, units=coin_rig.price),))
    once(
        "spending.quoted",
        lambda: spending.start(context.context(), coin_rig.network, purpose="cold", intent=intent),
    )
    coin_rig.sign()
    checkpoints.listen(None)
    assert holders() == [(1, 0), (1, 0)]
    coin_rig.follow()

    assert (coin_rig.held(recipient), status(order), coin_rig.held(other)) == (
        coin_rig.price, "confirmed", coin_rig.price,
    )  # fmt: skip


def test_a_reorg_that_takes_a_coins_making_and_its_spending_loses_neither(coin_rig: Rig) -> None:
    (made,) = fill(coin_rig, coin_rig.price * 3)
    recipient = coin_rig.recipient()
    order = coin_rig.order(recipient)
    coin_rig.sign()
    coin_rig.follow(1)
    depth = coin_rig.network.maturity + coin_rig.network.confirmations + 1
    coin_rig.reorg(depth, (made, depth - 1))
    coin_rig.catch_up()
    assert free(coin_rig) == [], "what a spend holds stays held"
    assert rows("SELECT count(*) FROM coins WHERE spent_by_txid IS NOT NULL") == [(0,)]

    coin_rig.sign()
    coin_rig.pass_time(PATIENCE_S)
    coin_rig.sign()
    coin_rig.follow()
    assert (coin_rig.held(recipient), status(order)) == (coin_rig.price, "confirmed")
    assert [coin.key.address for coin in free(coin_rig)] == [coin_rig.hot]


def bumped(rig: Rig) -> tuple[str, tuple[str, bytes], str]:
    """Let what pays without change be stuck until it takes a further coin.

    Returns the recipient, its first attempt, and the id of the second.
    """
    fill(rig, rig.price * 3)
    exact = rig.price + fee_of(rig)
    spent = free(rig)[0]
    # The first coin is gone before: what is left are one that pays to the last unit, and one more.
    elsewhere = Intent(
        wallet=spending.hot_wallet(rig.network), pair=None, outputs=(Output(recipient=rig.hot, units=exact),)
    )
    cap = registry.fee_cap_units(rig.network, context.context().settings)
    spender = registry.spender(rig.network, context.context().settings)
    draft = spender.draft(elsewhere, Purse(coins=(spent,)), cap_units=cap)
    assert isinstance(draft.claim, Coins)
    spending.start(context.context(), rig.network, purpose="join", intent=elsewhere, draft=draft)
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
def test_what_has_no_change_is_offered_more_with_what_other_coins_bring_and_paid_once(coin_rig: Rig) -> None:
    recipient, _, dearer = bumped(coin_rig)
    coin_rig.follow()

    assert coin_rig.held(recipient) == coin_rig.price
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", dearer)]
    assert coin_rig.findings() == []


@pytest.mark.needs("stall")
def test_the_coin_of_a_dearer_offer_is_free_again_once_the_older_one_is_in_for_good(coin_rig: Rig) -> None:
    recipient, (original, raw), _ = bumped(coin_rig)
    before = rows("SELECT count(*) FROM coins WHERE held_by IS NOT NULL AND spent_by_txid IS NULL")
    coin_rig.include(raw)
    coin_rig.follow()
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", original)]
    coin_rig.advance(coin_rig.network.maturity + 40)
    coin_rig.sign()

    assert coin_rig.held(recipient) == coin_rig.price
    assert before != [(0,)]
    assert rows("SELECT count(*) FROM coins WHERE held_by IS NOT NULL AND spent_by_txid IS NULL") == [(0,)]
    assert coin_rig.findings() == []


@pytest.fixture
def toy(coin_rig: Rig) -> CoinsRig:
    if not isinstance(coin_rig, CoinsRig):
        pytest.skip("of the toy family it is known which coins it takes")
    return coin_rig


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
    assert toy.held(recipient) == toy.price
    assert rows("SELECT state, mined_txid FROM spends WHERE purpose = 'payout'") == [("confirmed", original)]


def test_a_coin_that_somebody_takes_meanwhile_is_not_signed_for(toy: CoinsRig) -> None:
    wallet = spending.hot_wallet(toy.network)
    intent = Intent(wallet=wallet, pair=None, outputs=(Output(recipient=toy.recipient(), units=1_000),))
    once("watch.priced", lambda: spending.start(context.context(), toy.network, purpose="cold", intent=intent))
    # The further coin is gone when it is to be held.
    with pytest.raises(AssertionError):
        bumped(toy)
    checkpoints.listen(None)
    assert rows(
        "SELECT count(*) FROM spend_attempts a JOIN spends s ON s.id = a.spend_id WHERE purpose = 'payout'"
    ) == [(1,)]


def test_a_family_that_says_that_coins_had_no_effect_is_not_believed(
    toy: CoinsRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(toy, toy.price * 3)
    recipient = toy.recipient()
    order = toy.order(recipient)
    toy.sign()
    spender = registry.spender(toy.network, context.context().settings)
    told = spender.fate

    def lie(case: Case) -> Fate:
        fate = told(case)
        return replace(fate, outputs=tuple(OutputFate(effect="none") for _ in fate.outputs))

    with monkeypatch.context() as patch:
        patch.setattr(spender, "fate", lie)
        toy.follow(3)
    assert (status(order), rows("SELECT state FROM spends")) == ("sent", [("sent",)])

    toy.follow(1)
    assert (toy.held(recipient), status(order)) == (toy.price, "confirmed")
