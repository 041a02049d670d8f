"""`sluice scan`, as an operator types it, over real nodes whose scan may be halted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import structlog

from actors import context
from actors.scan import rewind
from chains.evm import wire
from chains.registry import reader
from devstack.evm.anvil import Anvil
from models.db import base
from models.db.base import execute, rows
from models.deposits import cursors, scans
from models.outcomes import reversals
from tests.actors.scan.test_lying_providers import lead_away
from tests.actors.scan.world import World
from tests.cli.conftest import CommandLine
from tests.models.wallets.builders import wallet
from tests.peers.lying_rpc import DOWN, LyingRpc

DEEPER = "a reorg deeper than the kept blocks"
FAR = 10**9


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil], sluice: CommandLine) -> Iterator[World]:
    with World(database, anvil).served_by(2) as made:
        sluice.env["DATABASE_URL"] = database
        sluice.env["ETHEREUM_RPC_URLS"] = ",".join(provider.url for provider in made.providers)
        yield made


def led_away(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let one provider alone lead the scan so far that only its own blocks are kept; return the last true one."""
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 4)
    fork = world.cursor()[0]
    world.providers[1].failure = DOWN
    lead_away(world.providers[0], fork)
    world.mine(8)
    world.poll(2)
    execute("UPDATE chain_cursors SET reread_height = height")
    world.mine(2)
    world.poll(2)
    world.providers[0].lies.clear()
    world.providers[1].failure = None
    world.poll(2)
    assert world.halted() == DEEPER
    return fork


def rewound(sluice: CommandLine, database: str, *words: str) -> tuple[int, str]:
    outcome = sluice("scan", "rewind", "ethereum", *words)
    base.connect(database)
    return outcome.code, outcome.err


