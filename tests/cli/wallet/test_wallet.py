"""`sluice wallet`: makes a keystore, and prints the descriptors that watch its addresses."""

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from chains import registry
from chains.keys import Keys
from chains.keystore import unseal
from cli.wallet.commands import app

MNEMONIC = "abandon " * 11 + "about"
PASSPHRASE = "correct horse battery staple"


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    return tmp_path / "wallet.json"


def init(keystore: Path, *options: str, typed: str = "", passphrase: str | None = PASSPHRASE) -> Result:
    return CliRunner().invoke(
        app, ["init", "--keystore", str(keystore), *options], input=typed, env={"WALLET_PASSPHRASE": passphrase}
    )


def test_a_new_wallet_prints_the_settings_of_the_other_processes(keystore: Path) -> None:
    result = init(keystore)

    assert result.exit_code == 0
    keys = Keys(unseal(keystore.read_bytes(), PASSPHRASE))
    assert result.stdout == f"WALLET_KEYSTORE={keystore}\nADDRESS_PUBLIC_KEY={keys.pool_public_key}\n"


def test_the_new_words_are_shown_once_and_not_on_stdout(keystore: Path) -> None:
    result = init(keystore)
    mnemonic = unseal(keystore.read_bytes(), PASSPHRASE)

    assert mnemonic in result.stderr
    assert mnemonic not in result.stdout


def test_only_the_owner_may_read_the_keystore(keystore: Path) -> None:
    init(keystore)

    assert stat.S_IMODE(keystore.stat().st_mode) == 0o600


def test_a_keystore_that_exists_is_never_overwritten(keystore: Path) -> None:
    keystore.write_text("somebody's money")
    result = init(keystore)

    assert result.exit_code != 0
    assert "File exists" in result.stderr
    assert keystore.read_text() == "somebody's money"


def test_words_can_be_brought_along(keystore: Path) -> None:
    result = init(keystore, "--import", typed=f"{MNEMONIC}\n")

    assert result.exit_code == 0
    assert Keys(MNEMONIC).pool_public_key in result.stdout
    assert "abandon" not in result.output


def test_wrong_words_are_refused_without_repeating_them(keystore: Path) -> None:
    result = init(keystore, "--import", typed="abandon abandon\n")

    assert result.exit_code != 0
    assert "not a BIP-39 mnemonic" in result.stderr
    assert "abandon" not in result.output
    assert not keystore.exists()


def test_the_passphrase_is_asked_for_twice(keystore: Path) -> None:
    result = init(keystore, typed=f"{PASSPHRASE}\n{PASSPHRASE}\n", passphrase=None)

    assert result.exit_code == 0
    assert unseal(keystore.read_bytes(), PASSPHRASE)
    assert PASSPHRASE not in result.output


def test_a_short_passphrase_makes_no_keystore(keystore: Path) -> None:
    result = init(keystore, passphrase="short")

    assert result.exit_code != 0
    assert not keystore.exists()


def test_json_has_no_words_unless_asked_for(keystore: Path) -> None:
    result = init(keystore, "--json")

    assert set(json.loads(result.stdout)) == {"keystore", "address_public_key"}
    assert unseal(keystore.read_bytes(), PASSPHRASE) not in result.output


def test_json_has_the_words_when_asked_for(keystore: Path) -> None:
    result = init(keystore, "--json", "--show-mnemonic")

    assert json.loads(result.stdout)["mnemonic"] == unseal(keystore.read_bytes(), PASSPHRASE)


# Descriptors ----------------------------------------------------------------------------------------------------


def descriptor(*words: str) -> Result:
    env = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1/sluice",
        "REDIS_URL": "redis://127.0.0.1",
        "WALLET_MNEMONIC": MNEMONIC,
    }
    return CliRunner().invoke(app, ["descriptor", *words], env=env)


def test_descriptors_of_bitcoin_cover_both_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MODULES", {**registry._MODULES, "bitcoin": "chains.bitcoin.family"})

    result = descriptor("bitcoin")
    deposits, hot = result.stdout.splitlines()
    assert deposits.startswith("wpkh([73c5da0a/84h/1h/0h]tpub")
    assert hot.startswith("wpkh([73c5da0a/84h/1h/1h]tpub")
    assert json.loads(descriptor("bitcoin", "--json").stdout) == {"deposits": deposits, "hot": hot}


@pytest.mark.parametrize(
    ("network", "problem"),
    [("ethereum", "cannot be watched"), ("nowhere", "no network nowhere"), ("ton", "cannot be watched")],
)
def test_a_network_that_cannot_be_watched_is_refused(network: str, problem: str) -> None:
    result = descriptor(network)

    assert result.exit_code != 0
    assert problem in " ".join(result.stderr.split())
    assert "abandon" not in result.stderr + result.stdout
