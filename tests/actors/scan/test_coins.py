"""On networks whose claims are coins, each coin is noted where a block creates and spends it; a reorg reverses both."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

import pytest

from actors.queue import schedule
from actors.recovery import seek, unread
from actors.scan import balances, follow, record, sightings
from actors.scan.rescan import reread
from chains.base import Agreement, Sighting, Sightings, SpentCoin, Transfer
from chains.family import Reader
from chains.spending import Departure, Offer, Output, Window
from core.catalogue import families
from core.settings.settings import load_settings
from models.db.base import column, execute, rows, transaction
from models.invoices import rows as invoices
from models.ledger.ledger import MATURING, SUSPENSE, Account
from models.recovery import adoption
from models.spends import held_coins, signing_stops, tracking, unexplained, unread_departures
from models.spends import rows as spends
from models.treasury import addresses
from models.wallets import deposits as wallet_deposits
from models.wallets import views
from tests.actors.scan import paper
from tests.actors.scan.paper import CTX, Process, begin, cursor, dying_at, poll, statuses
from tests.models.builders import CATALOGUE, USDT
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import balances_of, net_of
from tests.models.treasury.builders import spend
from tests.models.wallets.builders import wallet
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
HOT = "0x" + "aa" * 20
SERVED = load_settings(
    {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://x/y",
        "REDIS_URL": "redis://x",
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
    }
)


def claims(monkeypatch: pytest.MonkeyPatch, claim: str, *, has_sender: bool, window_s: int = 0) -> None:
    """Give the network's family another claim."""
    other = replace(families.TRAITS["evm"], claim=cast("Any", claim), has_sender=has_sender, window_s=window_s)
    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": other}))


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain of one block, which the gateway has scanned, in a family of coins."""
    del database
    claims(monkeypatch, "coins", has_sender=False)
    # On networks of coins the ledger counts in the chain's units.
    pair = replace(CATALOGUE.pairs["USDT", "ethereum"], decimals=CATALOGUE.scale("USDT"))
    pairs = MappingProxyType({**CATALOGUE.pairs, ("USDT", "ethereum"): pair})
    monkeypatch.setattr(Process, "catalogue", replace(CATALOGUE, pairs=pairs))
    addresses.pin_hot("ethereum", HOT)
    made = begin(monkeypatch)
    made.mine()
    poll()
    return made


def to(address: str, **more: Any) -> Transfer:
    """Return a transfer of a coin in the chain's units, as the ledger counts on networks of coins."""
    return replace(paper.to(address, **more), currency="ETH")


def spent(txid: str, by: str, *, vout: int = 0) -> SpentCoin:
    return SpentCoin(txid=txid, vout=vout, by_txid=by)


def stored(*columns: str) -> list[tuple[Any, ...]]:
    return rows(f"SELECT {', '.join(columns)} FROM coins ORDER BY txid, vout")


def signed(txid: str) -> UUID:
    """Write one of our spends with one attempt."""
    return spend(sender=HOT, recipient=HOT, token_units=1, txid=txid)


def held_by(txid: str, *names: str) -> UUID:
    """Let one of our spends hold coins, named by their transactions."""
    spend_id = signed(txid)
    with transaction():
        assert held_coins.hold(spend_id, [(name, 0) for name in names])
    return spend_id


def is_stopped() -> bool:
    return signing_stops.read("ethereum") is not None


def test_outputs_to_our_addresses_are_coins_and_so_is_our_spends_change(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address, txid="0xpaid", depth_min=3), to(HOT, txid="0xtop"))
    poll()
    spend_id = held_by("0xmove", "0xpaid")
    chain.mine(to(HOT, txid="0xmove", ordinal="1", sender=""), spent=(spent("0xpaid", "0xmove"),))
    poll()

    assert stored("txid", "vout", "units", "address", "depth_min", "created_height", "spent_by_txid") == [
        ("0xmove", 1, 10_000_000, HOT, 0, 3, None),
        ("0xpaid", 0, 10_000_000, mine.address.lower(), 3, 2, "0xmove"),
        ("0xtop", 0, 10_000_000, HOT, 0, 2, None),
    ]
    assert [coin.txid for coin in held_coins.of_spend(spend_id, "bitcoin")] == ["0xpaid"]
    # The change is not a payment, and the spend is not unknown.
    assert (rows("SELECT txid FROM treasury_topups"), is_stopped()) == ([("0xtop",)], False)


