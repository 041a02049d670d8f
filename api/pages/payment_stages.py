"""Chooses the text of a payment's page: the stage that the payment is in.

Pure; for api.pages.pages.
The status alone is not enough for a buyer. A buyer who has paid in full must not be asked for money while it is
confirmed. Money that came late, in part, or in another coin each needs another step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from api.pages.languages import Language
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

MINUTE_MS: Final = 60_000


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

    def __init__(self, catalogue: Catalogue, shown: Shown, came: Arrivals, say: Language) -> None:
        self._catalogue = catalogue
        self.say = say
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
        return self.say("words.on", coin=self.invoice.pay_currency, network=self._network(self.invoice.network or ""))

    @property
    def strays(self) -> str:
        """Return the deposits in other coins, in words."""
        return self.say("words.list").join(
            self.say(
                "words.on",
                coin=f"{coin_text(self._catalogue, stray.currency, stray.units)} {stray.currency}",
                network=self._network(stray.network),
            )
            for stray in self.came.strays
        )

    def so_far(self, name: str, **values: object) -> str:
        """Return a text about all that was paid; a payment that is not yet in a block was seen and has not arrived."""
        state = "seen" if self.sighted_units else "arrived"
        return self.say(f"stage.{state}_{name}", amount=self.amount(self.all_units), **values)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the payments that wait for a block, in words."""
        if not self.sighted_units:
            return ()
        return (self.say("stage.part_first_block", amount=self.amount(self.sighted_units)),)

    @property
    def progress(self) -> tuple[int, int] | None:
        if not self.pending_units:
            return None
        return self.invoice.confirmations, self.invoice.needed_confirmations

    @property
    def usual_wait(self) -> str:
        """Return the time that the confirmations of the buyer's network take together, in words."""
        network = self._catalogue.networks[self.invoice.network or ""]
        minutes = math.ceil(self.invoice.needed_confirmations * network.block_time_ms / MINUTE_MS)
        return self.say("stage.usually", minutes=minutes) if minutes > 1 else self.say("stage.usually_soon")

    def is_short(self, units: int) -> bool:
        return states.is_short(units, self.asked_units, self.invoice.accuracy_ppm)

    def is_over(self, units: int) -> bool:
        return states.is_over(units, self.asked_units, self.invoice.accuracy_ppm)

    def _network(self, code: str) -> str:
        return self._catalogue.networks[code].name if code else ""


def stage(catalogue: Catalogue, shown: Shown, came: Arrivals, *, is_over_time: bool, say: Language) -> Stage:
    """Return the stage to show. is_over_time: the clock has passed the expiry, however far the scan has come."""
    words = _Words(catalogue, shown, came, say)
    match shown.invoice.status:
        case "select":
            return _select(say, is_over_time=is_over_time)
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


def _select(say: Language, *, is_over_time: bool) -> Stage:
    if is_over_time:
        return Stage(name="expired", heading=say("stage.expired"), lines=(say("stage.new_payment"),))
    return Stage(
        name="select",
        heading=say("stage.select"),
        lines=(say("stage.select_line"),),
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
            heading=words.say("stage.wrong_coin"),
            lines=(_stray(words), words.say("stage.tell_shop")),
            tone="attention",
            to_pay=_plain(words, words.asked_units),
            has_countdown=True,
        )
    return Stage(
        name="waiting",
        heading=words.say("stage.waiting"),
        to_pay=_plain(words, words.asked_units),
        has_countdown=True,
    )


def _plain(words: _Words, units: int) -> str:
    """Return an amount without its coin, for copying."""
    return words.amount(units).partition(" ")[0]


def _detected(words: _Words) -> Stage:
    say = words.say
    arrived = words.so_far("of", asked=words.asked)
    if words.is_over(words.all_units):
        arrived = words.so_far("over", excess=words.amount(words.all_units - words.asked_units))
    state = say("stage.first_block" if words.sighted_units else "stage.confirming")
    return Stage(
        name="detected",
        heading=say("stage.seen" if words.sighted_units else "stage.found"),
        lines=(arrived, f"{state} {words.usual_wait}", say("stage.nothing_more"), *_stray_note(words)),
        tone="good",
        progress=(words.invoice.confirmations, words.invoice.needed_confirmations),
    )


def _part(words: _Words) -> Stage:
    rest_units = max(0, words.asked_units - words.all_units)
    # If the merchant takes payments in one piece, the page does not ask for the rest; a second payment still counts.
    rest = words.amount(rest_units)
    due = words.say("stage.send_rest" if words.invoice.is_payment_multiple else "stage.rest_missing", rest=rest)
    return Stage(
        name="part",
        heading=words.say("stage.part_seen" if words.sighted_units else "stage.part_arrived"),
        lines=(
            words.so_far("of", asked=words.asked),
            due,
            *words.waiting,
            *_stray_note(words),
        ),
        to_pay=_plain(words, rest_units),
        progress=words.progress,
        has_countdown=True,
    )


