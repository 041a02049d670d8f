"""Terms of a merchant who set nothing, at a gateway whose operator set nothing."""

from __future__ import annotations

from typing import Final

from core.rates.generations import QUOTE_S
from core.rates.pricing import Terms

TERMS: Final = Terms(
    version=1,
    fee_ppm=15_000,
    fee_fixed_usd_cents=30,
    accuracy_ppm=None,
    accepted=None,
    discounts_ppm={},
    price_max_usd=10_000_000,
    lifetime_s=3_600,
    quote_s=QUOTE_S,
)
