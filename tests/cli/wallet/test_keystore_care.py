"""`sluice wallet verify`, `rekey` and `addresses`, with a keystore or with the words alone."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from chains.keys import Keys
from chains.keystore import KeystoreError, seal, unseal
from cli.output import CommandError
from cli.wallet import files
from cli.wallet.commands import app
from core.addresses import addresses
from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import SERVED_FAMILIES

MNEMONIC: Final = "abandon " * 11 + "about"
OTHER: Final = "test test test test test test test test test test test junk"
PASSPHRASE: Final = "correct horse battery staple"
NEW: Final = "another horse, another staple"
PUBLIC_KEY: Final = Keys(MNEMONIC).pool_public_key


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "wallet.json"
    files.write_new(path, seal(MNEMONIC, PASSPHRASE))
    return path


def run(command: str, *words: str, typed: str = "", **env: str | None) -> Result:
    none = dict.fromkeys(
        ("WALLET_KEYSTORE", "WALLET_KEYSTORE_DATA", "WALLET_PASSPHRASE", "WALLET_PASSPHRASE_FILE",
         "ADDRESS_PUBLIC_KEY", "ENVIRONMENT", "DATABASE_URL")
    )  # fmt: skip
    return CliRunner().invoke(app, [command, *words], input=typed, env={**none, **env})


def verify(keystore: Path, *words: str, typed: str = "", **env: str | None) -> Result:
    given = {"WALLET_PASSPHRASE": PASSPHRASE} | env
    return run("verify", "--keystore", str(keystore), *words, typed=typed, **given)


def opens_with(path: Path) -> set[str]:
    """Return the passphrases that open a keystore."""
    return {each for each in (PASSPHRASE, NEW) if opens(path, each)}


def opens(path: Path, passphrase: str) -> bool:
    try:
        return unseal(path.read_bytes(), passphrase) == MNEMONIC
    except KeystoreError:
        return False


# Verify ---------------------------------------------------------------------------------------------------------


def test_a_keystore_is_verified_without_a_secret_in_the_answer(keystore: Path) -> None:
    result = verify(keystore, "--json")

    assert json.loads(result.stdout) == {
        "keystore": str(keystore),
        "address_public_key": PUBLIC_KEY,
        "public_key_compared": False,
        "words_compared": False,
    }
    assert "abandon" not in result.output


def test_the_words_on_paper_and_the_setting_are_compared(keystore: Path) -> None:
    result = verify(keystore, "--words", typed=f" {MNEMONIC}\n", ADDRESS_PUBLIC_KEY=PUBLIC_KEY)

    assert result.exit_code == 0
    assert "the words are this wallet's" in result.stdout
    assert "of the settings is this wallet's" in result.stdout
    assert "abandon" not in result.output


@pytest.mark.parametrize(
    ("words", "typed", "env", "problem"),
    [
        ((), "", {"WALLET_PASSPHRASE": NEW}, "the passphrase is wrong"),
        ((), "", {"ADDRESS_PUBLIC_KEY": "a" * 44}, "belongs to another wallet"),
        (("--words",), f"{OTHER}\n", {}, "the words of another wallet"),
        (("--words",), "abandon abandon\n", {}, "not a BIP-39 mnemonic"),
        ((), "", {"WALLET_PASSPHRASE_FILE": "/nowhere"}, "the passphrase cannot be read"),
        ((), "", {"WALLET_KEYSTORE_DATA": "%"}, "not base64"),
        ((), "", {"WALLET_KEYSTORE_DATA": base64.b64encode(b"{}").decode()}, "this is not a keystore"),
    ],
)
def test_another_wallet_or_passphrase_is_refused(
    keystore: Path, words: tuple[str, ...], typed: str, env: dict[str, str], problem: str
) -> None:
    result = verify(keystore, *words, typed=typed, **env)

    assert isinstance(result.exception, CommandError)
    assert problem in str(result.exception)
    assert "abandon" not in result.output + str(result.exception)


def test_a_missing_keystore_is_named(tmp_path: Path) -> None:
    failure = verify(tmp_path / "none").exception

    assert isinstance(failure, CommandError)
    assert str(failure) == f"{tmp_path / 'none'}: No such file or directory"
    assert failure.remedy == "name the keystore by --keystore or WALLET_KEYSTORE"


def test_a_keystore_opens_from_platforms_variables(keystore: Path, tmp_path: Path) -> None:
    file, data = tmp_path / "passphrase", base64.b64encode(keystore.read_bytes()).decode()
    file.write_text(PASSPHRASE + "\n")

    result = run("verify", WALLET_KEYSTORE_DATA=data, WALLET_PASSPHRASE_FILE=str(file))
    assert result.stdout.splitlines()[0] == "WALLET_KEYSTORE_DATA opens"


def test_the_passphrase_is_asked_for_once_where_none_is_given(keystore: Path) -> None:
    result = verify(keystore, typed=f"{PASSPHRASE}\n", WALLET_PASSPHRASE=None)
    assert result.exit_code == 0
    assert PASSPHRASE not in result.output


# Rekey ----------------------------------------------------------------------------------------------------------


def rekey(keystore: Path, new: str = NEW) -> Result:
    given = {"WALLET_PASSPHRASE": PASSPHRASE}
    return run("rekey", "--keystore", str(keystore), typed=f"{new}\n{new}\n", **given)


def test_the_new_passphrase_alone_opens_a_keystore_afterwards(keystore: Path) -> None:
    keystore.chmod(0o440)
    result = rekey(keystore)

    assert result.exit_code == 0
    assert opens_with(keystore) == {NEW}
    assert stat.S_IMODE(keystore.stat().st_mode) == 0o440, "the signer's account could not read it"
    assert list(keystore.parent.iterdir()) == [keystore]
    assert not {NEW, PASSPHRASE} & set(result.output.split("\n"))


def test_the_new_passphrase_may_be_a_files(keystore: Path, tmp_path: Path) -> None:
    (tmp_path / "new").write_text(f"{NEW}\n")
    words = ("--keystore", str(keystore), "--new-passphrase-file", str(tmp_path / "new"), "--json")
    result = run("rekey", *words, WALLET_PASSPHRASE=PASSPHRASE)

    assert json.loads(result.stdout) == {"keystore": str(keystore), "address_public_key": PUBLIC_KEY}
    assert opens_with(keystore) == {NEW}


def test_a_keystore_behind_a_link_is_replaced_where_it_is(keystore: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(keystore)
    rekey(link)

    assert link.is_symlink()
    assert opens_with(keystore) == {NEW}


@pytest.mark.parametrize(("new", "problem"), [("short", "at least 12 characters")])
def test_a_passphrase_that_protects_nothing_changes_nothing(keystore: Path, new: str, problem: str) -> None:
    assert problem in str(rekey(keystore, new).exception)
    assert opens_with(keystore) == {PASSPHRASE}


def test_a_wrong_passphrase_rekeys_nothing(keystore: Path) -> None:
    before = keystore.read_bytes()
    result = run("rekey", "--keystore", str(keystore), typed=f"{NEW}\n{NEW}\n", WALLET_PASSPHRASE=NEW)
    assert "the passphrase is wrong" in str(result.exception)
    assert keystore.read_bytes() == before


class PowerCutError(BaseException):
    """Ends a command as a power cut does, from a system call on."""


# The system calls of rekey() in their order, with the passphrase that opens the keystore if the machine ends there.
STEPS: Final = ("open new", "owner", "write", "sync new", "replace", "sync folder")


def traced(monkeypatch: pytest.MonkeyPatch, *, end_before: str | None = None) -> list[str]:
    """Record the steps of a replacement; end the machine before one of them, whereupon nothing more is done."""
    done: list[str] = []

    def wrap(owner: Any, name: str, step: Callable[..., str]) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            now = step(*args)
            if end_before in {now, *done}:
                raise PowerCutError
            done.append(now)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapped)

    is_folder = stat.S_ISDIR
    wrap(files.tempfile, "mkstemp", lambda *_: "open new")
    wrap(files.os, "fchown", lambda *_: "owner")
    wrap(files.os, "fchmod", lambda *_: "write")
    wrap(files.os, "fsync", lambda fd, *_: "sync folder" if is_folder(os.fstat(fd).st_mode) else "sync new")
    wrap(files.Path, "replace", lambda *_: "replace")
    wrap(files.Path, "unlink", lambda *_: "unlink")
    return done


def test_the_new_keystore_is_on_the_disk_before_it_takes_the_place(
    keystore: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = traced(monkeypatch)
    files.rekey(keystore, MNEMONIC, NEW)
    assert tuple(done) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_point_leaves_a_keystore_that_one_passphrase_opens(
    keystore: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:
        traced(patch, end_before=step)
        with pytest.raises(PowerCutError):
            files.rekey(keystore, MNEMONIC, NEW)

    after = {PASSPHRASE} if step != "sync folder" else {NEW}
    assert opens_with(keystore) == after
    # The command can be repeated, with the passphrase that opens it now.
    files.rekey(keystore, MNEMONIC, NEW)
    assert opens_with(keystore) == {NEW}


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_rekey_leaves_no_file_behind(
    keystore: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def full(_: int) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(type(fault)):
            files.rekey(keystore, MNEMONIC, NEW)

    assert list(keystore.parent.iterdir()) == [keystore]
    assert opens_with(keystore) == {PASSPHRASE}


def test_a_full_disk_is_an_operators_line(keystore: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    assert "No space left on device; the old or the new passphrase" in str(rekey(keystore).exception)


def test_a_disk_that_wrote_another_text_costs_no_keystore(keystore: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "seal", lambda _mnemonic, passphrase: seal(OTHER, passphrase))
    with pytest.raises(CommandError, match="was not written as it should be"):
        files.rekey(keystore, MNEMONIC, NEW)
    assert opens_with(keystore) == {PASSPHRASE}


# Addresses ------------------------------------------------------------------------------------------------------


def test_the_words_alone_name_the_published_addresses_of_every_family() -> None:
    result = run("addresses", "--words", "--count", "1", "--json", typed=f"{MNEMONIC}\n")

    named = json.loads(result.stdout)
    assert named["address_public_key"] == PUBLIC_KEY
    first = {each["family"]: each["deposits"][0]["address"] for each in named["families"]}
    assert first.keys() == SERVED_FAMILIES
    assert first["evm"] == "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    assert first["tron"] == "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"
    # BIP-84's own vector.
    assert first["bitcoin"] == "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
    assert "abandon" not in result.output


@pytest.mark.parametrize("environment", ["production", "development"])
def test_every_address_is_the_one_that_the_signer_derives(keystore: Path, environment: str) -> None:
    words = ("--keystore", str(keystore), "--from", "3", "--count", "2", "--json")
    env = {"WALLET_PASSPHRASE": PASSPHRASE, "ENVIRONMENT": environment}
    listed = json.loads(run("addresses", *words, **env).stdout)["families"]

    networks = load_catalogue("development" if environment == "development" else "production").networks
    assert sorted(code for each in listed for code in each["networks"]) == sorted(networks)
    keys = Keys(MNEMONIC)
    for each in listed:
        for network in (networks[code] for code in each["networks"]):
            assert addresses.parse(network, each["hot"]) == keys.hot_address(network)
            wanted = zip((3, 4), keys.deposit_addresses(network, (3, 4)), strict=True)
            named = [(row["index"], addresses.parse(network, row["address"])) for row in each["deposits"]]
            assert named == list(wanted)


def test_networks_may_be_named_and_lines_are_for_people() -> None:
    result = run("addresses", "ethereum", "--words", "--count", "1", typed=f"{MNEMONIC}\n")

    key, family, hot, first = result.stdout.splitlines()[-4:]
    assert (key, family) == (f"ADDRESS_PUBLIC_KEY={PUBLIC_KEY}", "evm: ethereum")
    assert hot.startswith("  hot  0x")
    assert first == "  0  0x9858EfFD232B4033E47d90003D41EC34EcaEda94"


@pytest.mark.parametrize(
    ("words", "env", "problem"),
    [
        (("nowhere",), {}, "no network nowhere"),
        ((), {"ENVIRONMENT": "test"}, "one of development, production"),
    ],
)
def test_unknown_networks_and_environments_are_refused(
    words: tuple[str, ...], env: dict[str, str], problem: str
) -> None:
    assert problem in str(run("addresses", *words, "--words", typed=f"{MNEMONIC}\n", **env).exception)


def test_the_last_address_of_all_is_named() -> None:
    last = str(2**31 - 1)
    result = run("addresses", "ethereum", "--words", "--from", last, "--count", "5", typed=f"{MNEMONIC}\n")
    assert [line.split()[0] for line in result.stdout.splitlines()[-2:]] == ["hot", last]