def _unpriced(words: _Words) -> Stage:
    say = words.say
    arrived = (say("stage.so_far", amount=words.amount(words.all_units)),) if words.all_units else ()
    return Stage(
        name="unpriced",
        heading=say("stage.unpriced"),
        lines=(say("stage.unpriced_line", coin=words.invoice.pay_currency), *arrived),
        tone="attention",
        has_countdown=True,
    )


def _over_time(words: _Words) -> Stage:
    say = words.say
    arrived = (words.so_far("until_now", asked=words.asked), *words.waiting) if words.all_units else ()
    return Stage(
        name="over_time",
        heading=say("stage.over_time"),
        lines=(*arrived, say("stage.do_not_pay"), *_stray_note(words), say("stage.keep_looking")),
        tone="attention",
        progress=words.progress,
    )


def _paid(words: _Words) -> Stage:
    units = words.invoice.confirmed_units
    say = words.say
    thanks = "stage.thanks_part" if units < words.asked_units else "stage.thanks"
    arrived = say(thanks, amount=words.amount(units), asked=words.asked)
    more = (say("stage.more_confirming", amount=words.amount(words.pending_units)),) if words.progress else ()
    return Stage(
        name="paid",
        heading=say("stage.paid"),
        lines=(arrived, *more, *_stray_note(words)),
        tone="good",
        progress=words.progress,
    )


def _paid_over(words: _Words) -> Stage:
    units = words.invoice.confirmed_units
    excess = words.amount(max(0, units - words.asked_units))
    return Stage(
        name="paid_over",
        heading=words.say("stage.paid"),
        lines=(
            words.say("stage.thanks_over", amount=words.amount(units), excess=excess, asked=words.asked),
            words.say("stage.ask_about_excess"),
            *_stray_note(words),
        ),
        tone="good",
        progress=words.progress,
    )


def _wrong_amount(words: _Words) -> Stage:
    say = words.say
    if words.invoice.is_final:
        return Stage(
            name="sent_back",
            heading=say("stage.sent_back"),
            lines=(say("stage.closed"), say("stage.do_not_pay")),
        )
    if not words.all_units and words.came.strays:
        return Stage(
            name="wrong_coin",
            heading=say("stage.wrong_coin"),
            lines=(_stray(words), say("stage.tell_shop"), say("stage.do_not_pay")),
            tone="attention",
        )
    return _late(words) if words.late_units else _short(words)


def _short(words: _Words) -> Stage:
    say = words.say
    units = words.in_time_units
    missing = words.amount(max(0, words.asked_units - units))
    return Stage(
        name="short",
        heading=say("stage.short"),
        lines=(
            say("stage.short_line", amount=words.amount(units), asked=words.asked, missing=missing),
            *_stray_note(words),
            say("stage.tell_shop"),
            say("stage.do_not_pay"),
        ),
        tone="attention",
        progress=words.progress,
    )


def _late(words: _Words) -> Stage:
    say = words.say
    key = "stage.late_part" if words.in_time_units else "stage.late_all"
    arrived = say(key, late=words.amount(words.late_units), in_time=words.amount(words.in_time_units))
    asked = (say("stage.asked", asked=words.asked),) if words.is_short(words.all_units) else ()
    return Stage(
        name="late",
        heading=say("stage.late"),
        lines=(arrived, *asked, *_stray_note(words), say("stage.tell_shop"), say("stage.do_not_pay")),
        tone="attention",
        progress=words.progress,
    )


def _expired(words: _Words) -> Stage:
    say = words.say
    if words.late_units:
        return _late(words)
    if words.all_units:
        # Paid in time and found late: it will be judged as if it had been found in time.
        return _short(words) if words.is_short(words.in_time_units) else _detected(words)
    if words.came.strays:
        return Stage(
            name="wrong_coin",
            heading=say("stage.wrong_coin"),
            lines=(
                say("stage.stray_over_time", strays=words.strays, method=words.method),
                say("stage.tell_shop"),
                say("stage.do_not_pay"),
            ),
            tone="attention",
        )
    return Stage(
        name="expired",
        heading=say("stage.expired"),
        lines=(say("stage.expired_line"), say("stage.keep_looking")),
    )


def _stray_note(words: _Words) -> tuple[str, ...]:
    if not words.came.strays:
        return ()
    return (words.say("stage.stray_note", strays=words.strays),)


def _stray(words: _Words) -> str:
    return words.say("stage.stray", strays=words.strays, method=words.method)
