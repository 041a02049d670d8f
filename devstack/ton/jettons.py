"""Keeps USDT's jetton at the catalogue's address. Used by accounts and simulator.

Packages have no code of its wallets, only the reference to it. Our own code runs in its place.
Addresses, states and messages are the real ones; gas and rent are about the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from chains.ton import boc, messages
from chains.ton.cells import Cell
from chains.ton.messages import Message
from chains.ton.slices import Builder
from chains.ton.wallet import StateInit
from devstack.ton.sending import sent_by, with_state

USDT: Final = "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
"""The issuer's contract."""
CONTRACTS: Final = Path(__file__).with_name("contracts") / "contracts.json"
GAS_UNITS: Final = 100_000_000

_CODES: Final = {name: boc.read_base64(text) for name, text in json.loads(CONTRACTS.read_text("ascii")).items()}
PINNED: Final = boc.read_base64("te6ccgEBAQEAIwAIQgKPRS16Tf10BmtoI2UXclntBXNENb52tf1L1divK3w9aA==")
_SUPPLY: Final = 10**15
_INTERNAL_TRANSFER: Final = 0x178D4519
_SET_STATUS: Final = 0xEED236D3


def issuer() -> StateInit:
    """Return the issuer's contract, whose address is no hash of it."""
    content = Builder().uint(1, 8).raw(b"https://tether.to/usdt-ton.json").end()
    return StateInit(code=_CODES["master"], data=Builder().coins(_SUPPLY).ref(content).end())


def wallet_state(owner: str, *, master: str = USDT) -> StateInit:
    """Return the first state of an owner's wallet."""
    return StateInit(code=PINNED, data=Builder().uint(0, 4).coins(0).address(owner).address(master).end())


def wallet(owner: str) -> str:
    """Return the address of an owner's wallet."""
    return wallet_state(owner).address


def transferred(sender: str, recipient: str, units: int, **more: object) -> Cell:
    """Return the message with which jettons come from a sender's wallet, or from the issuer without one."""
    body = arrival(sender, units, **more)  # type: ignore[arg-type]
    message = messages.internal(wallet(recipient), GAS_UNITS, bounce=True, body=body)
    return sent_by(wallet(sender) if sender else USDT, with_state(message, wallet_state(recipient)))


def arrival(sender: str, units: int, *, query_id: int = 0, forward_units: int = 0, excess_to: str = "") -> Cell:
    """Return the body of that message."""
    body = Builder().uint(_INTERNAL_TRANSFER, 32).uint(query_id, 64).coins(units)
    return body.address(sender).address(excess_to).coins(forward_units).bit(0).end()


def status_set(owner: str, status: int) -> Cell:
    """Return the issuer's message that locks a wallet: 1 for what leaves it, 2 for what comes, 3 for both."""
    body = Builder().uint(_SET_STATUS, 32).uint(0, 64).uint(status, 4).end()
    return sent_by(USDT, messages.internal(wallet(owner), GAS_UNITS, bounce=True, body=body))


def run_by_us(message: Message) -> StateInit | None:
    """Return the state with which a wallet begins that a message brings; None if it brings no such wallet."""
    state = message.state
    if state is None or state.code != PINNED or state.address != message.recipient:
        return None
    return StateInit(code=_CODES["wallet"], data=state.data)


def shown(state: StateInit | None) -> StateInit | None:
    """Return a state as the chain shows it: with the reference, where our code runs."""
    is_ours = state is not None and state.code == _CODES["wallet"]
    return StateInit(code=PINNED, data=state.data) if is_ours and state is not None else state
