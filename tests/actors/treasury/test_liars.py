"""One lying provider of three neither ends a treasury step nor makes it send an address too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from actors.context import context
from actors.rates.network_fees import refresh_network_fees
from devstack.evm.anvil import Anvil
from models.db.base import column, execute, rows
from models.payouts import freezes
from models.treasury import reconciliation
from models.treasury.reconciliation import MISSES_MAX
from tests.actors.treasury.world import TreasuryWorld
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN, GARBAGE

GWEI = 10**9
BALANCE_OF = "0x70a08231"


@pytest.fixture
def duo(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil).opened(providers=2)


def swept(world: TreasuryWorld) -> list[str]:
    """Fund and sweep an address; return the purposes of the spends."""
    world.paid_invoice()
    # The base fee falls from block to block, as these are nearly empty.
    world.node.ask("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
    world.advance()
    before = len(world.spends())
    world.keep_and_follow(4)
    sent = world.spends("purpose", "currency")[before:]
    # The rest of the gas comes home, sooner or later.
    return [purpose for purpose, currency in sent if (purpose, currency) != ("sweep", "ETH")]


def funded(world: TreasuryWorld) -> int:
    """Return the sum of the last funding."""
    return next(units for purpose, units in reversed(world.spends("purpose", "token_units")) if purpose == "gas")


def dear(truth: Any, _params: list[Any]) -> Any:
    return truth | {"baseFeePerGas": [hex(300 * GWEI)] * len(truth["baseFeePerGas"]), "reward": [[hex(99 * GWEI)]]}


LIES: dict[str, dict[str, Any]] = {
    "gas is dear": {"eth_feeHistory": dear, "eth_gasPrice": hex(400 * GWEI)},
    "it takes much gas": {"eth_estimateGas": hex(300_000)},
    "addresses look empty": {"eth_getBalance": "0x0"},
    "addresses are rich": {"eth_getBalance": hex(10**24)},
    "tokens are not there": {"eth_call": "0x" + "00" * 32},
    "tokens are everywhere": {"eth_call": "0x" + "00" * 20 + "ff" * 12},
    "a nonce of its own": {"eth_getTransactionCount": hex(10**6)},
    "a nonce long gone": {"eth_getTransactionCount": "0x0"},
    "nonsense": dict.fromkeys(("eth_call", "eth_getBalance", "eth_estimateGas", "eth_feeHistory"), "nonsense"),
    "garbage": dict.fromkeys(("eth_call", "eth_getBalance", "eth_estimateGas", "eth_getTransactionCount"), GARBAGE),
    "silence": dict.fromkeys(("eth_call", "eth_getBalance", "eth_estimateGas", "eth_getTransactionCount"), DOWN),
}


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
def test_one_liar_of_three_changes_nothing(trio: TreasuryWorld, lies: dict[str, Any]) -> None:
    assert swept(trio) == ["gas", "sweep"]
    honest = funded(trio)
    trio.providers[0].lies |= lies

    assert swept(trio) == ["gas", "sweep"]

    assert honest // 3 < funded(trio) < honest * 3 // 2
    trio.providers[0].lies.clear()


def test_an_address_with_disputed_balances_delays_no_other(duo: TreasuryWorld) -> None:
    first, second = duo.paid_invoice(), duo.paid_invoice()
    # The walk goes by address.
    odd, other = sorted((first.address.lower(), second.address.lower()))

    def lie(truth: Any, params: list[Any]) -> Any:
        asked = str(params[0].get("data", params[0].get("input", "")))
        return "0x" + "00" * 32 if asked.startswith(BALANCE_OF) and odd[2:] in asked else truth

    duo.providers[0].lies["eth_call"] = lie
    duo.keep_and_follow(3)

    assert set(column("SELECT sender FROM spends WHERE purpose = 'sweep'")) == {other}
    duo.providers[0].lies.clear()
    duo.keep_and_follow(3)
    assert set(column("SELECT sender FROM spends WHERE purpose = 'sweep'")) == {odd, other}


def test_a_provider_that_answers_alone_freezes_no_payouts(duo: TreasuryWorld) -> None:
    duo.advance()
    duo.providers[1].lies |= {"eth_call": DOWN, "eth_getBalance": DOWN}
    duo.providers[0].lies["eth_getBalance"] = "0x0"
    duo.reconcile(MISSES_MAX + 1)
    assert ("ETH", "hot", MISSES_MAX - 1) in duo.findings()
    assert duo.frozen() == []

    duo.providers[1].lies = dict(duo.providers[0].lies)
    duo.advance()
    duo.reconcile()
    assert len(duo.frozen()) == 1, "two providers show it"
    reconciliation.forget_misses(duo.network.code)
    freezes.unfreeze("network", duo.network.code)
    duo.advance()
    duo.reconcile()
    assert ("ETH", "hot", 1) in duo.findings(), "counted from zero"
    assert duo.frozen() == []
    for provider in duo.providers:
        provider.lies.clear()


def test_a_single_providers_report_from_before_a_second_freezes_no_payouts(
    duo: TreasuryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Balances that wait for the scan came from one provider, and are the third miss only when they are compared."""
    monkeypatch.setattr(reconciliation, "is_near_freeze", lambda _network: False)
    duo.advance()
    duo.providers[1].lies |= {"eth_call": DOWN, "eth_getBalance": DOWN}
    duo.providers[0].lies["eth_getBalance"] = "0x0"
    for _ in range(MISSES_MAX):
        duo.advance()
        duo.reconcile()
    assert ("ETH", "hot", MISSES_MAX) in duo.findings()
    assert duo.frozen() == []
    for provider in duo.providers:
        provider.lies.clear()


def test_no_funding_exceeds_the_operators_limit(database: str, anvil: Callable[..., Anvil]) -> None:
    """Even if all providers lie, an address gets at most GAS_FUNDING_MAX_USD at once."""
    world = TreasuryWorld(database, anvil, GAS_FUNDING_MAX_USD="0")
    for opened in world.opened():
        opened.paid_invoice()
        with structlog.testing.capture_logs() as logged:
            opened.keep()
        assert opened.spends() == []
        assert "funding.refused" in [line["event"] for line in logged]


def test_without_a_rate_of_gas_nothing_is_funded(trio: TreasuryWorld) -> None:
    """Its worth would be unknown."""
    trio.paid_invoice()
    execute("DELETE FROM rates WHERE currency = 'ETH'")
    context().market.forget()
    trio.keep()
    assert trio.spends() == []


def test_merchants_are_charged_the_middle_fee_of_three(trio: TreasuryWorld) -> None:
    def quoted() -> int:
        refresh_network_fees("ethereum")
        return int(rows("SELECT units FROM network_fees WHERE currency = 'ETH' AND network = 'ethereum'")[0][0])

    honest = quoted()
    for lies in (LIES["gas is dear"], {"eth_feeHistory": Raw(status=502), "eth_gasPrice": DOWN}):
        trio.providers[0].lies = dict(lies)
        assert quoted() == honest
    trio.providers[0].lies.clear()
