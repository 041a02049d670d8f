"""Compares random histories of a merchant's shared sales with a small model: holds, refunds, releases, reorgs.

Available less debt is one number, as in test_money_machine. A share is four numbers, which the model counts by itself:
left, taken by refunds, released, and taken by a reorg.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from actors.merchants.shares import release_splits
from models.db.base import app_now, execute, rows, transaction
from models.deposits import crediting
from models.deposits.rows import Deposit
from models.invoices import settlement
from models.invoices.rows import InvoiceRow
from models.ledger import releases
from models.ledger.ledger import InsufficientFundsError
from models.merchants import splits
from models.outcomes import endings
from models.payouts.rows import PayoutRow
from tests.models.builders import CATALOGUE, Chain, assert_sound, merchant
from tests.models.invariants.test_money_machine import HISTORIES_SOAK, PARTS, play
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import owes
from tests.models.ledger.sharing import add_rule, places
from tests.models.payouts.builders import fund
from tests.models.refunds.builders import FEE, refund, sent
from tests.models.spends import by_hand

NETWORK = CATALOGUE.networks["ethereum"]
STEP_UNITS = 10**12
FREE = {"fee_ppm": 0, "fee_fixed_units": 0, "fee_fixed_usd_cents": 0}
HISTORIES, STEPS, STEPS_SOAK = 120, 4, 25
HOLD_HOURS = 72

# An audit reads all earlier histories, too.
SOUND_EVERY = 20

_numbers, _ends = count(1), count(1)
index = st.integers(min_value=0, max_value=1_000)
# No multiples of the divisors of percentages.
amounts = st.integers(min_value=1, max_value=60).map(lambda n: n * 333_333 * STEP_UNITS)
percentages = st.sampled_from([0.01, 9.99, 33.33, 50, 66.67, 100])


@dataclass
class Share:
    """A recipient's part of one life of a sale."""

    recipient: int
    ppm: int
    left: int
    is_held: bool
    taken: int = 0
    released: int = 0
    reversed: int = 0
    is_over: bool = False

    @property
    def shown(self) -> tuple[int, int, int, int]:
        return self.left, self.taken, self.released, self.reversed


@dataclass
class Sale:
    """A sale with its only deposit."""

    invoice: InvoiceRow
    deposit: Deposit
    height: int
    credited: int = 0
    waiting: int = 0
    is_mature: bool = False
    is_gone: bool = False
    shares: list[Share] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)

    @property
    def units(self) -> int:
        return self.deposit.amount_units

    @property
    def refundable(self) -> int:
        return self.credited - sum(refund.amount for refund in self.refunds if refund.is_live)


@dataclass
class Refund:
    """A refund, and the units that it took of each share."""

    row: PayoutRow
    amount: int
    takes: list[tuple[Share, int]]
    is_open: bool = True
    is_live: bool = True
    is_sent: bool = False

    @property
    def borne(self) -> int:
        return sum(units for _, units in self.takes)


