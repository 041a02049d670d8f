"""Completes messages as the chain passes them on: with a sender, or with a contract to be made. Used by simulator."""

from __future__ import annotations

from chains.ton import messages
from chains.ton.cells import Cell
from chains.ton.slices import Builder, Slice
from chains.ton.wallet import StateInit


def sent_by(sender: str, message: Cell) -> Cell:
    """Return a contract's message with its sender, as the chain passes it on."""
    parts = Slice(message)
    head = parts.uint(4)
    parts.address()
    return Builder().uint(head, 4).address(sender).cells(parts.rest()).end()


def with_state(message: Cell, state: StateInit) -> Cell:
    """Return a contract's message that makes its recipient."""
    read = messages.read(message)
    head = Builder().uint(0b01, 2).bit(read.bounce).bit(0).address(read.sender).address(read.recipient)
    head.coins(read.units).bit(0).coins(0).coins(0).uint(0, 96).uint(0b11, 2).ref(state.cell())
    return head.bit(1).ref(read.body).end()
