"""Keeps money exact: decimal strings at the edges, integer base units within. Called where an amount enters or leaves.

Amounts are parsed by an ASCII pattern and never through Decimal or float: Decimal takes `1_000` and Arabic digits, and
its default context drops digits past 28. "Up" and "down" mean towards plus and minus infinity.
"""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

QUOTE_DIGITS_MAX: Final = 8
"""Quoted coin amounts carry no more fractional digits than this, so that a buyer can type them."""

# A percentage with as many fractional digits is whole parts per million.
PPM_DIGITS: Final = 4
PPM_PER_PERCENT: Final = 10**PPM_DIGITS
PPM: Final = 1_000_000
CENT_DIGITS: Final = 2

Refusal = Callable[[str], Exception]
"""Makes the exception of a refused value out of its message: mostly a DomainError's class."""

_AMOUNT: Final = re.compile(r"([0-9]{1,30})(?:\.([0-9]{1,18}))?")


class PrecisionLostError(ArithmeticError):
    """A conversion would have dropped digits that are not zero."""


def parse_units(text: object, *, digits: int, error: Refusal, name: str = "amount") -> int:
    """Read a decimal string into base units of 10^-digits, or raise `error` naming the field.

    Zero is a number like others here. More fractional digits than the currency carries are refused, even zeros:
    nothing that a caller wrote is ever rounded away (the specification's amounts). Currencies without fractional
    digits take zeros there: shops write 1000.00 in every currency.
    """
    match = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    whole, fraction = match.groups("") if match else ("", "")
    if digits == 0:
        fraction = fraction.rstrip("0")
    if not whole or len(fraction) > digits:
        shape = f"with at most {digits} fractional digits" if digits else "without fractional digits"
        raise error(f"{name} must be a decimal string {shape}.")
    return int(whole + fraction.ljust(digits, "0"))


def parse_percent_ppm(
    value: object, *, lo_ppm: int, hi_ppm: int, error: Refusal, name: str = "percent", digits: int = PPM_DIGITS
) -> int:
    """Read a JSON number of percent into parts per million (0.3 is 3000), or raise `error` naming the field.

    Both bounds are allowed; an amount with more fractional digits is refused, not rounded.
    """
    percent = _exact(value)
    if percent is None or not lo_ppm <= percent * PPM_PER_PERCENT <= hi_ppm:
        lo, hi = (format_coin(bound, PPM_DIGITS) for bound in (lo_ppm, hi_ppm))
        raise error(f"{name} must be a number from {lo} to {hi}.")
    if (percent * 10**digits).denominator != 1:
        raise error(f"{name} must have at most {digits} fractional digits.")
    return int(percent * PPM_PER_PERCENT)


def _exact(value: object) -> Fraction | None:
    """Return the number that was written: a float's repr is the shortest text that reads back as that float."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(repr(value))
    return None


def format_fiat(units: int, digits: int) -> str:
    """Write units of 10^-digits with all their digits: 1050, 2 is 10.50."""
    sign = "-" if units < 0 else ""
    whole, fraction = divmod(abs(units), 10**digits)
    return f"{sign}{whole}.{fraction:0{digits}}" if digits else f"{sign}{whole}"


def format_coin(units: int, scale: int) -> str:
    """Write units of 10^-scale without trailing zeros: 1050000, 6 is 1.05."""
    text = format_fiat(units, scale)
    return text.rstrip("0").rstrip(".") if scale else text


def mul_div_up(a: int, b: int, c: int) -> int:
    """Return a * b / c, rounded up, as for a buyer's amount."""
    return -(-a * b // c)


def mul_div_down(a: int, b: int, c: int) -> int:
    """Return a * b / c, rounded down: fees and shares."""
    return a * b // c


def rescale(units: int, from_scale: int, to_scale: int) -> int:
    """Express units of 10^-from_scale in 10^-to_scale; PrecisionLostError if that is not exact."""
    rescaled = rescale_down(units, from_scale, to_scale)
    if rescale_down(rescaled, to_scale, from_scale) != units:
        raise PrecisionLostError(f"{units} units of scale {from_scale} are not whole in scale {to_scale}")
    return rescaled


def rescale_down(units: int, from_scale: int, to_scale: int) -> int:
    """Express units of 10^-from_scale in 10^-to_scale, rounded down."""
    return mul_div_down(units, 10**to_scale, 10**from_scale)


def quote_step(precision: int, scale: int) -> int:
    """Return the ledger units that one step of a quoted amount has, for a coin of that precision and ledger scale."""
    step: int = 10 ** (scale - min(precision, QUOTE_DIGITS_MAX))
    return step


def round_up(units: int, step: int) -> int:
    """Return the smallest multiple of step that is not below units."""
    return mul_div_up(units, 1, step) * step


def round_down(units: int, step: int) -> int:
    """Return the largest multiple of step that is not above units."""
    return units // step * step
