"""The encrypted mnemonic on disk."""

import json

import pytest

from chains.keystore import KeystoreError, seal, unseal

MNEMONIC = "abandon " * 11 + "about"
PASSPHRASE = "correct horse battery staple"


def test_a_sealed_mnemonic_opens_with_its_passphrase() -> None:
    assert unseal(seal(MNEMONIC, PASSPHRASE), PASSPHRASE) == MNEMONIC


def test_two_seals_have_nothing_in_common() -> None:
    first, second = json.loads(seal(MNEMONIC, PASSPHRASE)), json.loads(seal(MNEMONIC, PASSPHRASE))

    assert all(first[part] != second[part] for part in ("salt", "nonce", "box"))


def test_the_words_are_not_readable() -> None:
    assert b"abandon" not in seal(MNEMONIC, PASSPHRASE)


def test_another_passphrase_does_not_open_it() -> None:
    with pytest.raises(KeystoreError, match="wrong or the keystore is damaged"):
        unseal(seal(MNEMONIC, PASSPHRASE), PASSPHRASE + " ")


@pytest.mark.parametrize("part", ["salt", "nonce", "box"])
def test_a_flipped_bit_is_noticed(part: str) -> None:
    file = json.loads(seal(MNEMONIC, PASSPHRASE))
    file[part] = ("B" if file[part][0] == "A" else "A") + file[part][1:]

    with pytest.raises(KeystoreError):
        unseal(json.dumps(file).encode(), PASSPHRASE)


def test_the_same_letters_from_another_keyboard_open_it() -> None:
    assert unseal(seal(MNEMONIC, "pass phrase caf\u00e9"), "pass phrase cafe\u0301") == MNEMONIC


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(KeystoreError, match="at least 12 characters"):
        seal(MNEMONIC, "short")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"version":1,"salt":"%","nonce":"","box":""}',
        b'{"version":1,"salt":"","nonce":"","box":"","n":1}',
        b'{"version":"1","salt":"","nonce":"","box":""}',
    ],
)
def test_rubbish_is_not_a_keystore(data: bytes) -> None:
    with pytest.raises(KeystoreError, match="not a keystore"):
        unseal(data, PASSPHRASE)


def test_another_version_is_not_guessed_at() -> None:
    file = json.loads(seal(MNEMONIC, PASSPHRASE)) | {"version": 2}

    with pytest.raises(KeystoreError, match="version 2"):
        unseal(json.dumps(file).encode(), PASSPHRASE)


def test_no_error_shows_the_secret() -> None:
    with pytest.raises(KeystoreError) as caught:
        unseal(seal(MNEMONIC, PASSPHRASE), "the wrong passphrase")

    assert "abandon" not in str(caught.value)
    assert "passphrase is wrong" in str(caught.value)
    assert caught.value.__suppress_context__
