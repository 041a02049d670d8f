"""`sluice clock advance` moves the gateway and its chains together, and only in development."""

import base64
import time
from collections.abc import Callable, Iterator

import pytest

from devstack.evm.anvil import Anvil
from models.db import base
from models.rates.rates import load_market
from tests.cli.conftest import CommandLine
from tests.peers.json_rpc_node import JsonRpcNode, Refusal


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    newest = {"timestamp": hex(int(time.time()))}
    answers = {"eth_chainId": "0x1", "eth_getBlockByNumber": newest, "evm_increaseTime": 3600, "evm_mine": "0x0"}
    with JsonRpcNode(answers) as node:
        yield node


def ahead_s(sluice: CommandLine) -> int:
    base.connect(sluice.env["DATABASE_URL"])
    row = base.one("SELECT extract(epoch FROM ahead)::bigint FROM app_clock")
    assert row is not None
    return int(row[0])


def test_the_clock_moves_and_adds_up(sluice_db: CommandLine) -> None:
    assert sluice_db("clock", "advance", "3600", "--json").json["advanced_s"] == 3600
    assert sluice_db("clock", "advance", "60").code == 0
    assert ahead_s(sluice_db) == 3660


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h", 3600), ("1h30m", 5400), ("2d", 172_800), ("1d1h1m1s", 90_061), ("90m", 5400)],
)
def test_a_duration_is_read_as_it_is_written(sluice_db: CommandLine, text: str, seconds: int) -> None:
    assert sluice_db("clock", "advance", text, "--json").json["advanced_s"] == seconds


def test_rates_are_as_fresh_as_before(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    base.execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('USDT', 1, 'test', app_now())")

    assert sluice_db("clock", "advance", "86400").code == 0

    assert load_market().rates.keys() == {"USDT"}


def test_a_development_chain_moves_along(sluice_db: CommandLine, node: JsonRpcNode) -> None:
    sluice_db.env["ETHEREUM_RPC_URLS"] = f"{node.url},http://127.0.0.1:1"
    assert sluice_db("clock", "advance", "3600", "--json").json["chains"] == {"ethereum": True}
    assert node.asked == ["eth_chainId", "eth_getBlockByNumber", "evm_increaseTime", "evm_mine"]


def test_a_chain_that_cannot_be_moved_keeps_its_clock(sluice_db: CommandLine, node: JsonRpcNode) -> None:
    node.answers["evm_increaseTime"] = Refusal(-32601, "method not found")
    sluice_db.env["ETHEREUM_RPC_URLS"] = node.url
    assert sluice_db("clock", "advance", "3600", "--json").json["chains"] == {"ethereum": False}
    assert ahead_s(sluice_db) == 3600


def test_nothing_moves_while_a_chain_is_away(sluice_db: CommandLine, node: JsonRpcNode) -> None:
    sluice_db.env.update(ETHEREUM_RPC_URLS=node.url, BSC_RPC_URLS="http://127.0.0.1:1/secret-path-key")
    outcome = sluice_db("clock", "advance", "3600")
    assert outcome.code == 1
    assert "bsc" in outcome.err
    assert "secret-path-key" not in outcome.err
    assert "evm_increaseTime" not in node.asked
    assert ahead_s(sluice_db) == 0


@pytest.mark.parametrize(
    "seconds",
    ["0", "-1", "1.5", "nan", "99999999999", "", "0h", "1h30", "30m1h", "1H", "h", "1 h", "1h\n", "\u0661h", "4000d"],
)
def test_only_a_sensible_number_of_seconds_is_taken(sluice_db: CommandLine, seconds: str) -> None:
    assert sluice_db("clock", "advance", "--", seconds).code == 2
    assert ahead_s(sluice_db) == 0


def test_production_refuses(sluice_db: CommandLine, node: JsonRpcNode) -> None:
    sluice_db.env.update(
        ENVIRONMENT="production",
        BASE_URL="https://api.example.com",
        SECRET_KEYS="k:" + base64.b64encode(b"k" * 32).decode(),
        ETHEREUM_RPC_URLS=node.url,
        SINGLE_PROVIDER_OK="1",
    )
    outcome = sluice_db("clock", "advance", "3600")
    assert outcome.code == 1
    assert "production" in outcome.err
    assert ahead_s(sluice_db) == 0
    assert node.asked == []


def test_the_blocks_of_a_real_chain_carry_the_moved_time(sluice_db: CommandLine, anvil: "Callable[..., Anvil]") -> None:
    from chains.evm.wire import quantity  # noqa: PLC0415
    from chains.net.json_rpc import JsonRpc  # noqa: PLC0415

    chain = anvil("ethereum")
    rpc = JsonRpc(chain.url, timeout_s=5)

    def latest_s() -> int:
        return quantity(rpc.call("eth_getBlockByNumber", ["latest", False], dict)["timestamp"])

    before = latest_s()
    sluice_db.env["ETHEREUM_RPC_URLS"] = chain.url
    assert sluice_db("clock", "advance", "86400").code == 0
    assert 86400 <= latest_s() - before < 86400 + 60

    # A reorg takes the blocks that the clock was moved by; the next step catches up.
    rpc.call_or_none("anvil_reorg", [1, []], object)
    assert sluice_db("clock", "advance", "3600").code == 0
    assert 90000 <= latest_s() - before < 90000 + 60
