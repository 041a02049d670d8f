"""Seeks unexplained departures, and reads what they moved. Notified by the scheduler; runs with the scan's rights."""

from __future__ import annotations

from typing import cast

from actors.context import Context
from actors.network_ticks import network_tick
from actors.recovery import missing, unread
from chains.family import CounterReader, DepartureReader, Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of


@network_tick("seek")
def seek_departures(ctx: Context, network: Network, chain: Reader) -> None:
    """Find the departures that the chain's slot counts show, or read those that the scan noted."""
    if traits_of(network).notes_departures_by_counter:
        missing.seek(ctx, network, cast("CounterReader", chain))
    else:
        unread.read(ctx, network, cast("DepartureReader", chain))
