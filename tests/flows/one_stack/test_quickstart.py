"""The commands of docs/quickstart.md work as they are printed, in the order in which they are printed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from devstack.running import state
from tests.devstack.waiting import wait_for
from tests.flows.stack import Stack

PAGE = Path(__file__).parents[3] / "docs" / "quickstart.md"
START = "make demo\n"
LISTEN = ".venv/bin/sluice dev listen\n"


def blocks() -> list[str]:
    """Return the page's commands, a block each."""
    return re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def environment(stack: Stack) -> dict[str, str]:
    """Return a bare environment that names the stack's folder, since it is not the usual one."""
    names = {"HOME", "PATH", "PYTHONPATH"} & os.environ.keys()
    return {name: os.environ[name] for name in names} | {state.FOLDER: str(stack.data)}


@contextlib.contextmanager
def listening(stack: Stack, out: Path) -> Iterator[list[str]]:
    """Run the third terminal, which prints into a file, until it is killed; return its first words."""
    with out.open("w") as file:
        process = subprocess.Popen(here(LISTEN).split(), env=environment(stack), stdout=file, stderr=subprocess.STDOUT)
    wait_for(lambda: "webhook secret" in out.read_text() or process.poll() is not None)
    yield out.read_text().splitlines()[:2]
    process.kill()
    process.wait()


def here(command: str) -> str:
    """Put the environment in which the tests run in place of the repository's."""
    return command.replace(".venv/bin", str(Path(sys.executable).parent))


def test_its_commands_work_as_printed(one_stack: Stack, tmp_path: Path) -> None:
    # Given its commands but for the start and the third terminal, in one shell
    script = [block for block in blocks() if block not in {START, LISTEN}]
    assert len(script) == len(blocks()) - 2
    # An hour less for the other stories of this stack.
    [expiring] = [block for block in script if "clock" in block]
    script[script.index(expiring)] = expiring.replace("1h", "1s")
    # The doctor's verdict is about this machine.
    text = here("".join(script)).replace("sluice doctor\n", "sluice doctor --help >/dev/null\n")

    printed = tmp_path / "listen.txt"
    with listening(one_stack, printed):
        done = subprocess.run(
            ["/bin/bash", "-eu", "-c", text], env=environment(one_stack), capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for(lambda: re.search(r"invoice\.paid \S+ verified\n.*quickstart-1", printed.read_text()), limit_s=60)

    first, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert first["result"]["order_id"] == "quickstart-1"
    assert re.search(r"sent 25 USDT on ethereum to 0x\w{40}: transaction 0x[0-9a-f]{64}", done.stdout)
    assert "Demo shop" in done.stdout
    assert done.stdout.endswith(f"{one_stack.ready['base_url']}\n")


def test_a_listener_that_was_killed_keeps_address_and_secret(one_stack: Stack, tmp_path: Path) -> None:
    # While one listens, another registers an address of its own.
    with listening(one_stack, tmp_path / "1.txt") as first, listening(one_stack, tmp_path / "2.txt") as second:
        assert second[0].startswith("in place of ")
    with listening(one_stack, tmp_path / "3.txt") as third:
        pass
    with listening(one_stack, tmp_path / "4.txt") as fourth:
        assert third == fourth
    assert first[0].startswith("listening on http://127.0.0.1:")


def test_its_table_names_options_that_exist(one_stack: Stack) -> None:
    program = str(Path(sys.executable).parent / "sluice")
    shown = subprocess.run(
        [program, "dev", "pay", "--help"], env=environment(one_stack), capture_output=True, text=True, check=True
    )
    table = re.findall(r"^\| `sluice dev pay (.*?)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(table) == 4
    options = {option for row in table for option in re.findall(r"--\w+", row)}
    assert options == {"--amount", "--times", "--coin"}
    assert {option for option in options if option not in shown.stdout} == set()
