"""Declares the fields that many answers share, each with what it means; one object's own are in its schemas.

Used by core.*.schemas. Source: API reference, "Resources and their fields".
"""

from typing import Annotated, Final

from msgspec import Meta

MOMENT_EXAMPLE: Final = "2026-01-31T12:00:00.000Z"

CoinCode = Annotated[str, Meta(description="The coin's code.", examples=["USDT"])]
NetworkCode = Annotated[str, Meta(description="The network's code.", examples=["ethereum"])]
OrderIdText = Annotated[str, Meta(description="Your own reference; empty if it has none.")]
TxidText = Annotated[str, Meta(description="The transaction's hash; empty until it is known.")]
IsFinal = Annotated[bool, Meta(description="true if it has ended. A late deposit or a reorg can reopen it.")]
CreatedAt = Annotated[str, Meta(description="The time of creation, in ISO 8601, UTC.", examples=[MOMENT_EXAMPLE])]
NextCursor = Annotated[str | None, Meta(description="The cursor of the next page; null on the last page.")]