def test_a_scan_that_was_led_away_goes_on_from_the_block_that_is_named(
    world: World, sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = led_away(world, monkeypatch)
    outcome = sluice("scan", "rewind", "ethereum", "--to", str(fork), "--json")
    base.connect(database)
    assert (outcome.code, outcome.json["height"], outcome.json["deposits_taken_back"]) == (0, fork, 0)
    assert world.halted() == ""

    mine = world.invoice()
    world.pay(mine)
    world.mine(2)
    world.catch_up()
    assert world.status(mine) == "paid"


def test_the_halt_names_the_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with structlog.testing.capture_logs() as logs:
        led_away(world, monkeypatch)
    (logged,) = [log for log in logs if log["event"] == "scan.halted"]
    assert logged["command"] == "sluice scan rewind ethereum --to HEIGHT"


def test_credited_deposits_are_taken_back_by_force_alone_and_come_back_by_being_read(
    world: World, sluice: CommandLine, database: str
) -> None:
    before = world.cursor()[0]
    mine = world.invoice()
    world.pay(mine)
    world.confirm_sent()
    assert world.status(mine) == "paid"
    credited = world.credited()
    cursors.halt("ethereum", "a test")

    code, problem = rewound(sluice, database, "--to", str(before))
    assert (code, world.status(mine)) == (1, "paid")
    assert "1 credited deposits are above" in problem
    assert rewound(sluice, database, "--to", str(before), "--force")[0] == 0
    assert (world.status(mine), world.cursor()[0]) == ("check", before)

    world.catch_up()
    assert (world.status(mine), world.credited()) == ("paid", credited)


def test_it_is_refused_where_it_is_not_needed_or_not_possible(world: World, sluice: CommandLine, database: str) -> None:
    world.advance(3)
    at = world.cursor()[0]
    assert "is not halted" in rewound(sluice, database, "--to", str(at - 1))[1]
    cursors.halt("ethereum", "a test")
    for height, problem in ((at, "name a lower one"), (0, "began at block")):
        assert problem in rewound(sluice, database, "--to", str(height))[1]
    for provider in world.providers:
        provider.lag(3)
    assert "no provider of ethereum has a block" in rewound(sluice, database, "--to", str(at - 1))[1]
    for provider in world.providers:
        provider.lies.clear()
    world.providers[1].failure = DOWN
    assert "one provider alone has this block" in rewound(sluice, database, "--to", str(at - 1))[1]
    world.providers[0].failure = DOWN
    assert "the providers of ethereum failed" in rewound(sluice, database, "--to", str(at - 1))[1]
    assert world.cursor()[0] == at
    assert "has no providers here" in sluice("scan", "rewind", "bitcoin", "--to", "1").err


def test_one_provider_is_enough_with_force(world: World, sluice: CommandLine, database: str) -> None:
    world.advance(3)
    at = world.cursor()[0]
    world.providers[1].failure = DOWN
    assert rewound(sluice, database, "--to", str(at - 1), "--force")[0] == 0
    assert world.cursor()[0] == at - 1


def test_a_scan_that_moves_meanwhile_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.advance(3)
    at = world.cursor()[0]
    count = scans.deposits_above

    def moving(*place: Any) -> int:
        world.advance()
        return count(*place)

    monkeypatch.setattr(scans, "deposits_above", moving)
    process = context.context()
    with pytest.raises(rewind.RewindRefusedError, match="moved in between"):
        rewind.rewind(process, world.network, reader(world.network, process.settings), at - 1, is_forced=True)
    assert world.cursor()[0] == at + 1


def test_a_scan_that_has_not_begun_is_not_moved(world: World, sluice: CommandLine, database: str) -> None:
    execute("DELETE FROM chain_blocks")
    execute("DELETE FROM chain_cursors")
    assert "has not begun" in rewound(sluice, database, "--to", "1")[1]
    assert sluice("scan", "show").out == "no scan has begun\n"
    base.connect(database)
    world.poll()


def test_scans_are_shown(world: World, sluice: CommandLine, database: str) -> None:
    at, block_hash = world.cursor()
    answer = sluice("scan", "show", "ethereum", "--json").json["scans"]
    base.connect(database)
    kept = rows("SELECT min(height), count(*) FROM chain_blocks")[0]
    assert answer == [
        {
            "network": "ethereum", "height": at, "block_hash": block_hash, "head_height": at, "kept_from": kept[0],
            "kept_blocks": kept[1], "halted_reason": None, "halted_at": None,
        }
    ]  # fmt: skip
    cursors.halt("ethereum", "a test")
    assert "HALTED since" in sluice("scan", "show").out
    assert "there is no network" in sluice("scan", "show", "nowhere").err
    base.connect(database)


def test_a_block_above_the_fork_is_refused(
    world: World, sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks between the fork and it would never be read."""
    fork = led_away(world, monkeypatch)
    (kept_from,) = rows("SELECT min(height) FROM chain_blocks")[0]
    for words in ((), ("--force",)):
        code, problem = rewound(sluice, database, "--to", str(kept_from), *words)
        assert (code, world.halted()) == (1, DEEPER)
        assert f"keeps blocks from {kept_from} on" in problem
    assert rewound(sluice, database, "--to", str(fork))[0] == 0


def test_a_block_above_a_deposit_that_was_made_up_is_refused(world: World, sluice: CommandLine, database: str) -> None:
    at = world.cursor()[0]
    mine = world.invoice()
    world.pay(mine)
    world.confirm_sent()
    world.advance(3)
    cursors.halt("ethereum", "a test")
    execute("DELETE FROM chain_blocks WHERE height < (SELECT height FROM chain_cursors)")
    execute("UPDATE deposits SET block_hash = %s", ("0x" + "de" * 32,))
    code, problem = rewound(sluice, database, "--to", str(at + 2))
    assert code == 1
    assert f"does not have the block {at + 1} of a deposit" in problem
    assert rewound(sluice, database, "--to", str(at), "--force")[0] == 0


def test_a_block_that_another_provider_denies_is_refused_by_force_too(
    world: World, sluice: CommandLine, database: str
) -> None:
    before = world.cursor()
    world.advance(3)
    at = world.cursor()
    cursors.halt("ethereum", "a test")
    lead_away(world.providers[0], before[0])
    for words in ((), ("--force",)):
        code, problem = rewound(sluice, database, "--to", str(before[0] + 2), *words)
        assert (code, world.cursor()) == (1, at)
        assert "have different blocks" in problem


def make_up_a_head(world: World, provider: LyingRpc) -> None:
    """Let a provider show a block far above the chain, whose hash is that of its header."""

    def show(truth: Any, params: list[Any]) -> Any:
        if params[0] != hex(FAR):
            return truth
        newest = world.node.ask("eth_getBlockByNumber", "latest", False)
        made_up = newest | {"number": hex(FAR), "transactions": [], "logsBloom": "0x" + "00" * 256, "gasUsed": "0x0"}
        return made_up | {"hash": wire.proved_hash(msgspec.convert(made_up, wire.Header))}

    provider.lies |= {"eth_getBlockByNumber": show, "eth_blockNumber": hex(FAR)}


def test_a_scan_does_not_begin_at_a_block_that_one_provider_made_up(database: str, anvil: Callable[..., Anvil]) -> None:
    with World(database, anvil).served_by(3) as world:
        execute("DELETE FROM chain_blocks")
        execute("DELETE FROM chain_cursors")
        make_up_a_head(world, world.providers[0])
        world.poll()
        assert rows("SELECT height FROM chain_cursors") == []
        world.providers[0].lies.clear()
        world.poll()
        assert world.cursor()[0] == world.node.height()


def test_a_scan_that_began_at_a_made_up_block_halts_and_is_moved_below_it_by_force(
    world: World, sluice: CommandLine, database: str
) -> None:
    before = world.cursor()[0]
    execute("UPDATE chain_cursors SET height = %s, started_height = %s, hash = 'made up'", (FAR, FAR))
    execute("DELETE FROM chain_blocks")
    execute(
        "INSERT INTO chain_blocks (network, height, hash, parent_height, parent_hash, block_time)"
        " SELECT network, height, hash, height - 1, '', block_time FROM chain_cursors"
    )
    mine = world.invoice()
    world.pay(mine)
    world.mine(3)
    with structlog.testing.capture_logs() as logs:
        world.poll(2)
    assert [log["command"] for log in logs if log["event"] == "scan.ahead_of_chain"] == [
        "sluice scan rewind ethereum --to HEIGHT --force"
    ]
    assert world.halted() == "the chain ends below the kept blocks"

    assert "began at block" in rewound(sluice, database, "--to", str(before))[1]
    assert rewound(sluice, database, "--to", str(before), "--force")[0] == 0
    assert cursors.started_height("ethereum") == before
    world.catch_up()
    assert world.status(mine) == "paid"


@pytest.mark.parametrize("kind", ["invoice", "wallet"])
def test_a_rewind_that_stalls_leaves_what_the_scan_has_read_again(world: World, kind: str) -> None:
    """The worker takes the operator's list back and reads on before the operator's process begins with it."""
    before = world.cursor()[0]
    world.pay(world.invoice() if kind == "invoice" else wallet(world.shop))
    world.confirm_sent()
    assert world.deposits("status", "round") == [("credited", 0)]
    process = context.context()
    with pytest.MonkeyPatch.context() as patch:

        def stalled(step: Any, *args: Any, **more: Any) -> Any:
            patch.undo()
            world.catch_up()
            return step(*args, **more)

        patch.setattr(reversals, "repeat_on_deadlock", stalled)
        chain = reader(world.network, process.settings)
        rewind.rewind(process, world.network, chain, before, is_forced=True)
    assert world.deposits("status", "round") == [("credited", 1)]
    world.assert_sound()
