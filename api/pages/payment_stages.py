"""Chooses the text of a payment's page: the stage that the payment is in.

Pure; for api.pages.pages.
The status alone is not enough for a buyer. A buyer who has paid in full must not be asked for money while it is
confirmed. Money that came late, in part, or in another coin each needs another step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.catalogue.catalogue import Catalogue
from core.invoices import states
from core.texts.render import coin_text
from models.invoices.arrivals import Arrivals
from models.invoices.shown import Shown

StageName = Literal[
    "select", "waiting", "unpriced", "part", "detected", "over_time", "paid", "paid_over", "short", "late",
    "wrong_coin", "sent_back", "expired",
]  # fmt: skip
Tone = Literal["calm", "good", "attention"]

DO_NOT_PAY: str = "Please do not send anything any more."
KEEP_LOOKING: str = "If you have paid already, keep this page open: it shows the payment as soon as it is found."
TELL_SHOP: str = "The shop sees this too and decides what happens with it. Please contact the shop."


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A payment as its buyer sees it."""

    name: StageName
    heading: str
    lines: tuple[str, ...] = ()
    tone: Tone = "calm"
    # The amount to send now, shown with address and code; "" if nothing has to be sent.
    to_pay: str = ""
    # Confirmations so far and needed, while a deposit waits for them.
    progress: tuple[int, int] | None = None
    has_countdown: bool = False


