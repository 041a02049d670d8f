"""Derivation against published vectors, and the wallet's way from settings to keys."""

import base64
import sys
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from chains.keys import Keys, load_keys, new_mnemonic
from chains.keystore import KeystoreError, seal
from chains.spending import KeyRef
from core.addresses.evm import checksum_evm
from core.catalogue.catalogue import load_catalogue
from core.settings.settings import Settings, load_settings

ABANDON = "abandon " * 11 + "about"
ANVIL = "test test test test test test test test test test test junk"
ETHEREUM = load_catalogue("development").networks["ethereum"]
PASSPHRASE = "correct horse battery staple"


def signer_settings(**wallet: str) -> Settings:
    base = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1/sluice",
        "REDIS_URL": "redis://127.0.0.1",
    }
    return load_settings(base | wallet, role="signer")


def test_the_first_deposit_address_is_the_published_one() -> None:
    assert [checksum_evm(a) for a in Keys(ABANDON).deposit_addresses(ETHEREUM, [0])] == [
        "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    ]


def test_later_deposit_addresses_are_the_published_ones() -> None:
    # The accounts that anvil and hardhat print.
    assert [checksum_evm(a) for a in Keys(ANVIL).deposit_addresses(ETHEREUM, range(3))] == [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    ]


def test_derivation_agrees_with_another_library() -> None:
    from eth_account import Account  # noqa: PLC0415 - slow to import

    Account.enable_unaudited_hdwallet_features()
    ours = Keys(ABANDON)
    deposit = Account.from_mnemonic(ABANDON, account_path="m/44'/60'/0'/0/12345").address
    hot = Account.from_mnemonic(ABANDON, account_path="m/44'/60'/1'/0/0").address

    assert checksum_evm(ours.deposit_addresses(ETHEREUM, [12345])[0]) == deposit
    assert checksum_evm(ours.hot_address(ETHEREUM)) == hot


@pytest.mark.parametrize("ordinal", [0, 1, 12345])
def test_a_deposit_key_is_that_of_its_address(ordinal: int) -> None:
    keys = Keys(ANVIL)
    [address] = keys.deposit_addresses(ETHEREUM, [ordinal])

    assert signer_of(keys, KeyRef(address=address, ordinal=ordinal)) == address


def test_the_hot_key_is_that_of_the_hot_wallet() -> None:
    from eth_account import Account  # noqa: PLC0415 - slow to import

    keys = Keys(ABANDON)
    hot = keys.hot_address(ETHEREUM)

    assert signer_of(keys, KeyRef(address=hot, ordinal=None)) == hot
    # The first account that anvil prints.
    known = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    assert (Account.from_key(known).address.lower(),) == Keys(ANVIL).deposit_addresses(ETHEREUM, [0])


def signer_of(keys: Keys, key: KeyRef) -> str:
    """Return whose address another library finds in a signature of a key."""
    from eth_account import Account  # noqa: PLC0415 - slow to import

    signed = keys.deriver(ETHEREUM).keyring().sign(key, b"a message whose hash is the hash")
    return str(Account._recover_hash(b"a message whose hash is the hash", signature=signed)).lower()


def test_the_hot_wallet_is_no_deposit_address() -> None:
    keys = Keys(ABANDON)

    assert keys.hot_address(ETHEREUM) not in keys.deposit_addresses(ETHEREUM, range(100))


def test_addresses_are_in_the_stored_form() -> None:
    [address] = Keys(ABANDON).deposit_addresses(ETHEREUM, [0])

    assert address == address.lower()


def test_the_pool_key_signs_what_its_public_key_verifies() -> None:
    keys = Keys(ABANDON)
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(keys.pool_public_key))

    public.verify(keys.sign_pool(b"chunk"), b"chunk")
    with pytest.raises(InvalidSignature):
        public.verify(keys.sign_pool(b"chunk"), b"another")


def test_the_pool_key_belongs_to_the_mnemonic() -> None:
    assert Keys(ABANDON).pool_public_key == Keys(ABANDON).pool_public_key
    assert Keys(ABANDON).pool_public_key != Keys(ANVIL).pool_public_key


