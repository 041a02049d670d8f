"""Names the kinds of field that the catalogue's records are made of, with their limits."""

from typing import Annotated, Final, Literal

from msgspec import Meta

Environment = Literal["development", "production"]

DECIMALS_MAX: Final = 18

Positive = Annotated[int, Meta(ge=1)]
Digits = Annotated[int, Meta(ge=0, le=DECIMALS_MAX)]
CurrencyCode = Annotated[str, Meta(pattern="^[A-Z]{3,5}$")]
NetworkCode = Annotated[str, Meta(pattern="^[a-z]{3,16}$")]
Text = Annotated[str, Meta(min_length=1)]
