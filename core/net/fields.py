"""Declares the fields that many answers share, each with what it means; one object's own are in its schemas.

Used by core.*.schemas. Source: API reference, "Resources and their fields".
"""

from typing import Annotated, Final

from msgspec import Meta

MOMENT_EXAMPLE: Final = "2026-01-31T12:00:00.000Z"

CoinCode = Annotated[str, Meta(description="The coin's code.", examples=["USDT"])]
NetworkCode = Annotated[str, Meta(description="The network's code.", examples=["ethereum"])]
OrderIdText = Annotated[str, Meta(description="The merchant's reference; empty where none was given.")]
TxidText = Annotated[str, Meta(description="The transaction's hash; empty until it is known.")]
IsFinal = Annotated[bool, Meta(description="Whether it has come to an end; a late deposit or a reorg reopens it.")]
CreatedAt = Annotated[str, Meta(description="When it was made, as ISO 8601 in UTC.", examples=[MOMENT_EXAMPLE])]
NextCursor = Annotated[str | None, Meta(description="The cursor of the next page; null on the last.")]
