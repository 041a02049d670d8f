"""Compares the payment page with the judgement: both agree on the sightings that hold a quote."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from actors.scan import sightings
from chains.base import Sighting, Sightings, Transfer
from models.db.base import app_now, close, column, execute, rows, transaction
from models.deposits import sightings as deposit_sightings
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from tests.actors.scan.paper import CTX
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.invoices.builders import PRICE, invoice, keep_rates, seen, settled, shown

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
TOKEN_UNITS = 10**6
WHOLE = 10


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def sight(to: InvoiceRow, txid: str, whole: int = WHOLE, *, spends: str = "", is_soon: bool = True) -> Sighting:
    """Return a payment of a number of coins that waits in a pool."""
    return Sighting(
        transfer=Transfer(
            txid=txid,
            ordinal="0",
            currency="USDT",
            units=whole * TOKEN_UNITS,
            sender="",
            recipient=to.address.lower(),
        ),
        spends=((spends or txid, 0),),
        is_soon=is_soon,
    )


def look(
    of: InvoiceRow, *sighting: Sighting, unseen: Collection[str] = (), gone: Collection[str] = (), head: int = 0
) -> None:
    """Record a look at the pools."""
    ours = sightings._Awaited(ETHEREUM)
    ours.addresses([of.address.lower()])
    looked_at = Sightings(seen=sighting, unseen=frozenset([*unseen, *gone]), gone=frozenset(gone), is_more=False)
    sightings._write(CTX, ETHEREUM, ours, looked_at, head)


@contextmanager
def locked_elsewhere(of: InvoiceRow) -> Iterator[None]:
    """Lock an invoice by another transaction."""
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction():
            invoices.lock(of.id)
            locked.set()
            done.wait(20)
        close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert locked.wait(10)
        yield
    finally:
        done.set()
        holder.join()


def halve() -> None:
    """Halve the coin's rate from now on, so that the next quote asks for twice as much."""
    keep_rates(USD=2, USDT=1)


def in_force(of: InvoiceRow) -> tuple[int, int]:
    """Return the number and whole coins of the quote that the payment page shows."""
    view = seen(of)
    return view.generation, (view.payer_units or 0) // USDT


def judged(of: InvoiceRow, chain: Chain, *txids: str, whole: int = WHOLE) -> tuple[str, int, int]:
    """Include payments in a block now; return the status, and the quote that they are judged by."""
    chain.mine(1, *(chain.transfer(of, whole * USDT, txid=txid) for txid in txids), at=app_now())
    chain.confirm()
    current = settled(of)
    return current.status, current.generation, (current.payer_units or 0) // USDT


def test_a_payment_doubted_and_soon_again_holds_the_quote_of_its_return(shop: UUID, chain: Chain) -> None:
    """Otherwise the page would ask for more than the judged quote, and the buyer would pay too much."""
    mine = invoice(shop)
    halve()
    pass_time(60)
    look(mine, sight(mine, "0xa"))
    pass_time(1_000)
    assert in_force(mine) == (1, 10)
    look(mine, sight(mine, "0xa", is_soon=False))
    pass_time(10)
    assert in_force(mine) == (2, 20)
    look(mine, sight(mine, "0xa"))
    pass_time(1_200)
    assert in_force(mine) == (2, 20)

    assert judged(mine, chain, "0xa") == ("check", 2, 20)


def test_a_payment_that_is_soon_again_before_its_rate_runs_out_keeps_its_moment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa"))
    before = rows("SELECT soon_at FROM sightings")
    pass_time(300)
    look(mine, sight(mine, "0xa", is_soon=False))
    pass_time(300)
    look(mine, sight(mine, "0xa"))
    pass_time(1_000)

    assert rows("SELECT soon_at FROM sightings") == before
    assert judged(mine, chain, "0xa") == ("paid", 1, 10)


