"""Asks again about attempts that one reading showed in a block and that nodes call dead.

No actor; called by actors.recovery.seek. No spend dies against such a note, so one that a provider invented keeps its
spend and stops its network. The second reading of the block takes it back by the word of two providers. If they could
not be asked then, or one lied and was replaced, this module asks again until they agree.
"""

from __future__ import annotations

import time
from typing import Final

import structlog

from actors.scan import departures, kept
from chains.base import ProviderError
from chains.family import InclusionReader
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.spends import seen
from models.spends.seen import Seen

log = structlog.get_logger()

# Each takes two requests to every provider.
ASKED_PER_STEP: Final = 5
# While any is disputed, requests pause for this long.
REST_S: Final = 60.0

_rests_until: dict[str, float] = {}


def judge(network: Network, chain: InclusionReader) -> int:
    """Take back the notes that two providers deny, and more than confirm; return their number.

    Call outside of transactions. With a single provider nothing is asked: it is believed.
    """
    if chain.providers == 1 or time.monotonic() < _rests_until.get(network.code, 0.0):
        return 0
    overdue = seen.overdue(network.code, limit=ASKED_PER_STEP)
    taken = sum(_judge_one(network, chain, each) for each in overdue)
    if taken < len(overdue):
        _rests_until[network.code] = time.monotonic() + REST_S
    return taken


def _judge_one(network: Network, chain: InclusionReader, noted: Seen) -> int:
    try:
        block = kept.block(network, chain, noted.height, noted.block_hash)
        if block is None:
            return 0
        lacking = departures.denied(network, chain, block, [noted.txid])
    except ProviderError as error:
        log.warning("departure.not_read", network=network.code, txid=noted.txid, problem=str(error))
        return 0
    with transaction():
        return departures.take_back_seen(network, lacking, block)
