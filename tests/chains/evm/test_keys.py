"""The keyring signs as another library does, and for no address but its own."""

import pytest
from embit import ec

from chains import registry
from chains.evm.keys import EvmDeriver
from chains.evm.spends.library import account
from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.spending import KeyRef
from tests.chains.conftest import CATALOGUE
from tests.chains.test_keys import ANVIL

ETHEREUM = CATALOGUE.networks["ethereum"]
DERIVER = Keys(ANVIL).deriver(ETHEREUM)
HOT_KEY = KeyRef(address=DERIVER.address(HOT, 0), ordinal=None)
MESSAGE = bytes(range(32))
# Of the account that anvil prints first.
FIRST_SECRET = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


def deposit(ordinal: int) -> KeyRef:
    return KeyRef(address=DERIVER.address(DEPOSITS, ordinal), ordinal=ordinal)


@pytest.mark.parametrize("key", [HOT_KEY, deposit(0), deposit(12345)])
def test_the_recovered_signer_is_the_address(key: KeyRef) -> None:
    signed = DERIVER.keyring().sign(key, MESSAGE)

    recovered = account()._recover_hash(MESSAGE, signature=signed[:64] + bytes([signed[64] + 27]))
    assert recovered.lower() == key.address
    assert signed[64] in {0, 1}


def test_a_signature_is_the_one_that_the_published_key_gives_each_time() -> None:
    known = account().unsafe_sign_hash(MESSAGE, FIRST_SECRET)
    ring = DERIVER.keyring()

    assert ring.sign(deposit(0), MESSAGE)[:64] == known.r.to_bytes(32, "big") + known.s.to_bytes(32, "big")
    assert (
        ring.sign(deposit(0), MESSAGE) == ring.sign(deposit(0), MESSAGE) == DERIVER.keyring().sign(deposit(0), MESSAGE)
    )


def test_the_public_key_is_the_published_ones() -> None:
    known = ec.PrivateKey(bytes.fromhex(FIRST_SECRET[2:])).get_public_key()

    assert DERIVER.keyring().public(deposit(0)) == known.sec()


@pytest.mark.parametrize(
    "key",
    [
        KeyRef(address=HOT_KEY.address, ordinal=0),
        KeyRef(address=deposit(0).address, ordinal=None),
        KeyRef(address=deposit(0).address, ordinal=1),
        KeyRef(address=deposit(0).address.upper(), ordinal=0),
    ],
)
def test_an_address_that_is_not_the_keys_gets_no_signature(key: KeyRef) -> None:
    ring = DERIVER.keyring()

    with pytest.raises(ValueError, match="no such key"):
        ring.sign(key, MESSAGE)
    with pytest.raises(ValueError, match="no such key"):
        ring.public(key)


@pytest.mark.parametrize("message", [b"", MESSAGE[1:], MESSAGE + b"x"])
def test_only_a_hash_is_signed(message: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        DERIVER.keyring().sign(HOT_KEY, message)


def test_networks_of_the_family_have_the_same_addresses() -> None:
    keys = Keys(ANVIL)

    assert keys.hot_address(CATALOGUE.networks["bsc"]) == keys.hot_address(ETHEREUM) == HOT_KEY.address
    assert keys.deriver(CATALOGUE.networks["bsc"]) is keys.deriver(ETHEREUM)


def test_a_family_that_is_not_served_has_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MODULES", {})
    with pytest.raises(LookupError, match="ton is not served"):
        Keys(ANVIL).deriver(CATALOGUE.networks["ton"])


def test_printing_them_shows_nothing() -> None:
    deriver = EvmDeriver(b"a seed of sixty-four bytes")
    ring = deriver.keyring()

    assert repr(deriver) == str(deriver) == "EvmDeriver(…)"
    assert repr(ring) == str(ring) == "Keyring(…)"
    assert not hasattr(deriver, "__dict__")
    assert not hasattr(ring, "__dict__")