def test_a_payment_that_released_its_quote_is_judged_by_its_block(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa"))
    pass_time(300)
    look(mine, sight(mine, "0xa", is_soon=False))
    pass_time(700)
    assert in_force(mine) == (2, 20)

    assert judged(mine, chain, "0xa") == ("check", 2, 20)


def test_a_payment_soon_again_after_its_rate_expired_holds_the_later_quote(shop: UUID, chain: Chain) -> None:
    """It released the first quote between two looks, when its rate expired."""
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa"))
    pass_time(300)
    look(mine, sight(mine, "0xa", is_soon=False))
    pass_time(700)
    look(mine, sight(mine, "0xa"))
    pass_time(2_000)
    assert in_force(mine) == (2, 20)

    assert judged(mine, chain, "0xa") == ("check", 2, 20)


@pytest.mark.parametrize(("again_s", "is_soon"), [(None, False), (3_700, True)])
def test_a_payment_that_was_soon_in_time_stays_in_time(
    shop: UUID, chain: Chain, again_s: int | None, *, is_soon: bool
) -> None:
    """Its price is the last one, however late its block is."""
    mine = invoice(shop)
    keep_rates(USD=1, USDT=1)
    pass_time(600)
    look(mine, sight(mine, "0xa"))
    look(mine, sight(mine, "0xa", is_soon=False))
    pass_time(3_100)
    if again_s is not None:
        look(mine, sight(mine, "0xa"))
    assert column("SELECT is_soon FROM sightings") == [is_soon]

    assert judged(mine, chain, "0xa") == ("paid", 4, 10)


def test_a_payment_that_released_its_quote_in_a_look_is_in_time_by_its_block(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=1)
    look(mine, sight(mine, "0xa"))
    pass_time(1_000)
    look(mine, unseen=["0xa"])
    assert rows("SELECT is_soon, soon_at FROM sightings") == [(False, None)]
    pass_time(3_000)

    assert judged(mine, chain, "0xa")[0] == "wrong_amount"


def test_a_payment_seen_while_another_held_the_quote_holds_it_too(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    halve()
    pass_time(60)
    look(mine, sight(mine, "0xa", 1))
    pass_time(1_500)
    look(mine, sight(mine, "0xb"))
    pass_time(10)
    look(mine, unseen=["0xa"])
    pass_time(10)
    assert in_force(mine) == (1, 10)

    assert judged(mine, chain, "0xb") == ("paid", 1, 10)


def test_a_payment_seen_without_a_rate_holds_the_last_quote(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, lifetime_s=43_200)
    keep_rates(USD=1, USDT=None)
    pass_time(900 * 2 + 3_600)
    assert shown(mine).is_unpriced
    look(mine, sight(mine, "0xa", 5))
    pass_time(60)
    keep_rates(USDT=2)
    pass_time(60)
    assert in_force(mine) == (1, 10)

    assert judged(mine, chain, "0xa", whole=5) == ("check", 1, 10)


def test_a_replacement_holds_the_quote_of_its_own_beginning(shop: UUID, chain: Chain) -> None:
    """Otherwise a buyer who replaces a payment repeatedly would keep one price for the invoice's whole life."""
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa", spends="0xf"))
    pass_time(1_000)
    assert in_force(mine) == (1, 10)
    look(mine, sight(mine, "0xb", spends="0xf"), gone=["0xa"], head=chain.height)
    pass_time(2_000)
    assert in_force(mine) == (2, 20)

    assert judged(mine, chain, "0xb") == ("check", 2, 20)


def test_a_replaced_payment_that_returns_holds_the_quote_of_its_return(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa", spends="0xf"))
    look(mine, sight(mine, "0xb", spends="0xf", is_soon=False), gone=["0xa"], head=chain.height + 9)
    assert deposit_sightings.known("ethereum") == {"0xa": False, "0xb": False}
    pass_time(1_000)
    look(mine, sight(mine, "0xa", spends="0xf"))
    pass_time(1_000)
    assert in_force(mine) == (2, 20)

    assert judged(mine, chain, "0xa") == ("check", 2, 20)


def test_a_payment_in_a_block_is_not_doubted(shop: UUID, chain: Chain) -> None:
    """A look that began before the scan finds it in no pool; it holds its quote until it is settled."""
    mine = invoice(shop)
    halve()
    look(mine, sight(mine, "0xa"))
    pass_time(1_000)
    chain.mine(1, chain.transfer(mine, PRICE, txid="0xa"), at=app_now())
    look(mine, unseen=["0xa"])

    assert in_force(mine) == (1, 10)


def test_a_look_leaves_payments_of_a_locked_invoice_to_the_next(shop: UUID, chain: Chain) -> None:
    """A page of endings locks its invoices for seconds; the rest of the look is recorded meanwhile."""
    busy, free = invoice(shop), invoice(shop)
    look(busy, sight(busy, "0xa"), sight(busy, "0xlost"))
    ours = sightings._Awaited(ETHEREUM)
    ours.addresses([busy.address.lower(), free.address.lower()])
    looked_at = Sightings(
        seen=(sight(busy, "0xb"), sight(free, "0xc")), unseen=frozenset({"0xa", "0xlost"}),
        gone=frozenset({"0xlost"}), is_more=False,
    )  # fmt: skip
    before = rows("SELECT * FROM sightings ORDER BY txid")
    with locked_elsewhere(busy):
        sightings._write(CTX, ETHEREUM, ours, looked_at, chain.height)
    assert column("SELECT txid FROM sightings WHERE owner_id = %s", (free.id,)) == ["0xc"]
    assert rows("SELECT * FROM sightings WHERE owner_id = %s ORDER BY txid", (busy.id,)) == before

    sightings._write(CTX, ETHEREUM, ours, looked_at, chain.height)
    stored = rows("SELECT txid, is_soon, lost_height IS NOT NULL FROM sightings WHERE owner_id = %s", (busy.id,))
    assert sorted(stored) == [("0xa", False, False), ("0xb", True, False), ("0xlost", True, True)]


def test_a_lost_payment_of_a_locked_invoice_stays_lost(shop: UUID, chain: Chain) -> None:
    busy = invoice(shop)
    look(busy, sight(busy, "0xa"))
    look(busy, gone=["0xa"], head=chain.height)
    chain.mine(3)
    with locked_elsewhere(busy):
        look(busy)
    assert rows("SELECT lost_height IS NOT NULL, gone_at FROM sightings") == [(True, None)]

    look(busy, gone=["0xa"], head=chain.height)
    assert rows("SELECT gone_at IS NOT NULL FROM sightings") == [(True,)]


@dataclass
class _Pool:
    """The pools of a random history: each transaction with its coin, and whether it is soon included."""

    chance: random.Random
    waiting: dict[str, tuple[str, bool]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def change(self) -> None:
        """Make one random event: a payment, a replacement, another fee, a loss, or a return."""
        action = self.chance.choice(["pay", "replace", "soon", "soon", "lose", "back", "nothing"])
        if action == "pay" and len(self.waiting) < 3:
            self._add(f"0xcoin{self.count}")
        elif action == "back" and self.left:
            txid, coin = self.left.popitem()
            if coin not in {spent for spent, _ in self.waiting.values()}:
                self.waiting[txid] = coin, self.chance.random() < 0.7
        elif self.waiting and action in {"replace", "soon", "lose"}:
            self._change(self.chance.choice(sorted(self.waiting)), action)

    def _change(self, txid: str, action: str) -> None:
        coin, is_soon = self.waiting.pop(txid)
        if action == "soon":
            self.waiting[txid] = coin, not is_soon
            return
        self.left[txid] = coin
        if action == "replace":
            self._add(coin)

    def _add(self, coin: str) -> None:
        self.count += 1
        self.waiting[f"0x{self.count}"] = coin, self.chance.random() < 0.7


def check_pools(seed: int, shop: UUID, chain: Chain, steps: int) -> None:
    """Compare page and judgement after a random history, as if a block included one of the payments now."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    mine = invoice(shop, lifetime_s=7_200)
    pool, price = _Pool(chance), 1
    keep_rates(USD=8, USDT=8)
    for _ in range(steps):
        pass_time(chance.choice([10, 100, 400, 900, 1_000]))
        if app_now() >= mine.expires_at:
            return
        price = chance.choice([price, 1, 2, 4, 8, 16])
        keep_rates(USDT=chance.choice([price * 4, price * 4, None]))
        pass_time(10)
        pool.change()
        sights = [
            sight(mine, txid, 40, spends=coin, is_soon=is_soon)
            for txid, (coin, is_soon) in pool.waiting.items()
            if deposit_sightings.known("ethereum").get(txid) != is_soon
        ]
        gone = deposit_sightings.known("ethereum").keys() - pool.waiting.keys()
        is_one_silent = chance.random() < 0.3
        look(mine, *sights, unseen=gone if is_one_silent else (), gone=() if is_one_silent else gone, head=chain.height)
        if chance.random() < 0.3:
            settled(mine)
    pass_time(5)
    if not pool.waiting or app_now() >= mine.expires_at:
        return
    before = in_force(mine)
    txid = chance.choice(sorted(pool.waiting))
    _, *after = judged(mine, chain, txid, whole=40)
    assert tuple(after) == before, (seed, txid, rows("SELECT txid, is_soon, soon_at FROM sightings"))


@pytest.mark.parametrize("seed", range(12))
def test_the_page_shows_the_price_that_a_payment_is_judged_by(seed: int, shop: UUID, chain: Chain) -> None:
    check_pools(seed, shop, chain, 1 + seed % 10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_page_and_judgement_agree_in_many_histories(seed: int, shop: UUID, chain: Chain) -> None:
    check_pools(seed, shop, chain, 1 + seed % 12)
