"""Reads a question's parameters, and the part of the chain that it asks about. Used by queries and calls."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from solders.pubkey import Pubkey

from devstack.solana.blocks import Block
from devstack.solana.faults import CLEANED_UP, Fault, bad_params, too_early
from devstack.solana.shapes import Json
from devstack.solana.simulator import COMMITMENTS, Simulator

FINALIZED: Final = "finalized"
PROCESSED: Final = "processed"
API_VERSION: Final = "4.3.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The part of the chain that one node knows: the whole of it unless it is behind, or has a short history."""

    # The number of the newest blocks that it has not received.
    behind: int = 0
    # Blocks before this slot are pruned, and a question about one is refused by this code.
    first_slot: int = 0
    pruned_code: int = CLEANED_UP
    # Slots whose blocks it lost, for it began from a snapshot behind them.
    lost: frozenset[int] = frozenset()


WHOLE: Final = Reach()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One question. index: the newest block of its commitment."""

    simulator: Simulator
    reach: Reach
    params: Sequence[Any]
    options: Json
    commitment: str
    index: int

    @property
    def block(self) -> Block:
        """Return the newest block that the question sees."""
        return self.simulator.blocks[self.index]

    @property
    def first_slot(self) -> int:
        """Return the first slot whose block the node keeps."""
        return max(self.simulator.first_slot, self.reach.first_slot)

    def index_of(self, commitment: str) -> int:
        """Return the index of the newest block of a commitment."""
        return max(0, self.simulator.index_at(commitment) - self.reach.behind)

    def keeps(self, block: Block) -> bool:
        """Return True if the node has a block."""
        return block.slot >= self.first_slot and block.slot not in self.reach.lost

    def in_context(self, value: object) -> Json:
        """Return an answer with the slot that it is of."""
        return {"context": {"apiVersion": API_VERSION, "slot": self.block.slot}, "value": value}

    def at(self, place: int) -> Any:
        """Return a parameter. Raises Fault."""
        if place >= len(self.params):
            raise bad_params("missing parameter")
        return self.params[place]

    def key(self, place: int = 0) -> Pubkey:
        """Return an address. Raises Fault."""
        return read_key(self.at(place))

    def number(self, place: int = 0) -> int:
        """Return a number. Raises Fault."""
        value = self.at(place)
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad_params(f"invalid type: {type(value).__name__}, expected u64")
        return value


def view_of(simulator: Simulator, params: Sequence[Any], reach: Reach) -> View:
    """Return the view of a question. Raises Fault."""
    options: Json = next((one for one in params if isinstance(one, dict)), {})
    commitment = str(options.get("commitment") or FINALIZED)
    if commitment not in COMMITMENTS:
        raise bad_params(f"unknown variant `{commitment}`")
    index = max(0, simulator.index_at(commitment) - reach.behind)
    if int(options.get("minContextSlot") or 0) > simulator.blocks[index].slot:
        raise too_early(simulator.blocks[index])
    return View(simulator=simulator, reach=reach, params=params, options=options, commitment=commitment, index=index)


def read_key(text: Any) -> Pubkey:
    """Return an address. Raises Fault."""
    try:
        return Pubkey.from_string(text)
    except (ValueError, TypeError) as error:
        raise bad_params("Invalid") from error


def read_bytes(text: Any) -> bytes:
    """Return the bytes of a text in base64. Raises Fault."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise bad_params("invalid base64 encoding") from error


def check_confirmed(view: View) -> None:
    """Raise Fault for a question about history that has no commitment yet."""
    if view.commitment == PROCESSED:
        raise Fault(-32602, "Method does not support commitment below `confirmed`")
