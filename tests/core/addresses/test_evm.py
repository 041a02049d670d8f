"""Reads and writes addresses of EVM networks."""

import pytest

from core.addresses.addresses import AddressError, ForeignAddressError, display, parse, stored_form
from core.addresses.evm import checksum_evm, keccak256
from core.catalogue.catalogue import load_catalogue

ETHEREUM = load_catalogue("production").networks["ethereum"]

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
def test_checksums_match_the_vectors_of_eip_55(address: str) -> None:
    assert checksum_evm(address.lower()) == address
    assert checksum_evm("0x" + address[2:].upper()) == address


@pytest.mark.parametrize("address", EIP_55)
def test_an_evm_address_is_shown_with_its_checksum(address: str) -> None:
    assert display(ETHEREUM, address.lower()) == address


def test_the_hash_is_keccak_and_not_nist_sha3() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_the_stored_form_is_found_in_any_case_without_a_network() -> None:
    address = EIP_55[4]

    for text in (address, address.lower(), "0X" + address[2:].upper(), address.swapcase()):
        assert stored_form(text) == address.lower()
    assert stored_form(address[:-1]) is None


# Parsing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", EIP_55)
def test_an_address_is_read_in_any_case_if_its_checksum_is_right(address: str) -> None:
    spellings = (address, address.lower(), "0x" + address[2:].upper())
    assert {parse(ETHEREUM, text) for text in spellings} == {address.lower()}


@pytest.mark.parametrize("address", EIP_55[4:])
def test_an_address_with_a_wrong_checksum_is_refused(address: str) -> None:
    for place, char in enumerate(address):
        if char.isalpha() and place > 1:
            with pytest.raises(AddressError) as refusal:
                parse(ETHEREUM, address[:place] + char.swapcase() + address[place + 1 :])
            assert type(refusal.value) is AddressError


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        EIP_55[0][:-1],
        EIP_55[0] + "0",
        EIP_55[0] + "\n",
        " " + EIP_55[0],
        EIP_55[0][2:],
        "0X" + EIP_55[0][2:],
        EIP_55[0].replace("0x5", "0x\u0665"),
        "0x" + "g" * 40,
        "vitalik.eth",
    ],
)
def test_malformed_addresses_are_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse(ETHEREUM, text)


@pytest.mark.parametrize("number", [0, 1, 9, 0x100, 0xFFFF])
def test_the_zero_address_and_precompiled_contracts_are_refused(number: int) -> None:
    with pytest.raises(AddressError):
        parse(ETHEREUM, f"0x{number:040x}")
    assert parse(ETHEREUM, f"0x{1 << 16:040x}")


@pytest.mark.parametrize(
    "text",
    ["0x000000000000000000000000000000000000dEaD", "0x" + "f" * 40, "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"],
)
def test_burn_addresses_are_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse(ETHEREUM, text)


@pytest.mark.parametrize(
    "text",
    [
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
        "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
        "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",
        "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe",
    ],
)
def test_an_address_of_another_family_is_named_as_foreign(text: str) -> None:
    with pytest.raises(ForeignAddressError):
        parse(ETHEREUM, text)
