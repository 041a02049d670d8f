"""Decides how many payouts one spend tries to pay, and finds the one that fails its batch. No actor; for the broadcast.

Before a spend of many payouts is signed, something is asked about each of them. A slow provider may not answer all of
that within a step, and one recipient may be such that no answer about it can be read. Neither shall hold back others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from actors.signer.sign import SigningStoppedError, WalletBusyError
from chains.base import ForeignKeyError, ProviderError
from chains.net.budget import BudgetSpentError
from chains.net.http import RateLimitedError
from chains.spending import CoinsTooSmallError, FeeTooHighError, InsufficientCoinError, SpendRefusedError
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of

# Errors that may apply to a batch and not to its halves.
SPLITTING: Final = (SpendRefusedError, InsufficientCoinError, CoinsTooSmallError)
# Errors that apply to each half as they do to the whole.
WHOLE: Final = (FeeTooHighError, ForeignKeyError, RateLimitedError, SigningStoppedError, WalletBusyError)
# Failures of providers in one step after each of which a batch is halved. A network that does not answer costs no more.
FAILURES_MAX: Final = 12
# After a step that had too little time for a batch, the next ones grow by this part with each that is signed.
GROWTH: Final = 4

# The most payouts of one spend, by network, where a step had no time for as many as the family allows.
_widths: dict[str, int] = {}


def split(network: Network, batches: Sequence[Sequence[UUID]]) -> list[Sequence[UUID]]:
    """Return batches of no more payouts than a step had time for lately."""
    width = width_of(network)
    return [batch[at : at + width] for batch in batches for at in range(0, len(batch), width)]


def width_of(network: Network) -> int:
    """Return the most payouts that one spend tries to pay now."""
    return min(_widths.get(network.code, traits_of(network).outputs_max), traits_of(network).outputs_max)


class Search:
    """The tries of a batch and of its halves in one step."""

    def __init__(self) -> None:
        self._failures = 0
        # Payouts for which providers failed without another in their spend, after they had failed with others.
        self.alone: list[UUID] = []
        self.is_signed = False

    def halves(self, error: Exception, batch: Sequence[object]) -> bool:
        """Return True if each half of a batch is to be tried alone."""
        if len(batch) == 1 or isinstance(error, SPLITTING):
            return len(batch) > 1
        if not _is_unanswered(error) or self._failures >= FAILURES_MAX:
            return False
        self._failures += 1
        return True

    def note(self, network: Network, error: Exception, dropped: Sequence[UUID]) -> None:
        """Note payouts that are put off for an error."""
        is_first = not self._failures and not self.is_signed
        if isinstance(error, BudgetSpentError) and is_first and len(dropped) > 1:
            # The whole step was too short for them.
            _widths[network.code] = len(dropped) // 2
        if _is_unanswered(error) and self._failures and len(dropped) == 1:
            self.alone += dropped

    def note_signed(self, network: Network, size: int) -> None:
        """Note that a spend of this many payouts was signed; the next may have more if it had as many as it could."""
        self.is_signed, width = True, width_of(network)
        if size >= width:
            _widths[network.code] = width + -(-width // GROWTH)


def _is_unanswered(error: Exception) -> bool:
    return isinstance(error, ProviderError) and not isinstance(error, (*SPLITTING, *WHOLE))
