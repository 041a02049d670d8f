"""Seeks unexplained departures, and reads what they moved. Runs with the scan's rights.

Notified where the scan notes an unread departure, by each scan of a stopped network, and rarely by the scheduler.
"""

from __future__ import annotations

from typing import cast

from actors.context import Context
from actors.network_ticks import network_tick
from actors.recovery import disputed, missing, unread
from chains.family import CounterReader, DepartureReader, InclusionReader, Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of


@network_tick("seek")
def seek_departures(ctx: Context, network: Network, chain: Reader) -> bool:
    """Find the departures that the chain's slot counts show, or read those that the scan noted.

    Judges disputed notes of our own attempts too. Return whether a whole page was read, so that there may be more.
    """
    is_more = False
    if traits_of(network).notes_departures_by_counter:
        missing.seek(ctx, network, cast("CounterReader", chain))
    else:
        is_more = unread.read(ctx, network, cast("DepartureReader", chain)) == unread.READ_PER_STEP
    if traits_of(network).spends_expire:
        disputed.judge(network, cast("InclusionReader", chain))
    return is_more
