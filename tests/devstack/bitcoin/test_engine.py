"""The engine is given again exactly the blocks that it lost: the node's own file decides which blocks exist."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chains.bitcoin.transactions import Tx, TxInput, TxOutput
from devstack.bitcoin.facade import engine
from devstack.bitcoin.facade.blocks import make_block, subsidy_units
from devstack.bitcoin.facade.faults import RefusedError
from devstack.bitcoin.facade.state import State
from tests.peers.bitcoind.hand_mined import BUYER_SCRIPT

SCRIPT = bytes(BUYER_SCRIPT.data)
WEEK_S = 7 * 86_400


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lists what an engine is given to judge, one of few blocks between two times that it writes."""
    given, takes = list[str](), engine.Engine.takes

    def noted(self: engine.Engine, raw: bytes, block_hash: str) -> bool:
        given.append(block_hash)
        return takes(self, raw, block_hash)

    monkeypatch.setattr(engine.Engine, "takes", noted)
    monkeypatch.setattr(engine, "UNWRITTEN_MAX", 5)
    return given


def killed(state: State, folder: Path) -> Path:
    """Return a folder as a kill would leave it."""
    left = folder.with_name(f"{folder.name} left")
    shutil.copytree(folder, left)
    state.close()
    return left


def mined(folder: Path, blocks: int) -> State:
    state = State(folder)
    for _ in range(blocks):
        state.mine(SCRIPT)
    return state


def spending(tx: Tx, units: int) -> Tx:
    """Return a transaction that spends the first coin of another; nothing shows the right to."""
    return Tx(
        version=2, inputs=(TxInput(txid=tx.txid, vout=0, sequence=0),),
        outputs=(TxOutput(units=units, script=SCRIPT),), lock_time=0,
    )  # fmt: skip


def assert_judges(state: State) -> None:
    """Check that engine and pool are at the chain's tip: they refuse an invalid block there, and accept a valid one."""
    tip = state.view.tip
    reward = TxOutput(units=subsidy_units(tip.height + 1) + 1, script=SCRIPT)
    greedy = make_block(
        previous=tip.hash, height=tip.height + 1, time=tip.block.header.time + 1, paid=(reward,), txs=(), mark=b"mark"
    )
    with pytest.raises(RefusedError, match="the engine refuses"):
        state.submit(greedy)
    state.mine(SCRIPT)
    assert state._engine.tip == state.view.tip.engine_hash
    assert state.view.height == tip.height + 1
    with pytest.raises(RefusedError, match="premature-spend-of-coinbase"):
        state.pool.judge(spending(state.view.tip.block.txs[0], 5_000), now=state.now())


def test_after_a_kill_the_engine_gets_its_unwritten_blocks_again(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path / "chain", 13)
    tip, coins = state.view.tip, state.view.coins
    left = killed(state, tmp_path / "chain")
    shown.clear()

    state = State(left)

    assert shown == [state.at(height).engine_hash for height in (12, 13)]
    assert (state.view.tip.hash, state.view.coins) == (tip.hash, coins)
    assert_judges(state)
    state.close()


def test_a_short_chain_is_in_memory_and_a_longer_one_is_not_lost(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path / "chain", 4)
    assert not (tmp_path / "chain" / "engine" / "chainstate").exists()
    tip = state.view.tip.hash
    left = killed(state, tmp_path / "chain")
    shown.clear()

    state = State(left)

    assert (state.view.tip.hash, len(shown)) == (tip, 4)
    assert (left / "engine" / "chainstate").is_dir()
    assert_judges(state)
    state.close()


def test_a_refused_block_is_absent_at_the_next_start(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path, 6)
    assert_judges(state)
    state.close()
    shown.clear()

    state = State(tmp_path)

    assert (state.view.height, shown) == (7, [])
    state.close()


def test_the_engine_does_not_get_blocks_of_the_future_again(
    tmp_path: Path, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = mined(tmp_path, 5)
    state.mock_time = int(time.time()) + WEEK_S
    moved = state.mine(SCRIPT)
    later = state.mine(SCRIPT)
    state.close()
    shown.clear()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_600)

    state = State(tmp_path)

    assert (state.view.tip.hash, shown) == (later, [])
    assert state.entry(moved).block.header.time - state.entry(moved).engine_time > WEEK_S // 2
    assert_judges(state)
    state.close()


