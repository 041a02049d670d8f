"""Asks the sources of rates for the symbols that they know. Called by actors.rates.refresh, outside of any transaction.

A market may refuse a whole request because it does not trade one symbol in it: coins are renamed and delisted. The
request is then halved until the unknown symbol is alone. It is left out for a while; later it is asked for by itself.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from actors.rates.client import BUDGET_S, Problem, fetch_all
from core.rates.shapes import SourceRefused, SymbolRefused
from core.rates.sources import SYMBOLS, Quotes, address, load_sources, quotes_of, read_prices

# The time for all requests of one round: the halves of a refused request are sent after it.
ROUND_S: Final = 3 * BUDGET_S
# Requests to one source in one round: enough to find two unknown symbols among twenty.
QUESTIONS_MAX: Final = 24

Symbols = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request to one source: all symbols but those left out, of which some are asked for singly."""

    url: str
    left_out: Collection[str] = ()
    retried: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The quotes of one source or its problem, and the symbols that it did not know this time."""

    quotes: Quotes | Problem
    unknown: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class _Dialogue:
    """The requests to one source in one round, and their results."""

    name: str
    url: str
    waiting: list[Symbols]
    asked: int = 0
    prices: dict[str, Decimal] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def ask_all(orders: Mapping[str, Order], *, round_s: float = ROUND_S, budget_s: float = BUDGET_S) -> dict[str, Answer]:
    """Return each source's answer, within the time of a round even if sources hang."""
    dialogues = [_begin(name, order) for name, order in orders.items()]
    ends_at = time.monotonic() + round_s
    while (left_s := ends_at - time.monotonic()) > 0 and any(dialogue.waiting for dialogue in dialogues):
        questions = {(i, symbols): url for i, each in enumerate(dialogues) for symbols, url in _next(each).items()}
        for (i, symbols), body in fetch_all(questions, budget_s=min(budget_s, left_s)).items():
            _take(dialogues[i], symbols, body)
    return {dialogue.name: _conclude(dialogue) for dialogue in dialogues}


def _begin(name: str, order: Order) -> _Dialogue:
    if SYMBOLS not in order.url:
        return _Dialogue(name=name, url=order.url, waiting=[()])
    asked = tuple(symbol for symbol in load_sources()[name].all_symbols if symbol not in order.left_out)
    alone = [(symbol,) for symbol in sorted(order.retried)]
    return _Dialogue(name=name, url=order.url, waiting=[*([asked] if asked else []), *alone])


def _next(dialogue: _Dialogue) -> dict[Symbols, str]:
    """Return the URLs of the waiting requests, as long as the source may still be asked."""
    allowed = dialogue.waiting[: QUESTIONS_MAX - dialogue.asked]
    dialogue.waiting = []
    dialogue.asked += len(allowed)
    source = load_sources()[dialogue.name]
    return {symbols: address(source, dialogue.url, symbols) for symbols in allowed}


def _take(dialogue: _Dialogue, symbols: Symbols, body: bytes | Problem) -> None:
    """Keep the prices of one answer. If it refuses a symbol, ask again for each half of the request."""
    problem = body if isinstance(body, Problem) else None
    try:
        # The real time: the sources do not follow development's moved clock.
        text = body.refusal if isinstance(body, Problem) else body
        prices = read_prices(load_sources()[dialogue.name], text, at=datetime.now(UTC))
    except SymbolRefused as error:
        _halve(dialogue, symbols, str(error))
    except SourceRefused as error:
        dialogue.problems.append(problem or Problem(text=str(error)))
    else:
        if problem:
            dialogue.problems.append(problem)
        else:
            dialogue.prices |= prices


def _halve(dialogue: _Dialogue, symbols: Symbols, refusal: str) -> None:
    if not symbols:
        dialogue.problems.append(Problem(text=refusal))
    elif len(symbols) == 1:
        dialogue.unknown |= set(symbols)
    else:
        middle = len(symbols) // 2
        dialogue.waiting += [symbols[:middle], symbols[middle:]]


def _conclude(dialogue: _Dialogue) -> Answer:
    try:
        quotes = quotes_of(load_sources()[dialogue.name], dialogue.prices)
    except SourceRefused as error:
        # A source that knows no symbol at all has another problem than a renamed coin: no symbol is noted as unknown.
        return Answer(quotes=next(iter(dialogue.problems), Problem(text=str(error))))
    return Answer(quotes=quotes, unknown=frozenset(dialogue.unknown))
