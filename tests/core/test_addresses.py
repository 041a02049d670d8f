"""The written forms of addresses."""

import pytest

from core.addresses import checksum_evm, display, keccak256

# The vectors of EIP-55 itself.
EIP_55 = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@pytest.mark.parametrize("address", EIP_55)
def test_the_published_checksums_are_ours(address: str) -> None:
    assert checksum_evm(address.lower()) == address
    assert checksum_evm("0x" + address[2:].upper()) == address


@pytest.mark.parametrize("address", EIP_55)
def test_an_evm_address_is_shown_with_its_checksum(address: str) -> None:
    assert display("evm", address.lower()) == address


def test_the_hash_is_ethereums_not_nists() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_a_family_that_is_not_served_has_no_form() -> None:
    with pytest.raises(KeyError):
        display("unknown", EIP_55[0])
