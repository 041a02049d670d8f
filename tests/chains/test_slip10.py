"""Derivation of ed25519 keys against the vectors of SLIP-0010, and their signatures."""

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from chains.family import DEPOSITS, HOT
from chains.slip10 import HARDENED, Ed25519Deriver, Ed25519Scheme, Node
from chains.spending import KeyRef

SEED = bytes(range(16))
SCHEME = Ed25519Scheme(coin=501, address=bytes.hex)
# Path, chain code, private and public key: the standard's first vector.
PUBLISHED = [
    (
        (),
        "90046a93de5380a72b5e45010748567d5ea02bbf6522f979e05c0d8d8ca9fffb",
        "2b4be7f19ee27bbf30c667b642d5f4aa69fd169872f8fc3059c08ebae2eb19e7",
        "a4b2856bfec510abab89753fac1ac0e1112364e7d250545963f135f2a33188ed",
    ),
    (
        (0,),
        "8b59aa11380b624e81507a27fedda59fea6d0b779a778918a2fd3590e16e9c69",
        "68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3",
        "8c8a13df77a28f3445213a0f432fde644acaa215fc72dcdf300d5efaa85d350c",
    ),
    (
        (0, 1, 2, 2, 1_000_000_000),
        "68789923a0cac2cd5a29172a475fe9e0fb14cd6adb5ad98a3fa70333e7afa230",
        "8f94d394a8e8fd6b1bc2f3f49f5c47e385281d5c17e65324b0f62483e37e8793",
        "3c24da049451555d51a7014a37337aa4e12d41e485abccfa46b47dfb2af54b7a",
    ),
]


@pytest.mark.parametrize(("path", "chain_code", "secret", "public"), PUBLISHED)
def test_derivation_equals_the_published_vectors(
    path: tuple[int, ...], chain_code: str, secret: str, public: str
) -> None:
    node = Node.root(SEED).child(*path)
    assert (node.chain_code.hex(), node.secret.hex(), node.public().hex()) == (chain_code, secret, public)


@pytest.mark.parametrize("index", [-1, HARDENED, HARDENED + 5])
def test_an_index_that_no_hardened_step_has_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="hardened"):
        Node.root(SEED).child(index)


def test_deposits_and_the_hot_wallet_have_accounts_of_their_own() -> None:
    deriver = Ed25519Deriver(SEED, SCHEME)
    assert deriver.address(DEPOSITS, 7) == Node.root(SEED).child(44, 501, 0, 7).public().hex()
    assert deriver.address(HOT, 0) == Node.root(SEED).child(44, 501, 1, 0).public().hex()


@pytest.mark.parametrize("ordinal", [None, 0, 12_345])
def test_a_keyring_signs_the_message_itself_with_the_key_of_the_address(ordinal: int | None) -> None:
    deriver = Ed25519Deriver(SEED, SCHEME)
    address = deriver.address(HOT, 0) if ordinal is None else deriver.address(DEPOSITS, ordinal)
    key, message = KeyRef(address=address, ordinal=ordinal), b"a message of any length"
    keyring = deriver.keyring()
    assert keyring.public(key).hex() == address
    signature = keyring.sign(key, message)
    assert signature == deriver.keyring().sign(key, message)
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(address)).verify(signature, message)
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(address)).verify(signature, message + b"!")


def test_a_keyring_refuses_the_address_of_another_key() -> None:
    deriver = Ed25519Deriver(SEED, SCHEME)
    another = KeyRef(address=deriver.address(DEPOSITS, 4), ordinal=3)
    with pytest.raises(ValueError, match="no such key"):
        deriver.keyring().sign(another, b"")
    with pytest.raises(ValueError, match="no such key"):
        deriver.keyring().public(another)


def test_no_repr_shows_a_key() -> None:
    deriver = Ed25519Deriver(SEED, SCHEME)
    for shown in (deriver, deriver.keyring(), Node.root(SEED)):
        assert repr(shown).endswith("(…)")
        assert f"{shown!s}" == repr(shown)
