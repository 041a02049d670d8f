"""Derivation of TON addresses against two other programs, and their signatures."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from embit import bip39

from chains.family import DEPOSITS, HOT
from chains.slip10 import Node
from chains.spending import KeyRef
from chains.ton.keys import COIN, TonDeriver
from chains.ton.wallet import CODE, wallet_id, wallet_state
from core.addresses import ton
from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import TonParameters
from tests.chains.test_keys import ABANDON

SEED = bip39.mnemonic_to_seed(ABANDON)
# Equal in @ton/ton 16.3.0 (with @ton/crypto 3.3.0) and in tonutils 2.5.1.
MAIN = [
    (DEPOSITS, 0, "0:7b2a84fc60b61e66f733229d4f54e1a1f81fccb6508e02efafc78c111bcd2ab0"),
    (DEPOSITS, 1, "0:72fb5b24d065976940f49090dadf8255b679c61b0965175990a4b95eac7fc439"),
    (DEPOSITS, 12_345, "0:7b3e1efacb57b6f2f17f3dd85a44ed710833c190217586624bac524279b3cdfa"),
    (HOT, 0, "0:453dd682a019c138277ed9188c6ed9f7ed1691f340f7965e8e360453a92897d3"),
]
TEST = [
    (DEPOSITS, 0, "0:af502b3f3964b77bd97f744bf227abf1eec951fba8f16fb05cc1883b19ec005b"),
    (DEPOSITS, 1, "0:380eb56e8f95abd1e6e1ddf8375bfc6a267e308035126ef8bf7db0ccb12f3ce4"),
    (DEPOSITS, 12_345, "0:e2dc24acb20c462da8447a48190753237b3fcabb0aff461858e4a195bed1adf3"),
    (HOT, 0, "0:cff458959835b63f385386cc3e648329722b646b0a2189237b31d42130a85698"),
]


@pytest.mark.parametrize(("is_test", "addresses"), [(False, MAIN), (True, TEST)])
def test_addresses_are_those_of_two_other_programs(addresses: list[tuple[int, int, str]], *, is_test: bool) -> None:
    deriver = TonDeriver(SEED, is_test=is_test)
    assert [deriver.address(account, index) for account, index, _ in addresses] == [row[2] for row in addresses]


def test_a_wallet_app_shows_the_same_address() -> None:
    # m/44'/607'/0', as wallet apps derive it; equal in tonutils, @ton/ton and bip-utils.
    network = load_catalogue("production").networks["ton"]
    parameters = network.family_parameters
    assert isinstance(parameters, TonParameters)
    address = wallet_state(Node.root(SEED).child(44, COIN, 0).public(), is_test=False).address
    assert ton.display(address, parameters) == "UQBHyu-oZVDHRYQ1-rKlGqpHy5yAqanPBirEQNMNOmfHLtaT"


def test_the_code_is_the_published_one() -> None:
    assert CODE.hash.hex() == "20834b7b72b112147e1b2fb457b84e74d1a30f04f737d4f62a668e9552d2b72f"
    assert (wallet_id(is_test=False), wallet_id(is_test=True)) == (0x7FFFFF11, 0x7FFFFFFD)


def test_addresses_have_the_stored_form() -> None:
    deriver = TonDeriver(SEED, is_test=False)
    addresses = [deriver.address(HOT, 0), *(deriver.address(DEPOSITS, index) for index in range(50))]
    assert [ton.stored(address) for address in addresses] == addresses
    assert len(set(addresses)) == len(addresses)


def test_a_keyring_signs_for_a_wallet_with_its_own_key() -> None:
    deriver = TonDeriver(SEED, is_test=False)
    key = KeyRef(address=MAIN[1][2], ordinal=1)
    keyring = deriver.keyring()
    public = keyring.public(key)
    assert wallet_state(public, is_test=False).address == key.address
    Ed25519PublicKey.from_public_bytes(public).verify(keyring.sign(key, bytes(32)), bytes(32))
    with pytest.raises(ValueError, match="no such key"):
        keyring.sign(KeyRef(address=TEST[1][2], ordinal=1), bytes(32))
