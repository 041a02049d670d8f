"""Derivation by the published vectors of BIP-84; signatures that another library checks, for no address but its own."""

import pytest
from embit import bip32, bip39, ec

from chains.bitcoin.keys import BitcoinDeriver
from chains.family import DEPOSITS, HOT
from chains.spending import KeyRef
from tests.chains.test_keys import ABANDON

SEED = bip39.mnemonic_to_seed(ABANDON)
MAIN, REGTEST = BitcoinDeriver(SEED, "main"), BitcoinDeriver(SEED, "regtest")
HOT_KEY = KeyRef(address=MAIN.address(HOT, 0), ordinal=None)
MESSAGE = bytes(range(32))
CURVE = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def deposit(ordinal: int) -> KeyRef:
    return KeyRef(address=MAIN.address(DEPOSITS, ordinal), ordinal=ordinal)


def test_the_first_addresses_are_the_published_ones() -> None:
    assert [MAIN.address(DEPOSITS, index) for index in (0, 1)] == [
        "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
        "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g",
    ]


@pytest.mark.parametrize(
    ("deriver", "account", "index", "path"),
    [
        (MAIN, DEPOSITS, 12345, "m/84h/0h/0h/0/12345"),
        (MAIN, HOT, 0, "m/84h/0h/1h/0/0"),
        (REGTEST, DEPOSITS, 7, "m/84h/1h/0h/0/7"),
        (REGTEST, HOT, 0, "m/84h/1h/1h/0/0"),
    ],
)
def test_every_address_is_the_one_that_another_library_has_at_its_path(
    deriver: BitcoinDeriver, account: int, index: int, path: str
) -> None:
    from embit import script  # noqa: PLC0415 - for this test alone
    from embit.networks import NETWORKS  # noqa: PLC0415

    public = bip32.HDKey.from_seed(SEED).derive(path).to_public()
    network = NETWORKS["main" if deriver is MAIN else "regtest"]

    assert deriver.address(account, index) == script.p2wpkh(public).address(network)


def test_the_hot_wallet_is_no_deposit_address() -> None:
    assert HOT_KEY.address not in {MAIN.address(DEPOSITS, index) for index in range(50)}


@pytest.mark.parametrize("key", [HOT_KEY, deposit(0), deposit(12345)])
def test_a_signature_is_short_and_fits_the_public_key(key: KeyRef) -> None:
    ring = MAIN.keyring()
    for number in range(20):
        message = bytes([number]) * 32
        signature = ring.sign(key, message)

        assert ec.PublicKey.parse(ring.public(key)).verify(ec.Signature.parse(signature), message)
        assert len(signature) <= 70
        # The smaller s: 0x30, size, 0x02, size of r, r, 0x02, size of s, s.
        assert int.from_bytes(signature[6 + signature[3] :], "big") <= CURVE // 2


def test_a_signature_is_the_same_each_time() -> None:
    assert MAIN.keyring().sign(HOT_KEY, MESSAGE) == BitcoinDeriver(SEED, "main").keyring().sign(HOT_KEY, MESSAGE)


@pytest.mark.parametrize(
    "key",
    [
        KeyRef(address=HOT_KEY.address, ordinal=0),
        KeyRef(address=deposit(0).address, ordinal=None),
        KeyRef(address=deposit(0).address, ordinal=1),
        KeyRef(address=deposit(0).address.upper(), ordinal=0),
        KeyRef(address=REGTEST.address(DEPOSITS, 0), ordinal=0),
    ],
)
def test_an_address_that_is_not_the_keys_gets_no_signature(key: KeyRef) -> None:
    ring = MAIN.keyring()

    with pytest.raises(ValueError, match="no such key"):
        ring.sign(key, MESSAGE)
    with pytest.raises(ValueError, match="no such key"):
        ring.public(key)


@pytest.mark.parametrize("message", [b"", MESSAGE[1:], MESSAGE + b"x"])
def test_only_a_hash_is_signed(message: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        MAIN.keyring().sign(HOT_KEY, message)


def test_printing_them_shows_nothing() -> None:
    ring = MAIN.keyring()

    assert repr(MAIN) == str(MAIN) == "BitcoinDeriver(…)"
    assert repr(ring) == str(ring) == "Keyring(…)"
    assert not hasattr(MAIN, "__dict__")
    assert not hasattr(ring, "__dict__")
