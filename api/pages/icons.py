"""Draws the icons of coins and networks, our own: a sign on a coloured disc. Used by the templates of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Icon(NamedTuple):
    """A disc's colour and the outline of the sign on it, in a square of 24."""

    colour: str
    path: str


# A bar over a stem, crossed by another bar.
_TETHER: Final = "M7 6h10v2.6h-3.7V19h-2.6V8.6H7zM6.5 11.2h11v1.6h-11z"
_DOLLAR: Final = (
    "M11.2 5h1.6v1.6c2 .2 3.3 1.3 3.6 3h-2.1"
    "c-.3-.8-1-1.2-2.2-1.2-1.3 0-2 .5-2 1.3 0 2.3 6.5.5 6.5 5 0 1.6-1.4 2.8-3.8 3V19h-1.6v-1.6"
    "c-2.2-.2-3.6-1.3-3.8-3.2h2.1"
    "c.3 1 1.1 1.4 2.5 1.4 1.5 0 2.3-.5 2.3-1.3 0-2.4-6.5-.5-6.5-5 0-1.5 1.3-2.6 3.5-2.7z"
)
_DAI: Final = (
    "M7 6h4.5c3 0 5.1 1.5 6 4H19v1.4h-1.2v1.2H19V14h-1.5c-.9 2.5-3 4-6 4H7v-4H5.5v-1.4H7v-1.2H5.5V10H7zm2 2v2h6.3"
    "C14.5 8.7 13.3 8 11.5 8zm0 3.4v1.2h6.7v-1.2zM9 14v2h2.5c1.8 0 3-.7 3.8-2z"
)
_DIAMOND: Final = "M12 3.5 17 12l-5 3-5-3zM7 13.4l5 3 5-3-5 7.1z"
_SQUARES: Final = (
    "m12 5 2.6 2.6L12 10.2 9.4 7.6zM7.6 9.4 10.2 12l-2.6 2.6L5 12zM16.4 9.4 19 12l-2.6 2.6L13.8 12zM12 13.8"
    "l2.6 2.6L12 19l-2.6-2.6zM12 10.6l1.4 1.4-1.4 1.4-1.4-1.4z"
)
_HEXAGONS: Final = (
    "m8.5 6 3.5 2v4l-3.5 2L5 12V8zm7 4 3.5 2v4l-3.5 2-3.5-2v-4zM8.5 8 6.8 9v2l1.7 1 1.7-1V9zm7 4-1.7 1v2"
    "l1.7 1 1.7-1v-2z"
)
_PEAKS: Final = "M11 5h2l2.3 4-5.3 9H5zM16 12.5 19.2 18h-6.4z"
_SAIL: Final = "m5 6 10.5 2 3.5 3.3L11.5 19zm2.3 2 4 7.6.7-5.6zm6.3 2.3-.6 4.4 3.3-3.5z"
_BARS: Final = "M8 6h10l-2.5 2.6h-10zM6 10.7h10l2.5 2.6h-10zM8 15.4h10L15.5 18h-10z"
_FUNNEL: Final = "M6 6h12c1 0 1.6 1.1 1 2l-7 11-7-11c-.6-.9 0-2 1-2zm1.3 2 3.7 6V8zM13 8v6l3.7-6z"
_BITCOIN: Final = (
    "M8 6h1.8V4.5h1.5V6h1V4.5h1.5v1.6"
    "c2 .3 3.2 1.2 3.2 2.9 0 1.2-.6 2-1.6 2.4 1.3.4 2.1 1.4 2.1 2.8 0 2-1.4 3.1-3.7 3.3v1.9h-1.5v-1.8h-1v1.8H9.8"
    "v-1.8H8zm2.4 1.9v2.8h2c1.4 0 2.2-.5 2.2-1.4s-.7-1.4-2-1.4zm0 4.6v3.3h2.5"
    "c1.4 0 2.2-.6 2.2-1.7 0-1-.8-1.6-2.3-1.6z"
)
_BLOCK: Final = "M6 7h12v10H6zm2 2v6h3V9zm5 0v6h3V9z"
_ARCH: Final = "M12 5a7 7 0 0 1 7 7h-3.5a3.5 3.5 0 0 0-7 0H5a7 7 0 0 1 7-7zM5 14h14v3H5z"

COINS: Final[Mapping[str, Icon]] = MappingProxyType(
    {
        "USDT": Icon("#1a7f64", _TETHER),
        "USDC": Icon("#2767b8", _DOLLAR),
        "DAI": Icon("#9c6300", _DAI),
        "POL": Icon("#6b38d1", _HEXAGONS),
        "ETH": Icon("#4f63b8", _DIAMOND),
        "BNB": Icon("#8a6a00", _SQUARES),
        "AVAX": Icon("#c2313a", _PEAKS),
        "TRX": Icon("#c01f28", _SAIL),
        "SOL": Icon("#6a3fb5", _BARS),
        "TON": Icon("#1473ad", _FUNNEL),
        "BTC": Icon("#a85c08", _BITCOIN),
    }
)
NETWORKS: Final[Mapping[str, Icon]] = MappingProxyType(
    {
        "ethereum": COINS["ETH"],
        "bsc": COINS["BNB"],
        "polygon": COINS["POL"],
        "avalanche": COINS["AVAX"],
        "tron": COINS["TRX"],
        "solana": COINS["SOL"],
        "ton": COINS["TON"],
        "bitcoin": COINS["BTC"],
        "base": Icon("#1f4fd8", _BLOCK),
        "arbitrum": Icon("#1b5f8f", _ARCH),
    }
)