class SplitMachine(RuleBasedStateMachine):
    """One merchant with two recipients. Other histories are in the same database and must not matter."""

    chain: Chain

    def __init__(self) -> None:
        super().__init__()
        self.shop = merchant()
        self.recipients = [merchant(), merchant()]
        self.received = [0, 0]
        self.rules: list[tuple[UUID, int, int]] = []
        self.hold_hours = 0
        self.sales: list[Sale] = []
        # Shares of every life of a sale.
        self.shares: list[Share] = []
        self.free = 0
        self.chain.time = app_now()
        self.chain.mine()
        self.first_height = self.chain.height

    # Terms ----------------------------------------------------------------------------------------------

    @initialize(percents=st.lists(percentages, min_size=1, max_size=2), units=amounts)
    def begin(self, percents: list[float], units: int) -> None:
        for percent in percents:
            self._share(percent)
        self.sell(units)

    def _share(self, percent: float) -> None:
        ppm, to = round(percent * 10_000), len(self.rules) % 2
        if ppm + sum(ppm for _, _, ppm in self.rules) <= 1_000_000:
            made = add_rule(self.shop, self.recipients[to], percent)
            self.rules.append((made.id, to, ppm))

    @rule(percent=percentages, pick=index, hours=st.sampled_from([0, HOLD_HOURS]))
    def change_terms(self, percent: float, pick: int, hours: int) -> None:
        """Delete one rule, add another, and make later shares wait or not."""
        if self.rules:
            rule_id, _, _ = self.rules.pop(pick % len(self.rules))
            assert splits.delete(self.shop, rule_id)
        self._share(percent)
        splits.set_config(self.shop, enabled=None, hold_hours=hours)
        self.hold_hours = hours

    # Money in -------------------------------------------------------------------------------------------

    @rule(units=amounts)
    def sell(self, units: int) -> None:
        sold = invoice(self.shop, payer_units=units, **FREE)
        deposit = self.chain.transfer(sold, units, txid=f"0xshared{next(_numbers)}")
        self.chain.mine(1, deposit)
        self.sales.append(Sale(sold, deposit, self.chain.height))
        self.chain.confirm()
        self._follow()

    @precondition(lambda self: any(sale.credited and not sale.is_mature for sale in self.sales))
    @rule()
    def mature(self) -> None:
        self.chain.mature()
        self._follow()

    def _follow(self) -> None:
        """Credit and mature deep deposits, and count the same."""
        for sale in self.sales:
            if not sale.credited and not sale.is_gone:
                settlement.settle(CATALOGUE, sale.invoice.id)
                if self._depth(sale) >= NETWORK.confirmations:
                    self._credit(sale)
        crediting.release_matured(NETWORK, limit=10_000)
        for sale in self.sales:
            if sale.credited and not sale.is_mature and self._depth(sale) >= NETWORK.maturity:
                self.free += sale.waiting
                sale.waiting, sale.is_mature = 0, True

    def _depth(self, sale: Sale) -> int:
        return self.chain.height - sale.height + 1

    def _credit(self, sale: Sale) -> None:
        repaid = min(sale.units, max(0, -self.free))
        self.free += repaid
        kept = sale.units - repaid
        parts = [(to, ppm, kept * ppm // 1_000_000 // STEP_UNITS * STEP_UNITS) for _, to, ppm in self.rules]
        sale.shares = [Share(to, ppm, units, bool(self.hold_hours)) for to, ppm, units in parts if units]
        self.shares += sale.shares
        sale.credited, sale.is_mature = sale.units, False
        sale.waiting = kept - sum(share.left for share in sale.shares)

    @rule(depth=st.integers(min_value=1, max_value=6), back=st.booleans())
    def reorg(self, depth: int, back: bool) -> None:  # noqa: FBT001 - hypothesis draws it
        depth = min(depth, self.chain.height - self.first_height)
        if depth:
            self.chain.reorg(depth)
            lost = [sale for sale in self.sales if sale.height > self.chain.height and not sale.is_gone]
            for sale in lost:
                self._lose(sale)
            for sale in lost if back else ():
                self.chain.mine(1, sale.deposit)
                sale.height = self.chain.height
            for sale in lost:
                sale.is_gone = not back
            self.chain.mine(1)
            self._follow()

    def _lose(self, sale: Sale) -> None:
        if not sale.credited:
            return
        for refund_ in sale.refunds:
            if refund_.is_open and not refund_.is_sent:
                self._give_back(refund_)
        self.free -= sale.credited - sale.waiting - sum(share.left for share in sale.shares)
        for share in sale.shares:
            share.reversed, share.left, share.is_over = share.left, 0, True
        sale.credited, sale.waiting, sale.shares = 0, 0, []

    # Money out ------------------------------------------------------------------------------------------

    @precondition(lambda self: any(sale.refundable > 0 for sale in self.sales))
    @rule(pick=index, part=st.integers(min_value=1, max_value=4), helped=st.booleans())
    def refund(self, pick: int, part: int, helped: bool) -> None:  # noqa: FBT001
        able = [sale for sale in self.sales if sale.refundable > 0]
        sale = able[pick % len(able)]
        amount = max(STEP_UNITS, sale.refundable // part // STEP_UNITS * STEP_UNITS)
        takes = [(s, min(s.left, amount * s.ppm // 1_000_000 // STEP_UNITS * STEP_UNITS)) for s in sale.shares]
        own = amount + FEE - sum(units for _, units in takes)
        if helped and 0 <= self.free < own:
            fund(self.shop, own)
            self.free += own
        if self.free < own:
            with pytest.raises(InsufficientFundsError):
                refund(sale.invoice, amount)
            return
        sale.refunds.append(Refund(refund(sale.invoice, amount), amount, [(s, n) for s, n in takes if n]))
        self.free -= own
        for share, units in takes:
            share.left, share.taken = share.left - units, share.taken + units

    @precondition(lambda self: any(self._open()))
    @rule(pick=index, ending=st.sampled_from(["sign", "confirmed", "failed", "cancelled"]))
    def end_refund(self, pick: int, ending: str) -> None:
        waiting = self._open()
        refund_ = waiting[pick % len(waiting)]
        if ending == "cancelled":
            if not refund_.is_sent:
                with transaction():
                    assert endings.cancel_unsigned(CATALOGUE, refund_.row.id)
                self._give_back(refund_)
            return
        if not refund_.is_sent:
            sent(refund_.row)
            refund_.is_sent = True
        if ending != "sign":
            with transaction():
                by_hand.change("state = %s", by_hand.OF_PAYOUT, (ending, refund_.row.id))
                endings.end(CATALOGUE, refund_.row.id, ending, txid="0xrefund")  # type: ignore[arg-type]
            refund_.is_open = False
            if ending == "failed":
                self._give_back(refund_)

    def _open(self) -> list[Refund]:
        return [refund_ for sale in self.sales for refund_ in sale.refunds if refund_.is_open]

    def _give_back(self, refund_: Refund) -> None:
        refund_.is_open = refund_.is_live = False
        self.free += refund_.amount + FEE - refund_.borne
        for share, units in refund_.takes:
            share.taken -= units
            if share.is_over:
                share.reversed += units
                self.free += units
            else:
                share.left += units

    @precondition(lambda self: any(share.left for share in self.shares))
    @rule(hours_pass=st.booleans())
    def release(self, hours_pass: bool) -> None:  # noqa: FBT001
        if hours_pass:
            execute("UPDATE split_shares SET release_at = app_now() WHERE merchant_id = %s", (self.shop,))
            for share in self.shares:
                share.is_held = False
        release_splits()
        # No share is released from a debtor's hold.
        for sale in self.sales if self.free >= 0 else ():
            for share in sale.shares if sale.is_mature else ():
                if not share.is_held:
                    self.received[share.recipient] += share.left
                    share.left, share.released = 0, share.released + share.left

    # Invariants -----------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_the_model_s(self) -> None:
        stored = rows(
            "SELECT a.holder, a.kind, b.units FROM accounts a JOIN balances b ON b.account_id = a.id"
            " WHERE a.holder = ANY(%s)",
            ([self.shop, *self.recipients],),
        )
        shown = {kind: units for holder, kind, units in stored if holder == self.shop}
        held_units = sum(refund_.amount + FEE for refund_ in self._open())
        assert (shown.get("available", 0), owes(self.shop)) == (max(self.free, 0), max(-self.free, 0))
        assert shown.get("maturing", 0) == sum(sale.waiting for sale in self.sales)
        assert shown.get("payout_held", 0) == held_units
        assert shown.get("hold", 0) == sum(share.left for share in self.shares)
        assert places(self.shop) == [share.shown for share in self.shares]
        received = {holder: units for holder, _, units in stored if holder != self.shop}
        assert [received.get(recipient, 0) for recipient in self.recipients] == self.received

    def teardown(self) -> None:
        assert [releases.earnings(each).get("USDT", 0) for each in self.recipients] == self.received
        if next(_ends) % SOUND_EVERY == 0:
            assert_sound()


@pytest.mark.usefixtures("database")
def test_many_histories_share_to_the_unit() -> None:
    play(int(os.environ.get("HISTORIES", HISTORIES)), STEPS, machine=SplitMachine)


@pytest.mark.soak
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_thousands_of_longer_histories_share_to_the_unit(part: int) -> None:
    play(int(os.environ.get("HISTORIES", HISTORIES_SOAK)), STEPS_SOAK, part, machine=SplitMachine)