def test_the_pool_key_never_changes_between_versions() -> None:
    # Otherwise an upgrade would make every address in the pool unusable.
    assert Keys(ABANDON).pool_public_key == "lcNz023JQRDDcnteqUMCAQdA5EK1rVcKtp4nBa8+sZA="


def test_spaces_between_the_words_do_not_matter() -> None:
    assert Keys(f"  {ABANDON.replace(' ', '  ')}\n").pool_public_key == Keys(ABANDON).pool_public_key


@pytest.mark.parametrize("words", ["", "abandon", "abandon " * 12, ABANDON + " about", "Abandon " + ABANDON[8:]])
def test_a_mnemonic_with_wrong_words_or_checksum_is_refused(words: str) -> None:
    with pytest.raises(KeystoreError, match="not a BIP-39 mnemonic"):
        Keys(words)


def test_new_mnemonics_are_valid_and_different() -> None:
    first, second = new_mnemonic(), new_mnemonic()

    assert len(first.split()) == 24
    assert first != second
    assert Keys(first).pool_public_key


def test_printing_the_keys_shows_nothing() -> None:
    keys = Keys(ABANDON)
    keys.hot_address(ETHEREUM)

    assert repr(keys) == str(keys) == "Keys(…)"
    assert not hasattr(keys, "__dict__")


def test_a_mnemonic_in_the_settings_is_the_wallet() -> None:
    assert load_keys(signer_settings(WALLET_MNEMONIC=ABANDON)).pool_public_key == Keys(ABANDON).pool_public_key


def test_a_keystore_file_is_the_wallet(tmp_path: Path) -> None:
    file, secret = tmp_path / "keystore", tmp_path / "passphrase"
    file.write_bytes(seal(ABANDON, PASSPHRASE))
    secret.write_text(PASSPHRASE + "\n")
    settings = signer_settings(WALLET_KEYSTORE=str(file), WALLET_PASSPHRASE_FILE=str(secret))

    assert load_keys(settings).pool_public_key == Keys(ABANDON).pool_public_key


def test_keystore_data_is_the_wallet() -> None:
    data = base64.b64encode(seal(ABANDON, PASSPHRASE)).decode()
    settings = signer_settings(WALLET_KEYSTORE_DATA=data, WALLET_PASSPHRASE=PASSPHRASE)

    assert load_keys(settings).pool_public_key == Keys(ABANDON).pool_public_key


def test_a_wrong_passphrase_opens_nothing() -> None:
    data = base64.b64encode(seal(ABANDON, PASSPHRASE)).decode()

    with pytest.raises(KeystoreError, match="passphrase is wrong"):
        load_keys(signer_settings(WALLET_KEYSTORE_DATA=data, WALLET_PASSPHRASE="another passphrase"))


@pytest.mark.parametrize(
    ("wallet", "problem"),
    [
        ({"WALLET_KEYSTORE": "/nowhere/keystore", "WALLET_PASSPHRASE": PASSPHRASE}, "WALLET_KEYSTORE cannot be read"),
        ({"WALLET_KEYSTORE_DATA": "%%%", "WALLET_PASSPHRASE": PASSPHRASE}, "not base64"),
        ({"WALLET_KEYSTORE_DATA": "e30=", "WALLET_PASSPHRASE": PASSPHRASE}, "not a keystore"),
        ({"WALLET_KEYSTORE_DATA": "e30=", "WALLET_PASSPHRASE_FILE": "/nowhere/passphrase"}, "WALLET_PASSPHRASE_FILE"),
    ],
)
def test_a_wallet_that_cannot_be_read_says_which_part(wallet: dict[str, str], problem: str) -> None:
    with pytest.raises(KeystoreError, match=problem):
        load_keys(signer_settings(**wallet))


def test_importing_the_keys_loads_no_chain_library() -> None:
    import subprocess  # noqa: PLC0415 - for a process of its own

    code = (
        "import sys, chains.keys, chains.evm.reader, chains.evm.spends.spender, chains.evm.spends.tx; "
        "import chains.registry, chains.evm.family, chains.evm.keys; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    assert not {"embit", "eth_account", "web3", "coincurve", "tronpy"} & set(loaded)
