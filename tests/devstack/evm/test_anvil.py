import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chains.net.json_rpc import JsonRpc
from devstack.evm.anvil import Anvil
from devstack.evm.anvil_binary import NoAnvilError, Package, cached_anvil, find_anvil
from tests.devstack.waiting import wait_for

RICH = "0x00000000000000000000000000000000000000aa"


def ask(chain: Anvil, method: str, *params: object) -> Any:
    return JsonRpc(chain.url, timeout_s=5).call_or_none(method, params, object)


def height(chain: Anvil) -> int:
    return int(ask(chain, "eth_blockNumber"), 16)


def run_for(chain: Anvil, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        chain.tick()
        time.sleep(0.05)


def kill(chain: Anvil) -> None:
    assert chain.pid is not None
    os.kill(chain.pid, signal.SIGKILL)
    wait_for(lambda: chain.child is not None and chain.child.exit_code() is not None)


def test_blocks_and_balances_survive_sigkill(anvil: Callable[..., Anvil]) -> None:
    chain = anvil()
    ask(chain, "anvil_setBalance", RICH, hex(7))
    run_for(chain, 2.5)
    block = ask(chain, "eth_getBlockByNumber", "0x1", False)

    kill(chain)
    chain.start()

    assert ask(chain, "eth_getBlockByNumber", "0x1", False)["hash"] == block["hash"]
    assert int(ask(chain, "eth_getBalance", RICH, "latest"), 16) == 7


@pytest.mark.parametrize("rubbish", [b"", b'{"block":{"number":"0x'])
def test_a_state_cut_in_the_middle_gives_way_to_the_one_before(anvil: Callable[..., Anvil], rubbish: bytes) -> None:
    chain = anvil()
    run_for(chain, 4.5)
    before = height(chain)
    kill(chain)
    newest = max(chain._states, key=lambda path: path.stat().st_mtime_ns)

    # Given the kill hit in the middle of a dump
    newest.write_bytes(rubbish)
    chain.start()

    assert 0 < before - height(chain) + 1 <= 4


def test_one_of_two_states_is_always_whole(anvil: Callable[..., Anvil]) -> None:
    chain = anvil()
    run_for(chain, 3.5)

    targets = set()
    for _ in range(60):
        chain.tick()
        targets.add(chain._link.readlink())
        # anvil may truncate the file that it writes at any moment; the other one must be whole.
        spared = next(state for state in chain._states if state.name != chain._link.readlink().name)
        assert spared.stat().st_size > 0
        time.sleep(0.05)
    assert len(targets) == 2


def test_public_keys_hold_no_coin(anvil: Callable[..., Anvil]) -> None:
    chain = anvil("bsc")

    assert ask(chain, "eth_accounts") == []
    assert ask(chain, "eth_chainId") == "0x38"


def test_the_program_that_the_environment_names_comes_first(tmp_path: Path) -> None:
    program = tmp_path / "anvil"
    program.touch()

    assert find_anvil({"ANVIL": str(program), "PATH": "/nowhere"}, tmp_path) == program


def test_a_named_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoAnvilError, match="ANVIL names"):
        find_anvil({"ANVIL": str(tmp_path / "anvil")}, tmp_path)


def test_path_comes_before_the_cache(tmp_path: Path) -> None:
    program = tmp_path / "anvil"
    program.touch(mode=0o755)

    assert find_anvil({"PATH": str(tmp_path)}, tmp_path / "cache") == program


def test_without_npm_the_reason_is_shown(tmp_path: Path) -> None:
    with pytest.raises(NoAnvilError, match="no npm"):
        find_anvil({"PATH": "/nowhere", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}, tmp_path)


def fake_npm(folder: Path, body: str) -> dict[str, str]:
    npm = folder / "npm"
    npm.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\n{body}\n')
    npm.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


PACK = """\
mkdir -p package/bin && echo program > package/bin/anvil
tar czf foundry.tgz package && rm -r package && echo called >> calls
"""


def test_the_package_is_fetched_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devstack.evm.anvil_binary.PACKAGES", {os.uname().machine: Package("anvil", None)})
    env = fake_npm(tmp_path, PACK)
    cache = tmp_path / "cache"

    first = cached_anvil(env, cache)
    second = cached_anvil(env, cache)

    assert first == second
    assert first.read_text() == "program\n"
    assert os.access(first, os.X_OK)
    assert (first.parent / "calls").read_text() == "called\n"


def test_a_package_with_another_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devstack.evm.anvil_binary.PACKAGES", {os.uname().machine: Package("anvil", "0" * 64)})

    with pytest.raises(NoAnvilError, match="another program"):
        cached_anvil(fake_npm(tmp_path, PACK), tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("anvil")) == []


def test_npms_message_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(NoAnvilError, match="no such thing"):
        cached_anvil(fake_npm(tmp_path, "echo no such thing >&2; exit 1"), tmp_path / "cache")
