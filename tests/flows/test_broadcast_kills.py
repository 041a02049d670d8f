"""A signer is killed at every single checkpoint, on a real chain: each spend that it began leaves exactly once."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from chains.keys import Keys
from core.ids import uuid7
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_token
from models.db.base import execute, rows, transaction
from models.ledger.ledger import AVAILABLE, CUSTODY, GATEWAY, PAYOUT_HELD, Account, Transfer, balance, post
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends.tracking import WATCHED_ON_BLOCKS
from tests.core.logs.labels import labels_in_code
from tests.flows import broadcast_child
from tests.flows.broadcast_child import PARTS, Gateway
from tests.models.builders import CATALOGUE, USDT, merchant

ROOT: Final = Path(__file__).parents[2]
MNEMONIC: Final = " ".join(["abandon"] * 11 + ["about"])
TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
CHILD_LIMIT_S: Final = 60
ROUNDS_MAX: Final = 40
TOKEN: Final = str(CATALOGUE.pairs["USDT", "ethereum"].contract)


@dataclass
class Stage:
    """A chain, a database, and signers that come and go."""

    env: dict[str, str]
    deny_list: Path
    gateway: Gateway
    shop: UUID
    orders: list[tuple[UUID, str]] = field(default_factory=list)
    _processes: Any = field(default_factory=lambda: multiprocessing.get_context("forkserver"))

    def order(self) -> tuple[UUID, str]:
        payout_id, address = uuid7(), "0x" + uuid4().hex + "00000000"
        new = PayoutRow(
            id=payout_id, merchant_id=self.shop, order_id=str(payout_id), kind="payout", currency="USDT",
            network="ethereum", address=address, amount_units=USDT, fee_units=USDT, to_units=USDT, is_fee_on_top=True,
            status="approved", created_by="test",
        )  # fmt: skip
        with transaction():
            payouts.insert(CATALOGUE, new)
        self.orders.append((payout_id, address))
        return payout_id, address

    def play(self, part: str, kill_at: int | None = None) -> list[str] | None:
        """Let a signer play a part; return what it reached, or None where it killed itself."""
        sending, receiving = multiprocessing.Pipe(duplex=False)
        process = self._processes.Process(
            target=broadcast_child.play, args=(self.env, self.gateway.hot, part, kill_at, receiving)
        )
        process.start()
        receiving.close()
        process.join(CHILD_LIMIT_S)
        if process.is_alive():
            process.kill()
            raise AssertionError("the signer does not end")
        if process.exitcode == -signal.SIGKILL:
            return None
        assert process.exitcode == 0, part
        labels: list[str] = sending.recv()
        return labels

    def status(self, payout_id: UUID) -> str:
        return str(rows("SELECT status FROM payouts WHERE id = %s", (payout_id,))[0][0])

    def finish(self, payout_id: UUID) -> str:
        """Let another signer go on until the payout has ended."""
        for _ in range(ROUNDS_MAX):
            self.gateway.step()
            if self.status(payout_id) in {"confirmed", "failed"}:
                # No spend is still watched that would disturb the next part.
                self.gateway.bury(CATALOGUE.networks["ethereum"].maturity + WATCHED_ON_BLOCKS)
                self.gateway.step()
                break
            self.gateway.give_up()
            self.gateway.bury(2)
        return self.status(payout_id)

    def arrived(self, address: str) -> list[int]:
        """Return what the token says arrived at an address, transfer by transfer."""
        topics = [TRANSFER_TOPIC, None, "0x" + address.removeprefix("0x").rjust(64, "0")]
        logs = self.gateway.node.ask(
            "eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "address": TOKEN, "topics": topics}
        )
        return [int(log["data"], 16) for log in logs]


@pytest.fixture
def stage(database: str, anvil: Callable[..., Anvil], tmp_path: Path) -> Stage:
    deny_list = tmp_path / "denied"
    deny_list.write_text("")
    env = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": database,
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "WALLET_MNEMONIC": MNEMONIC,
        "DENY_LIST": str(deny_list),
        "LOG_LEVEL": "error",
        "ETHEREUM_RPC_URLS": anvil("ethereum", block_time_s=None).url,
    }
    hot = Keys(MNEMONIC).hot_address(CATALOGUE.networks["ethereum"])
    gateway = Gateway(env, hot)
    gateway.node.ask("anvil_setBalance", hot, hex(10**20))
    install_token(gateway.node.rpc, CATALOGUE.pairs["USDT", "ethereum"], balances={hot: 10**12})
    gateway.bury(1)
    for currency in CATALOGUE.assets:
        execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())", (currency,))
    shop = merchant()
    with transaction():
        custody = Account(GATEWAY, CUSTODY, "USDT", "ethereum")
        post("test:fund", [Transfer(custody, Account(shop, AVAILABLE, "USDT"), 10_000 * USDT)])
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.flows.broadcast_child"])
    return Stage(env, deny_list, gateway, shop)


@pytest.mark.timeout(600)
@pytest.mark.fresh_database
def test_a_signer_killed_at_any_checkpoint_leaves_one_transfer(stage: Stage) -> None:
    reached: set[str] = set()
    for part in PARTS:
        labels = rehearse(stage, part)
        fresh = [number for number, label in enumerate(labels) if is_worth_a_death(labels, number, reached)]
        reached |= set(labels)
        for number in fresh:
            perform(stage, part, number, labels[number])

    assert labels_in_code() - reached == set(), "no part leads there: add one"
    assert rows("SELECT count(*) FROM spends WHERE state IN ('signed', 'sent')") == [(0,)]
    left = len([payout_id for payout_id, _ in stage.orders if stage.status(payout_id) == "confirmed"])
    held_units = balance(Account(stage.shop, PAYOUT_HELD, "USDT"))
    assert (held_units, balance(Account(stage.shop, AVAILABLE, "USDT"))) == (0, (10_000 - 2 * left) * USDT)


def is_worth_a_death(labels: list[str], number: int, reached: set[str]) -> bool:
    """Whether no signer has died there: where a label is new, and where one comes first after what is new in a part."""
    new = next((at for at, label in enumerate(labels) if label not in reached), len(labels))
    return number >= new and labels[number] not in labels[new:number]


def prepare(stage: Stage, part: str) -> tuple[UUID, str, list[int]]:
    payout_id, address = stage.order()
    stage.deny_list.write_text(address if part == "blocked" else "")
    return payout_id, address, [] if part == "blocked" else [10**6]


def rehearse(stage: Stage, part: str) -> list[str]:
    payout_id, address, wanted = prepare(stage, part)
    labels = stage.play(part)
    assert labels is not None
    assert stage.finish(payout_id) == ("confirmed" if wanted else "failed")
    assert stage.arrived(address) == wanted, part
    return labels


def perform(stage: Stage, part: str, number: int, label: str) -> None:
    payout_id, address, wanted = prepare(stage, part)
    assert stage.play(part, number) is None, f"{part} did not reach {label} again"
    assert stage.finish(payout_id) == ("confirmed" if wanted else "failed"), (part, label)
    assert stage.arrived(address) == wanted, (part, label)