@pytest.mark.usefixtures("shop_endpoint")
def test_many_small_coins_do_not_count_and_a_few_complete_a_price(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear_below(monkeypatch, USDT)
    small = USDT - USDT // 10**6
    mine = invoice(shop, payer_units=3 * small, fee_ppm=0, fee_fixed_units=0)
    kept = wallet(shop, fee_ppm=0)

    chain.mine(*paying(mine.address, *[small] * 5), *paying(kept.address, *[small] * 4, USDT, name="0xkept"))
    chain.mine()
    poll()

    assert rows(
        "SELECT owner_kind, stray_reason, status, count(*) FROM deposits GROUP BY 1, 2, 3 ORDER BY 1, 2 NULLS FIRST"
    ) == [
        ("invoice", None, "credited", 3), ("invoice", "dust", "confirmed", 2),
        ("wallet", None, "credited", 1), ("wallet", "dust", "confirmed", 4),
    ]  # fmt: skip
    assert (invoices.reread(mine.id).status, invoices.reread(mine.id).confirmed_units) == ("paid", 3 * small)
    assert balances_of(shop) == {MATURING: 3 * small + USDT}
    # Booked, so that the books agree with the chain, and owed to no merchant.
    assert net_of(Account(shop, SUSPENSE, "USDT")) == 6 * small
    assert column("SELECT event FROM webhook_deliveries ORDER BY 1") == ["invoice.paid", "wallet.paid"]
    shown = views.info(CATALOGUE, kept, wallet_deposits.page(kept.id, limit=9, offset=0))
    assert sorted(each["status"] for each in shown["deposits"]) == ["credited", *["dust"] * 4]


def dear_below(monkeypatch: pytest.MonkeyPatch, token_units: int) -> None:
    """Set the network's smallest deposit."""
    pairs = dict(Process.catalogue.pairs)
    pairs["USDT", "ethereum"] = replace(pairs["USDT", "ethereum"], min_deposit_units=token_units)
    monkeypatch.setattr(Process, "catalogue", replace(CATALOGUE, pairs=MappingProxyType(pairs)))


def paying(address: str, *units: int, name: str = "0x") -> list[Transfer]:
    return [replace(paper.to(address, txid=f"{name}{n}"), units=each) for n, each in enumerate(units)]


@pytest.mark.usefixtures("shop_endpoint")
@pytest.mark.parametrize(("rest", "is_paid"), [(USDT // 2, True), (USDT // 2 - 1, False)])
def test_a_strangers_small_coins_do_not_exclude_the_coin_that_completes_the_price(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch, rest: int, *, is_paid: bool
) -> None:
    """Three small coins use up the invoice's allowance; the coin that completes the price counts beyond it."""
    dear_below(monkeypatch, USDT)
    price = 5 * USDT
    mine = invoice(shop, payer_units=price, fee_ppm=0, fee_fixed_units=0)

    chain.mine(*paying(mine.address, 1, 1, 1, name="0xspeck"))
    chain.mine(*paying(mine.address, price - USDT // 2 - 3, name="0xmain"))
    chain.mine(*paying(mine.address, USDT // 4, rest, *[USDT // 2] * 5 * is_paid, name="0xrest"))
    chain.mine()
    poll()

    # A coin that does not complete the price does not count, nor does any after it.
    dust = 6 if is_paid else 2
    assert rows("SELECT count(*) FROM deposits WHERE stray_reason = 'dust'") == [(dust,)]
    assert invoices.reread(mine.id).status == ("paid" if is_paid else "check")


@pytest.mark.parametrize("at_once", [True, False])
def test_small_coins_in_a_pool_count_as_in_their_block(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    dear_below(monkeypatch, USDT)
    mine = invoice(shop, payer_units=5 * USDT, fee_ppm=0, fee_fixed_units=0)
    coins = paying(mine.address, *[USDT - 1] * 5, USDT * 2 + 2)
    sights = [Sighting(transfer=coin, spends=(("0xf", n),), is_soon=True) for n, coin in enumerate(coins)]

    def seen(*some: Sighting) -> None:
        ours = sightings._Awaited(ETHEREUM)
        ours.addresses([mine.address.lower()])
        looked_at = Sightings(seen=some, unseen=frozenset(), gone=frozenset(), is_more=False)
        sightings._write(CTX, ETHEREUM, ours, looked_at, 0)

    for part in [sights] if at_once else [[each] for each in sights]:
        seen(*part)
    before = invoices.reread(mine.id).sighted_units
    # The same sighting again changes nothing; another one with the same inputs replaces it.
    seen(*sights)
    seen(replace(sights[0], transfer=replace(coins[0], txid="0xdearer", units=USDT - 2)))
    after = invoices.reread(mine.id).sighted_units
    chain.mine(replace(coins[0], txid="0xdearer", units=USDT - 2), *coins[1:])
    poll()

    assert (before, after) == (5 * USDT - 1, 5 * USDT - 2)
    assert rows("SELECT sum(amount_units)::bigint FROM deposits WHERE stray_reason IS NULL") == [(after,)]


def test_a_coin_may_be_created_and_spent_in_one_block(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"), spent=(spent("0xone", "0xthief"),))
    poll()

    assert stored("txid", "created_height", "spent_by_txid", "spent_height") == [("0xone", 2, "0xthief", 2)]


def test_a_reorg_reverses_coins_and_their_spending(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xold"))
    chain.mine(to(HOT, txid="0xyoung"))
    poll()
    held_by("0xmove", "0xold", "0xyoung")
    chain.mine(spent=(spent("0xold", "0xmove"), spent("0xyoung", "0xmove")))
    poll()
    assert stored("txid", "created_height", "spent_height") == [("0xold", 2, 4), ("0xyoung", 3, 4)]

    chain.reorg(2)
    chain.mine()
    poll()
    assert stored("txid", "created_height", "created_hash", "spent_by_txid", "spent_height", "spent_hash") == [
        ("0xold", 2, "0x0-2", None, None, None), ("0xyoung", None, None, None, None, None),
    ]  # fmt: skip
    # Another block has it now, and the same spend still holds both.
    chain.mine(to(HOT, txid="0xyoung"), spent=(spent("0xold", "0xmove"),))
    poll()
    assert stored("txid", "created_height", "spent_height", "held_by IS NULL") == [
        ("0xold", 2, 4, False), ("0xyoung", 4, None, False),
    ]  # fmt: skip
    assert not is_stopped()


def test_a_step_that_dies_in_a_block_notes_no_coin(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    held_by("0xmove", "0xone")
    chain.mine(to(invoice(shop).address), spent=(spent("0xone", "0xmove"),))

    dying_at(monkeypatch, record, "take_transfer", poll)
    assert (stored("txid", "spent_height"), cursor()[0]) == ([("0xone", None)], 2)
    poll()
    assert (stored("txid", "spent_height"), statuses()) == ([("0xaa", None), ("0xone", 3)], ["pending"])


def test_a_retreat_that_dies_reverses_nothing(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.reorg(1)
    chain.mine()

    dying_at(monkeypatch, unexplained, "take_out", poll)
    assert (stored("created_height"), cursor()) == ([(2,)], (2, "0x0-2"))
    poll(2)
    assert (stored("created_height"), cursor()) == ([(None,)], (2, "0x1-2"))


def test_a_replaced_first_block_reverses_its_coins(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.reorg(0)
    chain.mine(count=2)
    poll()

    assert stored("created_height") == [(None,)]


def test_an_unexplained_departure_of_our_coin_stops_the_signing(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(to(HOT, txid="0xthief"), spent=(spent("0xone", "0xthief"),))
    poll()

    stopped = signing_stops.read("ethereum")
    assert stopped is not None
    assert stopped.reason == unread_departures.REASON
    assert unexplained.waiting() == {"ethereum": 1}
    # Its output to our own address is not a payment.
    assert rows("SELECT txid FROM treasury_topups") == [("0xone",)]
    poll(2)
    with transaction():
        signing_stops.note_caught_up("ethereum")
    stopped = signing_stops.read("ethereum")
    assert stopped is not None
    assert not signing_stops.resume(stopped, {})


def test_an_unexplained_departure_ends_by_a_reorg_or_a_row(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xthief"),))
    poll()
    assert signing_stops.has_unexplained("ethereum")

    chain.reorg(2)
    chain.mine()
    poll(2)
    assert not signing_stops.has_unexplained("ethereum")
    chain.mine(spent=(spent("0xone", "0xthief"),))
    poll()
    assert rows("SELECT block_height, block_hash FROM unexplained_departures") == [(4, "0x1-4")]
    assert signing_stops.has_unexplained("ethereum")
    signed("0xthief")
    assert not signing_stops.has_unexplained("ethereum")


def depart(chain: PaperReader, txid: str, **more: Any) -> Departure:
    """Let the node show the outputs of an unexplained departure in the newest block."""
    block = chain.scans[chain.tip].block
    document: dict[str, Any] = {
        "sender": "", "pair": CATALOGUE.pairs["USDT", "ethereum"], "is_transfer": True, "raw": b"signed",
        "outputs": (Output(recipient="0xthem", units=7), Output(recipient=HOT, units=3)),
        "offer": Offer(ceiling_units=5, terms={"fee_units": 5}), "fee_units": 5, "height": block.height,
        "block_hash": block.hash, "spends": (("0xone", 0),),
    }  # fmt: skip
    chain.departures[txid] = Departure(txid=txid, **(document | more))
    return chain.departures[txid]


def parts(txid: str) -> list[tuple[str, int]]:
    departure = unexplained.find("ethereum", txid)
    return [] if departure is None else [(part.recipient, part.units) for part in departure.parts]


def test_the_sums_of_an_unexplained_departure_are_read_without_its_change(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xthief"),))
    poll()
    assert unexplained.find("ethereum", "0xthief") is None
    unread._rests_until.clear()
    depart(chain, "0xthief")
    poll()

    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    assert (departure.sender, departure.slot, departure.outpoints, departure.is_transfer) == (
        "",
        None,
        [("0xone", 0)],
        True,
    )
    assert (parts("0xthief"), departure.recipient, departure.token_units) == ([("0xthem", 7)], "0xthem", 7)
    assert unread_departures.waiting("ethereum", limit=9) == []
    assert unexplained.waiting() == {"ethereum": 1}


def test_a_full_page_of_read_departures_notifies_the_next(
    chain: PaperReader, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "READ_PER_STEP", 1)
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xthief"),))
    follow.poll_network("ethereum")
    rung.clear()
    seek.seek_departures("ethereum")
    assert (rung, unexplained.find("ethereum", "0xthief")) == ([], None), "no node shows it"

    unread._rests_until.clear()
    depart(chain, "0xthief")
    for bells in (["seek_departures:ethereum"], []):
        rung.clear()
        seek.seek_departures("ethereum")
        assert [bell for bell in rung if bell.startswith("seek")] == bells


@pytest.mark.parametrize(
    ("spends", "outputs", "is_transfer"),
    [
        ((("0xone", 0), ("0xanothers", 1)), [("0xthem", 7)], False),
        ((("0xone", 0),), [("0xthem", 7)], True),
    ],
)
def test_an_unexplained_departure_with_foreign_coins_matches_no_payout(
    chain: PaperReader, spends: tuple[tuple[str, int], ...], outputs: list[tuple[str, int]], *, is_transfer: bool
) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xthief"),))
    depart(chain, "0xthief", spends=spends)
    poll()
    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    assert (parts("0xthief"), departure.is_transfer) == (outputs, is_transfer)


def test_an_unexplained_departure_to_our_own_address_is_a_join(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xjoin"),))
    depart(chain, "0xjoin", outputs=(Output(recipient=HOT, units=10),))
    poll()
    assert parts("0xjoin") == [(HOT, 10)]
    departure = unexplained.find("ethereum", "0xjoin")
    assert departure is not None
    with transaction():
        assert adoption.adopt(CATALOGUE, departure.id)
    assert rows("SELECT purpose, sender, slot, attempts FROM spends") == [("join", HOT, None, 1)]
    assert rows("SELECT txid, held_by = (SELECT id FROM spends) FROM coins") == [("0xone", True)]


def test_an_unexplained_departure_that_a_reorg_took_stops_no_signing_and_is_void_once_its_coin_is_spent(
    chain: PaperReader,
) -> None:
    chain.mine(to(HOT, txid="0xone"))
    poll()
    chain.mine(spent=(spent("0xone", "0xthief"),))
    depart(chain, "0xthief")
    poll()
    assert signing_stops.has_unexplained("ethereum")
    chain.reorg(2)
    chain.mine()
    poll(2)
    assert not signing_stops.has_unexplained("ethereum")
    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    with transaction():
        assert not adoption.adopt(CATALOGUE, departure.id)

    chain.mine(spent=(spent("0xone", "0xother"),))
    poll()
    with transaction():
        assert adoption.adopt(CATALOGUE, departure.id)
    assert rows("SELECT status FROM unexplained_departures WHERE txid = '0xthief'") == [("dismissed",)]


def test_a_second_reading_finds_a_coin_that_the_first_missed(chain: PaperReader) -> None:
    chain.mine(to(HOT, txid="0xone"))
    chain.mine()
    whole = chain.scans[2]
    chain.scans[2] = replace(whole, transfers=())
    poll()
    chain.scans[2] = whole
    reread(CTX, ETHEREUM, cast("Reader", chain), 2)
    assert stored("txid", "created_height") == [("0xone", 2)]

    held_by("0xmove", "0xone")
    chain.scans[3] = replace(chain.scans[3], spent=(spent("0xone", "0xmove"),))
    for _ in range(2):
        reread(CTX, ETHEREUM, cast("Reader", chain), 3)
    assert stored("txid", "spent_height", "spent_by_txid") == [("0xone", 3, "0xmove")]


def test_no_coin_is_noted_in_a_family_with_counters(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, "counter", has_sender=True)
    chain.mine(to(HOT, txid="0xone"))
    poll()
    assert stored("txid") == []


# A family whose transactions live in a window ----------------------------------------------------------------------


def test_an_unexplained_departure_of_our_sender_stops_the_signing(
    chain: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims(monkeypatch, "window", has_sender=True)
    signed("0xours")
    chain.mine(sent=((HOT, "0xours"), ("0xother", "0xnobodys")))
    poll()
    assert not is_stopped()

    chain.mine(sent=((HOT, "0xthief"), ("0xother", "0xnobodys")))
    poll()
    assert rows("SELECT txid, block_height FROM unexplained_departures") == [("0xthief", 3)]
    assert is_stopped()
    assert stored("txid") == []

    chain.reorg(2)
    chain.mine()
    poll(2)
    assert rows("SELECT txid, block_height FROM unexplained_departures") == [("0xthief", None)]


def test_a_departure_that_another_key_signed_is_dismissed(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, "window", has_sender=True)
    chain.mine(sent=((HOT, "0xstrangers"),))
    depart(chain, "0xstrangers", sender="0xother", spends=(), window=Window(reference="1", last_height=9))
    poll()
    assert rows("SELECT status, settled_by FROM unexplained_departures") == [("dismissed", "the gateway")]


def test_a_departure_shown_for_another_block_is_refused(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, "window", has_sender=True)
    chain.mine(sent=((HOT, "0xthief"),))
    window = Window(reference="1", last_height=9)
    depart(chain, "0xthief", sender=HOT, spends=(), window=window, block_hash="0xelsewhere")
    poll()
    assert unexplained.find("ethereum", "0xthief") is None
    assert is_stopped()

    unread._rests_until.clear()
    depart(chain, "0xthief", sender=HOT, spends=(), window=window)
    poll()
    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    assert (departure.sender, departure.key_ordinal, departure.expires_height, len(departure.parts)) == (
        HOT,
        None,
        9,
        2,
    )


def test_an_unexplained_departure_whose_window_ended_is_void_unless_in_a_block(
    chain: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims(monkeypatch, "window", has_sender=True)
    chain.mine(sent=((HOT, "0xthief"),))
    depart(chain, "0xthief", sender=HOT, spends=(), window=Window(reference="1", last_height=chain.tip + 1))
    poll()
    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    chain.reorg(1)
    for blocks, is_void in ((1, False), (2, True)):
        chain.mine(count=blocks)
        poll(2)
        with transaction():
            assert adoption.adopt(CATALOGUE, departure.id) is is_void


def test_a_second_reading_finds_a_departure_too(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, "window", has_sender=True)
    chain.mine()
    poll()
    chain.scans[2] = replace(chain.scans[2], sent=((HOT, "0xthief"),))
    reread(CTX, ETHEREUM, cast("Reader", chain), 2)
    assert is_stopped()


@pytest.mark.parametrize(
    ("first", "second", "same", "other", "is_alive"),
    [
        (True, True, 0, 0, True),
        (True, False, 1, 2, False),
        (True, False, 0, 2, False),
        (True, False, 1, 1, True),
        (True, False, 0, 1, True),
        (True, False, 2, 2, True),
        (False, True, 2, 0, False),
    ],
)
def test_an_included_attempt_is_taken_back_by_two_providers_that_lack_it(
    chain: PaperReader,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: bool,
    second: bool,
    same: int,
    other: int,
    is_alive: bool,
) -> None:
    """One that a single provider invents keeps no spend whose window is over; one that a single one hides stays."""
    chain.providers, chain.included = 3, Agreement(same=same, other=other)

    assert is_alive_after(chain, monkeypatch, first=first, second=second) is is_alive


@pytest.mark.parametrize(
    ("first", "same", "other", "ends", "is_alive"),
    [
        (True, 1, 2, True, False),
        (True, 1, 1, True, True),
        # A hidden inclusion is found by the second reading. Were it invented, it is judged once its time is over.
        (False, 0, 2, True, True),
        # Where numbers do not end, another transaction in the slot ends a spend.
        (True, 1, 2, False, True),
    ],
)
def test_an_included_attempt_whose_number_ends_is_taken_back_alike(
    chain: PaperReader,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: bool,
    same: int,
    other: int,
    ends: bool,
    is_alive: bool,
) -> None:
    chain.providers, chain.included = 3, Agreement(same=same, other=other)
    end = is_alive_after(chain, monkeypatch, first=first, second=not first, claim="counter", ends=ends)
    assert end is is_alive


@pytest.mark.parametrize("first", [True, False])
def test_a_provider_that_is_alone_is_believed_about_attempts(
    chain: PaperReader, monkeypatch: pytest.MonkeyPatch, *, first: bool
) -> None:
    chain.included = Agreement(same=0, other=2)

    assert is_alive_after(chain, monkeypatch, first=first, second=not first)


def is_alive_after(
    chain: PaperReader,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: bool,
    second: bool,
    claim: str = "window",
    ends: bool = False,
) -> bool:
    """Read a block twice, with our attempt in it or not; return whether its spend counts as included."""
    claims(monkeypatch, claim, has_sender=True, window_s=120 * ends)
    ours = signed("0xours")
    shown = {True: ((HOT, "0xours"), ("0xother", "0xnobodys")), False: ()}
    chain.mine(sent=shown[first])
    poll()
    height = chain.tip
    chain.scans[height] = replace(chain.scans[height], sent=shown[second])
    for _ in range(2):
        reread(CTX, ETHEREUM, cast("Reader", chain), height)
    with transaction():
        row = spends.lock(ours)
        assert row is not None
        is_alive = tracking.is_seen_alive(row)
    assert is_stopped() is is_alive
    return is_alive


def test_a_family_without_hidden_transfers_is_not_probed(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(families.TRAITS["evm"], has_hidden_transfers=False)
    watched = wallet(shop).address.lower()
    execute(
        "INSERT INTO balance_probes (network, address, owner_kind) VALUES ('ethereum', %s, 'wallet')"
        " ON CONFLICT DO NOTHING",
        (watched,),
    )
    chain.mine()
    poll()
    # This reader knows no balances.
    with pytest.raises(AttributeError, match="balance"):
        balances.probe_balances("ethereum")
    assert "probe_balances" in rung_for_ethereum()

    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": other}))
    balances.probe_balances("ethereum")
    assert "probe_balances" not in rung_for_ethereum()


def rung_for_ethereum() -> set[str]:
    return {ring.doorbell.actor for ring in schedule.rings(SERVED)}
