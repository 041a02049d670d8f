"""Scripts of addresses, as nodes and the published vectors have them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.bitcoin import scripts
from core.addresses.addresses import parse
from tests.chains.conftest import CATALOGUE

KNOWN = [
    ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "0014751e76e8199196d454941c45d1b3a323f1433bd6"),
    (
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
    ),
    (
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ),
    ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac"),
    ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "a914b472a266d0bd89c13706a4132ccfb16f7c3b9fcb87"),
]
REGTEST = [
    ("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "0014751e76e8199196d454941c45d1b3a323f1433bd6"),
    ("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "76a914243f1394f44554f4ce3fd68649c19adc483ce92488ac"),
    ("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", "a9144e9f39ca4688ff102128ea4ccda34105324305b087"),
]


@pytest.mark.parametrize(("address", "script", "chain"), [
    *((address, script, "main") for address, script in KNOWN),
    *((address, script, "regtest") for address, script in REGTEST),
])  # fmt: skip
def test_an_address_has_one_script_and_a_script_one_address(address: str, script: str, chain: str) -> None:
    assert scripts.script_of(address, chain).hex() == script
    assert scripts.address_of(bytes.fromhex(script), chain) == address


@pytest.mark.parametrize(
    "address",
    [
        REGTEST[0][0],
        REGTEST[1][0],
        REGTEST[2][0],
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        "BC1SW50QGDZ25J",
        "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
        KNOWN[0][0][:-1],
        "",
    ],
)
def test_an_address_of_another_chain_has_no_script(address: str) -> None:
    with pytest.raises(ValueError, match="no address of this chain"):
        scripts.script_of(address, "main")


@pytest.mark.parametrize(
    "script",
    [
        "",
        "00",
        "6a0548656c6c6f",
        KNOWN[0][1] + "00",
        KNOWN[0][1][:-2],
        "5114751e76e8199196d454941c45d1b3a323f1433bd6",
        "5220" + KNOWN[2][1][4:],
        KNOWN[3][1][:-2] + "ad",
        KNOWN[4][1][:-2] + "88",
    ],
)
def test_a_script_of_another_kind_pays_no_address(script: str) -> None:
    assert scripts.address_of(bytes.fromhex(script), "main") is None


@settings(deadline=None)
@given(st.binary(min_size=20, max_size=20).filter(any))
def test_the_quick_way_writes_the_same_addresses(program: bytes) -> None:
    script = scripts.KEY_HASH + program

    address = scripts.key_hash_address(script, "regtest")
    assert address == scripts.address_of(script, "regtest")
    assert scripts.key_hash_addresses([script, script], "regtest") == [address, address]
    assert scripts.script_of(address, "regtest") == script
    assert parse(CATALOGUE.networks["bitcoin"], address) == address


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_script_is_too_strange_to_be_looked_at(script: bytes) -> None:
    address = scripts.address_of(script, "main")

    assert address is None or scripts.script_of(address, "main") == script