def test_invalidated_and_reconsidered_blocks_are_so_at_the_next_start(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path, 4)
    left = state.at(3).hash
    state.invalidate(left)
    beside = state.mine(SCRIPT)
    state.close()
    shown.clear()

    # The engine has no reason to go there, for what was left is higher: it is asked again whether it would.
    state = State(tmp_path)
    assert (state.view.tip.hash, state.entry(left).is_invalid) == (beside, True)
    assert shown == [state.entry(beside).engine_hash]
    state.mine(SCRIPT)
    assert_judges(state)
    state.reconsider(left)
    tip = state.view.tip.hash
    state.close()

    state = State(tmp_path)
    assert (state.view.tip.hash, state.entry(left).is_invalid) == (tip, False)
    assert_judges(state)
    state.close()


def broken(folder: Path) -> None:
    (folder / "engine" / "chainstate" / "CURRENT").write_text("nothing")


def without_blocks(folder: Path) -> None:
    (folder / "engine" / "blocks" / "blk00000.dat").unlink()


def ended_at_opening(folder: Path) -> None:
    (folder / "engine" / "opening").touch()


def lost(folder: Path) -> None:
    shutil.rmtree(folder / "engine")


def of_another_chain(folder: Path) -> None:
    lost(folder)
    mined(folder.with_name("another"), 9).close()
    (folder.with_name("another") / "engine").rename(folder / "engine")


@pytest.mark.parametrize("harm", [broken, without_blocks, ended_at_opening, lost, of_another_chain])
def test_a_folder_that_does_not_hold_is_thrown_away(
    tmp_path: Path, shown: list[str], harm: Callable[[Path], None]
) -> None:
    state = mined(tmp_path / "chain", 7)
    tip = state.view.tip.hash
    state.close()
    harm(tmp_path / "chain")
    shown.clear()

    state = State(tmp_path / "chain")

    assert shown[-7:] == [state.at(height).engine_hash for height in range(1, 8)]
    assert state.view.tip.hash == tip
    assert_judges(state)
    state.close()


def test_a_folder_that_breaks_while_it_is_used_is_thrown_away(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path, 10)
    broken(tmp_path)
    shown.clear()

    state.mine(SCRIPT)

    assert shown[1:] == [state.at(height).engine_hash for height in range(1, 12)]
    assert_judges(state)
    state.close()


# The engine has written the last one, so that it knows of more than there is, or has not.
@pytest.mark.parametrize(("blocks", "shown_again"), [(6, 5), (8, 1)])
def test_a_file_that_lost_its_last_block_counts(
    tmp_path: Path, shown: list[str], blocks: int, shown_again: int
) -> None:
    state = mined(tmp_path / "chain", blocks)
    before = state.at(state.view.height - 1).hash
    left = killed(state, tmp_path / "chain")
    path = left / "blocks.bin"
    path.write_bytes(path.read_bytes()[:-1])
    shown.clear()

    state = State(left)

    assert state.view.tip.hash == before
    assert len(shown) == shown_again
    assert_judges(state)
    state.close()


def test_a_block_without_its_parent_does_not_count(tmp_path: Path, shown: list[str]) -> None:
    state = mined(tmp_path, 2)
    path = tmp_path / "blocks.bin"
    kept = path.read_bytes()
    state.mine(SCRIPT)
    without = len(path.read_bytes())
    state.mine(SCRIPT)
    state.close()
    path.write_bytes(kept + path.read_bytes()[without:])

    state = State(tmp_path)

    assert state.view.height == 2
    assert_judges(state)
    tip = state.view.tip.hash
    state.close()
    shown.clear()
    state = State(tmp_path)
    assert (state.view.tip.hash, shown) == (tip, [])
    state.close()


def test_no_block_copies_the_coins_of_all_before_it(tmp_path: Path) -> None:
    state = mined(tmp_path, 1)
    coins = state.view.coins
    state.mine(SCRIPT)
    assert state.view.coins is coins
    assert len(coins) == 2
    state.close()


def test_each_coin_is_spent_once_within_a_block_too(tmp_path: Path) -> None:
    state = mined(tmp_path, 1)
    first = spending(state.view.tip.block.txs[0], 9_000)
    second, other = spending(first, 8_000), spending(first, 7_000)

    applied = state.view.apply((first, second), 101, is_proved=True)
    assert list(applied.made) == [(second.txid, 0)]
    assert list(applied.spent) == [first.inputs[0].outpoint, (first.txid, 0)]
    for twice in ((first, second, other), (first, spending(state.view.tip.block.txs[0], 6_000))):
        with pytest.raises(RefusedError, match="missingorspent"):
            state.view.apply(twice, 101, is_proved=True)
    state.close()