class _Words:
    """An invoice with its amounts as text."""

    def __init__(self, catalogue: Catalogue, shown: Shown, came: Arrivals) -> None:
        self._catalogue = catalogue
        self.invoice = invoice = shown.invoice
        self.is_unpriced = shown.is_unpriced
        self.came = came
        self.asked_units = invoice.payer_units or 0
        self.all_units = invoice.paid_units
        # The part of it that is not yet in a block.
        self.sighted_units = invoice.sighted_units
        self.late_units = min(came.late_units, self.all_units)
        self.in_time_units = self.all_units - self.late_units
        self.pending_units = self.all_units - invoice.confirmed_units

    def amount(self, units: int) -> str:
        coin = self.invoice.pay_currency
        return f"{coin_text(self._catalogue, coin, units)} {coin}"

    @property
    def asked(self) -> str:
        return self.amount(self.asked_units)

    @property
    def method(self) -> str:
        """Return the coin and network that the buyer was asked for."""
        return f"{self.invoice.pay_currency} on {self._network(self.invoice.network or '')}"

    @property
    def strays(self) -> str:
        """Return the deposits in other coins, in words."""
        return ", ".join(
            f"{coin_text(self._catalogue, stray.currency, stray.units)} {stray.currency}"
            f" on {self._network(stray.network)}"
            for stray in self.came.strays
        )

    @property
    def came_so_far(self) -> str:
        """Return the state of all that was paid, in a word; a payment that is not yet in a block has not arrived."""
        return "was seen" if self.sighted_units else "arrived"

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the payments that wait for a block, in words."""
        if not self.sighted_units:
            return ()
        return (f"{self.amount(self.sighted_units)} of it waits for its first block.",)

    @property
    def progress(self) -> tuple[int, int] | None:
        if not self.pending_units:
            return None
        return self.invoice.confirmations, self.invoice.needed_confirmations

    def is_short(self, units: int) -> bool:
        return states.is_short(units, self.asked_units, self.invoice.accuracy_ppm)

    def is_over(self, units: int) -> bool:
        return states.is_over(units, self.asked_units, self.invoice.accuracy_ppm)

    def _network(self, code: str) -> str:
        return self._catalogue.networks[code].name if code else ""


def stage(catalogue: Catalogue, shown: Shown, came: Arrivals, *, is_over_time: bool) -> Stage:
    """Return the stage to show. is_over_time: the clock has passed the expiry, however far the scan has come."""
    words = _Words(catalogue, shown, came)
    match shown.invoice.status:
        case "select":
            return _select(is_over_time=is_over_time)
        case "check":
            return _check(words, is_over_time=is_over_time)
        case "paid":
            return _paid(words)
        case "paid_over":
            return _paid_over(words)
        case "wrong_amount":
            return _wrong_amount(words)
        case "expired":
            return _expired(words)


def _select(*, is_over_time: bool) -> Stage:
    if is_over_time:
        return Stage(
            name="expired", heading="This payment has expired", lines=("The shop can give you a new payment.",)
        )
    return Stage(
        name="select",
        heading="Choose how to pay",
        lines=("Pick a coin and a network. The amount and the address follow.",),
        has_countdown=True,
    )


def _check(words: _Words, *, is_over_time: bool) -> Stage:
    if words.in_time_units and not words.is_short(words.in_time_units):
        return _detected(words)
    if is_over_time:
        return _over_time(words)
    if words.is_unpriced:
        return _unpriced(words)
    if words.all_units:
        return _part(words)
    if words.came.strays:
        return Stage(
            name="wrong_coin",
            heading="Another coin arrived",
            lines=(
                f"{words.strays} arrived, but {words.method} was asked for.",
                f"{TELL_SHOP} To complete the payment, send {words.asked}:",
            ),
            tone="attention",
            to_pay=_plain(words, words.asked_units),
            has_countdown=True,
        )
    return Stage(
        name="waiting",
        heading="Waiting for your payment",
        to_pay=_plain(words, words.asked_units),
        has_countdown=True,
    )


def _plain(words: _Words, units: int) -> str:
    """Return an amount without its coin, for copying."""
    return words.amount(units).partition(" ")[0]


def _detected(words: _Words) -> Stage:
    lines = [f"{words.amount(words.all_units)} of {words.asked} {words.came_so_far}."]
    if words.is_over(words.all_units):
        excess = words.amount(words.all_units - words.asked_units)
        lines = [f"{words.amount(words.all_units)} {words.came_so_far}: {excess} more than was asked."]
    state = "It waits for its first block." if words.sighted_units else "The network is confirming it."
    lines.append(f"{state} There is nothing more to send, and you may close this page.")
    return Stage(
        name="detected",
        heading="Your payment was seen" if words.sighted_units else "Your payment was found",
        lines=(*lines, *_stray_note(words)),
        tone="good",
        progress=(words.invoice.confirmations, words.invoice.needed_confirmations),
    )


def _part(words: _Words) -> Stage:
    rest_units = max(0, words.asked_units - words.all_units)
    # If the merchant takes payments in one piece, the page does not ask for the rest; a second payment still counts.
    rest = words.amount(rest_units)
    due = f"Please send the remaining {rest}." if words.invoice.is_payment_multiple else f"{rest} is missing."
    return Stage(
        name="part",
        heading=f"A part of the payment {words.came_so_far}",
        lines=(
            f"{words.amount(words.all_units)} of {words.asked} {words.came_so_far}. {due}",
            *words.waiting,
            *_stray_note(words),
        ),
        to_pay=_plain(words, rest_units),
        progress=words.progress,
        has_countdown=True,
    )


def _unpriced(words: _Words) -> Stage:
    arrived = (f"{words.amount(words.all_units)} arrived so far.",) if words.all_units else ()
    return Stage(
        name="unpriced",
        heading="The price cannot be told right now",
        lines=(
            f"There is no exchange rate for {words.invoice.pay_currency} at the moment. Please do not send anything;"
            " this page goes on by itself as soon as there is one.",
            *arrived,
        ),
        tone="attention",
        has_countdown=True,
    )


def _over_time(words: _Words) -> Stage:
    lines = [DO_NOT_PAY]
    if words.all_units:
        lines.insert(0, f"{words.amount(words.all_units)} of {words.asked} {words.came_so_far} until now.")
        lines[1:1] = words.waiting
    return Stage(
        name="over_time",
        heading="The time to pay is over",
        lines=(*lines, *_stray_note(words), KEEP_LOOKING),
        tone="attention",
        progress=words.progress,
    )


def _paid(words: _Words) -> Stage:
    units = words.invoice.confirmed_units
    arrived = f"Thank you. {words.amount(units)} arrived."
    if units < words.asked_units:
        arrived = f"Thank you. {words.amount(units)} of {words.asked} arrived, and the shop takes it as paid."
    more = (f"{words.amount(words.pending_units)} more is being confirmed.",) if words.progress else ()
    return Stage(
        name="paid",
        heading="Payment received",
        lines=(arrived, *more, *_stray_note(words)),
        tone="good",
        progress=words.progress,
    )


def _paid_over(words: _Words) -> Stage:
    units = words.invoice.confirmed_units
    excess = words.amount(max(0, units - words.asked_units))
    return Stage(
        name="paid_over",
        heading="Payment received",
        lines=(
            f"Thank you. {words.amount(units)} arrived: {excess} more than the {words.asked} that were asked.",
            "The shop sees this too. Please contact it about what is too much.",
            *_stray_note(words),
        ),
        tone="good",
        progress=words.progress,
    )


def _wrong_amount(words: _Words) -> Stage:
    if words.invoice.is_final:
        return Stage(
            name="sent_back",
            heading="The money was sent back",
            lines=("This payment is closed. Please ask the shop if something is missing.", DO_NOT_PAY),
        )
    if not words.all_units and words.came.strays:
        return Stage(
            name="wrong_coin",
            heading="Another coin arrived",
            lines=(f"{words.strays} arrived, but {words.method} was asked for.", TELL_SHOP, DO_NOT_PAY),
            tone="attention",
        )
    return _late(words) if words.late_units else _short(words)


def _short(words: _Words) -> Stage:
    units = words.in_time_units
    missing = words.amount(max(0, words.asked_units - units))
    return Stage(
        name="short",
        heading="Less than was asked arrived",
        lines=(
            f"{words.amount(units)} of {words.asked} arrived until the time to pay was over: {missing} is missing.",
            *_stray_note(words),
            TELL_SHOP,
            DO_NOT_PAY,
        ),
        tone="attention",
        progress=words.progress,
    )


def _late(words: _Words) -> Stage:
    late = words.amount(words.late_units)
    if not words.in_time_units:
        arrived = f"{late} arrived after the time to pay was over."
    else:
        in_time = words.amount(words.in_time_units)
        arrived = f"{in_time} arrived in time, and {late} after the time to pay was over."
    if words.is_short(words.all_units):
        arrived += f" {words.asked} was asked."
    return Stage(
        name="late",
        heading="The payment came late",
        lines=(arrived, *_stray_note(words), TELL_SHOP, DO_NOT_PAY),
        tone="attention",
        progress=words.progress,
    )


def _expired(words: _Words) -> Stage:
    if words.late_units:
        return _late(words)
    if words.all_units:
        # Paid in time and found late: it will be judged as if it had been found in time.
        return _short(words) if words.is_short(words.in_time_units) else _detected(words)
    if words.came.strays:
        return Stage(
            name="wrong_coin",
            heading="Another coin arrived",
            lines=(
                f"{words.strays} arrived, but {words.method} was asked for, and the time to pay is over.",
                TELL_SHOP,
                DO_NOT_PAY,
            ),
            tone="attention",
        )
    return Stage(
        name="expired",
        heading="This payment has expired",
        lines=("Please do not send anything to its address. The shop can give you a new payment.", KEEP_LOOKING),
    )


def _stray_note(words: _Words) -> tuple[str, ...]:
    if not words.came.strays:
        return ()
    return (f"Besides, {words.strays} arrived, which was not asked for: please contact the shop about it.",)
