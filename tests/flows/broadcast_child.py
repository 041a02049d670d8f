"""A signer in a process of its own that plays a part over a real chain, and kills itself at a checkpoint."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

# Modules that a signer loads at its first use, loaded once for all of them: each is a fork.
import embit.bip39

import chains.evm.reader
import chains.evm.spends.spender
from actors import context
from actors.recovery import resume, seek
from actors.scan import follow
from actors.signer import broadcast, held_keys
from chains.evm.spends import library
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.tx import plan_spend, sign_spend
from chains.spending import KeyRef
from core.catalogue.catalogue import load_catalogue
from core.logs import checkpoints
from core.settings.settings import load_settings
from models.db import base
from models.db.base import execute
from models.deposits import cursors
from models.recovery import writeoffs
from tests.peers.anvil import BUYER, HandMined

LOADED: Final = (chains.evm.reader, chains.evm.spends.spender, embit.bip39, library.account())
ETHEREUM: Final = load_catalogue("development").networks["ethereum"]
PATIENCE_S: Final = 61


class Gateway:
    """The parts of a gateway that a payout needs, taken step by step."""

    def __init__(self, env: Mapping[str, str], hot: str) -> None:
        base.connect(env["DATABASE_URL"])
        self.context = context.configure(load_settings(env, role="signer"))
        self.node = HandMined(env["ETHEREUM_RPC_URLS"])
        self.hot = hot

    def step(self) -> None:
        """Answer the doorbell of the broadcast, with all that waits due."""
        execute("UPDATE spends SET check_at = app_now() WHERE check_at > app_now()")
        execute("UPDATE payouts SET due_at = app_now() WHERE due_at > app_now()")
        execute("UPDATE rates SET quoted_at = app_now()")
        self.context.market.forget()
        resume.resume_signing("ethereum")
        broadcast.broadcast("ethereum")

    def bury(self, blocks: int) -> None:
        """Mine this many blocks and scan them."""
        self.node.ask("anvil_mine", hex(blocks))
        self.scan()

    def scan(self) -> None:
        for _ in range(2):
            follow.poll_network("ethereum")
            seek.seek_departures("ethereum")

    def be_a_stranger(self) -> None:
        """Use the hot wallet's key behind the gateway's back."""
        keys = held_keys.keys().deriver(self.context.catalogue.networks["ethereum"]).keyring()
        signed = sign_spend(
            plan_spend(to=BUYER, units=1, contract=None),
            partial(keys.sign, KeyRef(address=self.hot, ordinal=None)),
            chain_id=1,
            nonce=int(self.node.ask("eth_getTransactionCount", self.hot, "latest"), 16),
            offer=gas_offer(gas_limit=21_000, price_units=210 * 10**9, tip_units=10 * 10**9),
        )
        assert self.node.ask("eth_sendRawTransaction", "0x" + signed.raw.hex()) == signed.txid
        self.node.mine()

    def give_up(self) -> None:
        """Let the operator write off the sum that a thief took, once none of our spends has its slot."""
        units, waiting = writeoffs.explained(self.context.catalogue, "ethereum", "ETH")
        if waiting:
            with contextlib.suppress(writeoffs.RecoveryError):
                writeoffs.write_off(self.context.catalogue, "ethereum", "ETH", units, reason="a test", by="operator")
                self.step()

    def settle(self) -> None:
        """Take an included payout to its end."""
        self.bury(1)
        self.step()
        self.bury(ETHEREUM.confirmations)
        self.step()


def pay(gateway: Gateway) -> None:
    gateway.step()
    gateway.settle()


def bump(gateway: Gateway) -> None:
    gateway.step()
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (PATIENCE_S,))
    cursors.note_looks()
    gateway.scan()
    gateway.step()
    gateway.settle()


def reorg(gateway: Gateway) -> None:
    gateway.step()
    gateway.bury(1)
    gateway.step()
    gateway.node.ask("anvil_reorg", 1, [])
    gateway.scan()
    gateway.step()
    gateway.settle()


def stranger(gateway: Gateway) -> None:
    """Let a thief with our key be faster, once."""
    gateway.step()
    gateway.bury(ETHEREUM.maturity + 1)
    gateway.step()
    gateway.give_up()
    gateway.settle()


def blocked(gateway: Gateway) -> None:
    gateway.step()


PARTS: Final[Mapping[str, Callable[[Gateway], None]]] = {
    part.__name__: part for part in (pay, bump, reorg, stranger, blocked)
}


def play(env: Mapping[str, str], hot: str, part: str, kill_at: int | None, pipe: Connection) -> None:
    """Play a part; die at the checkpoint of that number, or report all checkpoints."""
    gateway = Gateway(env, hot)
    # An earlier process's scan does not count.
    execute("UPDATE chain_cursors SET head_reached_at = NULL")
    gateway.scan()
    labels: list[str] = []

    def hear(label: str) -> None:
        labels.append(label)
        if part == "stranger" and labels.count(label) == 1 and label == "spending.committed":
            gateway.be_a_stranger()
        if kill_at == len(labels) - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.listen(hear)
    PARTS[part](gateway)
    pipe.send(labels)
    base.close()
