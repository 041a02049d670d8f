"""Commands find the stack of this machine, and no other gateway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.output import CommandError
from cli.shell import surroundings
from devstack.plan import ROOT
from devstack.running import state
from tests.cli.conftest import CommandLine
from tests.devstack.running.conftest import ENV, Folder


def test_a_running_stack_is_found_by_its_folder(folder: Folder) -> None:
    stack = state.find(folder.path, {})

    assert (stack.base_url, stack.desk_url) == (ENV["BASE_URL"], ENV["DEVELOPMENT_DESK_URL"])
    assert stack.folder == folder.path


def test_the_folder_may_come_from_a_variable_and_an_option_precedes_it(folder: Folder, tmp_path: Path) -> None:
    assert state.find(None, {state.FOLDER: str(folder.path)}).folder == folder.path
    with pytest.raises(CommandError, match="no development stack runs in"):
        state.find(tmp_path / "none", {state.FOLDER: str(folder.path)})


def test_a_stack_that_another_user_wrote_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path.parent)
    monkeypatch.setattr(state, "DATA_DEFAULT", Path(folder.path.name))
    monkeypatch.setattr(state, "_owner", lambda _file: os.geteuid() + 1)

    for seek in (lambda: state.find(folder.path, {}), lambda: state.settings_here({})):
        with pytest.raises(CommandError, match="is another user's: run this as the user who started it"):
            seek()


def test_roots_stack_is_used_by_others(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_owner", lambda _file: 0)

    assert state.find(folder.path, {}).folder == folder.path


@pytest.mark.parametrize("left", ["nothing", "no folder", "no file", "a file in its place", "killed"])
def test_beside_no_stack_a_command_names_the_remedy(folder: Folder, left: str) -> None:
    match left:
        case "no file":
            (folder.path / state.FILE_NAME).unlink()
        case "killed":
            folder.end()
        case _:
            shutil.rmtree(folder.path)
    if left == "a file in its place":
        folder.path.write_text("")
    elif left == "nothing":
        folder.path.mkdir()
    with pytest.raises(CommandError, match=r"no development stack runs in .*stack: start one with `sluice dev`"):
        state.find(folder.path, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ENVIRONMENT": "production"}, "not for development"),
        ({"BASE_URL": "https://pay.example.com"}, r"uses pay\.example\.com \(BASE_URL\)"),
        ({"PAY_URL": "http://10.0.0.1"}, r"10\.0\.0\.1 \(PAY_URL\)"),
        ({"DEVELOPMENT_DESK_URL": ""}, r"an unknown host \(DEVELOPMENT_DESK_URL\)"),
        ({"ETHEREUM_RPC_URLS": "http://127.0.0.1:1,https://eth.example.org/key"}, r"eth\.example\.org"),
        ({"REDIS_URL": "redis://cache.example.com/0"}, r"cache\.example\.com \(REDIS_URL\)"),
        ({"DATABASE_URL": "postgresql://u:p@db.example.com/x"}, r"db\.example\.com \(DATABASE_URL\)"),
        ({"DATABASE_URL": "postgresql://u:p@127.0.0.1/x?host=db.example.com"}, r"db\.example\.com"),
        ({"DATABASE_URL": "postgresql://u:p@localhost/x?hostaddr=192.0.2.1"}, r"192\.0\.2\.1"),
        ({"DATABASE_URL": "postgresql://u:p@127.0.0.1,db.example.com/x"}, r"db\.example\.com"),
        ({"DATABASE_URL": "service=prod"}, "an unknown host"),
        ({"DATABASE_URL": "mysql://x"}, "an unknown host"),
    ],
)
def test_other_environments_and_machines_are_refused(folder: Folder, changes: dict[str, str], words: str) -> None:
    folder.ready["env"] |= changes
    folder.write()
    with pytest.raises(CommandError, match=words):
        state.find(folder.path, {})


@pytest.mark.parametrize("url", ["postgresql:///x?host=/run/postgresql", "postgresql://u@localhost/x"])
def test_a_database_of_this_machine_is_taken(folder: Folder, url: str) -> None:
    folder.ready["env"] |= {"DATABASE_URL": url, "REDIS_URL": "unix:///run/redis.sock"}
    folder.write()
    assert state.find(folder.path, {})


def test_a_caller_in_another_environment_is_refused(folder: Folder) -> None:
    with pytest.raises(CommandError, match="ENVIRONMENT is not development"):
        state.find(folder.path, {"ENVIRONMENT": "production"})


def test_without_rights_on_the_folder_the_line_says_so(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(self: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(CommandError, match=r"cannot be read \(Permission denied\): run this as the user who started"):
        state.find(folder.path, {})


def test_a_commands_environment_has_the_stacks_settings_and_no_real_nodes_or_wallet(folder: Folder) -> None:
    mine = {"HOME": "/home/dev", "TRON_RPC_URLS": "https://tron", "WALLET_MNEMONIC": "words", "PATH": "/bin"}
    env = state.find(folder.path, {}).environment(mine)

    assert env == {
        **ENV, "HOME": "/home/dev", "PUBLIC_ID": "pk_1", "SECRET": "sk_1", "SLUICE_STACK": str(folder.path),
        "PATH": f"{Path(sys.executable).parent}:/bin",
    }  # fmt: skip


def test_a_new_stack_takes_no_stores_of_another_stack() -> None:
    stores = {name: ENV[name] for name in state.STORES}
    assert state.for_new_stack({**stores, "HOME": "/"}) == {**stores, "HOME": "/"}
    assert state.for_new_stack({**stores, "HOME": "/", "SLUICE_STACK": "/x"}) == {"HOME": "/"}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ENVIRONMENT": "production"}, "ENVIRONMENT is not development"),
        ({"DATABASE_URL": "postgresql://u:hunter2@db.example.com/x"}, r"DATABASE_URL names db\.example\.com"),
        ({"REDIS_URL": "rediss://:hunter2@cache.example.com/0"}, r"REDIS_URL names cache\.example\.com"),
        ({"REDIS_URL": "redis:///0"}, "REDIS_URL names an unknown host"),
        ({"REDIS_URL": "redis://[::1"}, "REDIS_URL names an unknown host"),
    ],
)
def test_a_stack_starts_for_development_and_on_this_machine_alone(env: dict[str, str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        state.for_new_stack(env)
    assert "hunter2" not in str(refused.value)


class TestAnOperatorsCommandWithoutVariables:
    """It uses the usual folder's stack, and says so."""

    @pytest.fixture(autouse=True)
    def _usual(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state, "DATA_DEFAULT", folder.path)
        for name in ("ENVIRONMENT", "DATABASE_URL", "REDIS_URL", state.FOLDER):
            monkeypatch.delenv(name, raising=False)

    def test_it_has_the_stacks_settings(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert surroundings.variables()["DATABASE_URL"] == ENV["DATABASE_URL"]
        captured = capsys.readouterr()
        assert (captured.out, captured.err.startswith("sluice: with the settings of the stack in ")) == ("", True)

    @pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
    def test_its_own_gateway_precedes(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, "mine")
        assert surroundings.variables() is os.environ

    def test_production_never_takes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ENVIRONMENT", "production")
        assert surroundings.variables() is os.environ

    def test_an_ended_stack_is_not_taken(self, folder: Folder) -> None:
        folder.end()
        assert surroundings.variables() is os.environ

    def test_a_wheel_has_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(surroundings, "_DEVSTACK", "devstack_that_is_absent:x")
        assert surroundings.variables() is os.environ

    def test_a_stack_of_another_machine_ends_it_in_a_line(self, folder: Folder, sluice: CommandLine) -> None:
        folder.ready["env"]["DATABASE_URL"] = "postgresql://u:hunter2@db.example.com/x"
        folder.write()
        sluice.env.clear()
        outcome = sluice("merchant", "list")
        assert (outcome.code, len(outcome.err.splitlines())) == (1, 1)
        assert "db.example.com" in outcome.err
        assert "hunter2" not in outcome.err

    def test_the_variable_names_another_stack(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        second = Folder(tmp_path / "second", {**ENV, "BASE_URL": "http://127.0.0.1:8001"})
        monkeypatch.setenv(state.FOLDER, str(second.path))
        assert surroundings.variables()["BASE_URL"] == "http://127.0.0.1:8001"
        second.end()


def test_env_prints_lines_for_a_shell(folder: Folder, sluice: CommandLine) -> None:
    folder.ready["secret"] = "a'b $c"
    folder.write()
    sluice.env = {}
    text = sluice("dev", "env", "--data", str(folder.path)).out
    shown = subprocess.run(
        ["/bin/sh", "-c", f'{text}\nprintf %s "$SECRET"'], capture_output=True, text=True, check=True, env={}
    )
    assert shown.stdout == "a'b $c"
    assert sluice("dev", "--data", str(folder.path), "env", "--json").json["SECRET"] == "a'b $c"


def test_run_becomes_the_command(folder: Folder) -> None:
    words = ["dev", "run", "--data", str(folder.path), "--", sys.executable, "-c"]
    program = "import json, os, sys; print(json.dumps([os.environ['SECRET'], sys.argv[1:]])); sys.exit(7)"
    env = {name: value for name, value in os.environ.items() if name != "ENVIRONMENT"}
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words, program, "--json", "-x"], cwd=ROOT, env=env, capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)) == (7, ["sk_1", ["--json", "-x"]])


@pytest.mark.parametrize("program", ["/nowhere/program", "/etc/passwd", ""])
def test_a_command_that_cannot_be_run_is_named(folder: Folder, sluice: CommandLine, program: str) -> None:
    sluice.env = {}
    outcome = sluice("dev", "run", "--data", str(folder.path), "--", program)
    assert outcome.code == 1
    assert "cannot be run" in outcome.err
