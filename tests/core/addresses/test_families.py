"""Reads and writes addresses of the other families, by the vectors that their networks publish."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from core.addresses import base58, bech32
from core.addresses.addresses import AddressError, ForeignAddressError, display, parse, smallest_units, stored_form
from core.addresses.solana import _NOBODY as PROGRAMS
from core.addresses.solana import is_on_curve
from core.catalogue.catalogue import Network, load_catalogue

MAIN, DEVELOPMENT = load_catalogue("production").networks, load_catalogue("development").networks
BITCOIN, TRON, SOLANA, TON = (MAIN[code] for code in ("bitcoin", "tron", "solana", "ton"))
REGTEST, TON_TEST = DEVELOPMENT["bitcoin"], DEVELOPMENT["ton"]

EVM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
TETHER_TRON, TETHER_TRON_HEX = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"
TETHER_SOLANA = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"
P2PKH, P2SH = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"
P2WPKH = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
P2WPKH_REGTEST = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
P2WSH = "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3"
P2TR = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
# The contract of Tether, in every spelling.
TON_RAW = "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
TON_BOUNCES, TON_STAYS = (
    "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",
    "UQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_p0p",
)
TON_TEST_BOUNCES, TON_TEST_STAYS = (
    "kQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_ntm",
    "0QCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_iaj",
)


def refusal(network: Network, text: str) -> AddressError:
    with pytest.raises(AddressError) as raised:
        parse(network, text)
    return raised.value


@pytest.mark.parametrize(
    ("network", "text", "stored", "shown"),
    [
        *((BITCOIN, text, text, text) for text in (P2PKH, P2SH, P2WPKH, P2WSH, P2TR)),
        (BITCOIN, P2WPKH.upper(), P2WPKH, P2WPKH),
        (REGTEST, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", *2 * ("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",)),
        (REGTEST, "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", *2 * ("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",)),
        (
            REGTEST,
            P2WPKH_REGTEST,
            P2WPKH_REGTEST,
            P2WPKH_REGTEST,
        ),
        (TRON, TETHER_TRON, TETHER_TRON, TETHER_TRON),
        (SOLANA, TETHER_SOLANA, TETHER_SOLANA, TETHER_SOLANA),
        *((TON, text, TON_RAW, TON_STAYS) for text in (TON_BOUNCES, TON_STAYS, TON_RAW, "0:" + TON_RAW[2:].upper())),
        (TON, TON_BOUNCES.replace("_", "/"), TON_RAW, TON_STAYS),
        *((TON_TEST, text, TON_RAW, TON_TEST_STAYS) for text in (TON_TEST_BOUNCES, TON_TEST_STAYS, TON_BOUNCES)),
    ],
)
def test_an_address_has_one_stored_form_and_one_shown_form(
    network: Network, text: str, stored: str, shown: str
) -> None:
    assert parse(network, text) == stored_form(text) == stored
    assert display(network, stored) == shown
    assert parse(network, shown) == stored


@pytest.mark.parametrize(
    ("network", "address", "units"),
    [
        (BITCOIN, P2PKH, 546),
        (BITCOIN, P2SH, 540),
        (BITCOIN, P2WPKH, 294),
        (BITCOIN, P2WSH, 330),
        (BITCOIN, P2TR, 330),
        (REGTEST, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", 546),
        (REGTEST, "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", 540),
        (REGTEST, P2WPKH_REGTEST, 294),
        (MAIN["ethereum"], EVM.lower(), 1),
        (TRON, TETHER_TRON, 1),
        (SOLANA, TETHER_SOLANA, 1),
        (TON, TON_RAW, 1),
    ],
)
def test_a_network_carries_no_less_than_its_nodes_pass_on(network: Network, address: str, units: int) -> None:
    assert smallest_units(network, address) == units


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (BITCOIN, "P2WPKH"),
        (BITCOIN, P2WPKH[:5] + P2WPKH[5:].upper()),
        (BITCOIN, P2PKH.lower()),
        (TRON, TETHER_TRON.lower()),
        (TRON, TETHER_TRON_HEX[2:]),
        (SOLANA, TETHER_SOLANA[:-2]),
        (SOLANA, TETHER_SOLANA + "1"),
        (SOLANA, TETHER_SOLANA.replace("E", "0")),
        (SOLANA, "1" * 65),
        (TON, TON_RAW[:-1]),
        (TON, "1" + TON_RAW[1:]),
        (TON, TON_BOUNCES.replace("_", "/").replace("C", "-", 1)),
        *((network, text) for network in (BITCOIN, TRON, SOLANA, TON) for text in ("", " ", "bitcoin", "x" * 500)),
        *((network, " " + text) for network, text in ((BITCOIN, P2TR), (TRON, TETHER_TRON), (SOLANA, TETHER_SOLANA))),
    ],
)
def test_malformed_addresses_are_not_taken_for_foreign_ones(network: Network, text: str) -> None:
    assert type(refusal(network, text)) is AddressError


@pytest.mark.parametrize(
    ("network", "text"),
    [(BITCOIN, P2PKH), (BITCOIN, P2WPKH), (BITCOIN, P2TR), (TRON, TETHER_TRON), (TON, TON_BOUNCES), (TON, TON_STAYS)],
)
def test_an_address_with_one_wrong_letter_is_refused(network: Network, text: str) -> None:
    for place in range(1, len(text)):
        for letter in "q2" if network is BITCOIN and text.startswith("bc1") else "aB":
            if text[place] != letter:
                assert type(refusal(network, text[:place] + letter + text[place + 1 :])) is AddressError, place


@pytest.mark.parametrize("text", [TETHER_TRON_HEX, TETHER_TRON_HEX.upper()])
def test_a_tron_address_in_hexadecimal_is_recognised_but_refused(text: str) -> None:
    assert stored_form(text) == TETHER_TRON
    assert "checksum" in str(refusal(TRON, text))
    assert type(refusal(TRON, text)) is AddressError


@pytest.mark.parametrize("network", [MAIN["ethereum"], BITCOIN, TRON, SOLANA, TON], ids=lambda network: network.family)
def test_an_address_of_another_family_is_recognised_by_checksum_and_length(network: Network) -> None:
    by_family = {
        "evm": [EVM, EVM.lower()],
        "bitcoin": [P2PKH, P2SH, P2WPKH, P2WPKH.upper(), P2WSH, P2TR],
        "tron": [TETHER_TRON, TETHER_TRON_HEX],
        "solana": [TETHER_SOLANA, "11111111111111111111111111111111"],
        "ton": [TON_RAW, TON_BOUNCES, TON_TEST_STAYS],
    }
    for text in [text for family, texts in by_family.items() if family != network.family for text in texts]:
        assert isinstance(refusal(network, text), ForeignAddressError), text


def test_a_mistyped_tron_or_bitcoin_address_is_not_taken_for_a_solana_one() -> None:
    for text in (P2PKH, TETHER_TRON):
        assert type(refusal(SOLANA, text[:-1] + ("2" if text[-1] != "2" else "3"))) is AddressError
        assert isinstance(refusal(SOLANA, text), ForeignAddressError)


@pytest.mark.parametrize(
    ("network", "text", "message"),
    [
        (BITCOIN, "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7", "another network of bitcoin"),
        (BITCOIN, P2WPKH_REGTEST, "another network of bitcoin"),
        (BITCOIN, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "another network of bitcoin"),
        (REGTEST, P2WPKH, "another network of bitcoin"),
        (REGTEST, "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7", "another network of bitcoin"),
        (REGTEST, P2PKH, "another network of bitcoin"),
        (TON, TON_TEST_BOUNCES, "a test network"),
        (TON, TON_TEST_STAYS, "a test network"),
    ],
)
def test_a_test_networks_address_is_refused_on_the_main_network_and_back(
    network: Network, text: str, message: str
) -> None:
    text_of_refusal = refusal(network, text)
    assert isinstance(text_of_refusal, ForeignAddressError)
    assert message in str(text_of_refusal)


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (BITCOIN, "1111111111111111111114oLvT2"),
        (TRON, "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"),
        (TRON, "TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy"),
        (TRON, base58.encode_checked(bytes.fromhex(f"41{0xFFFF:040x}"))),
        *((SOLANA, text) for text in sorted(PROGRAMS)),
        (TON, "0:" + "0" * 64),
        (TON, "EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAM9c"),
    ],
)
def test_addresses_without_a_key_are_refused(network: Network, text: str) -> None:
    assert str(refusal(network, text)) == "Nobody has the key of this address."
    assert stored_form(text) is not None


def test_a_taproot_program_that_is_no_public_key_is_refused() -> None:
    generator = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
    assert taproot(generator) == P2TR

    for program in (bytes.fromhex("751e76e8199196d454941c45d1b3a323f1433bd6" + "00" * 12), b"\xff" * 32, bytes(32)):
        assert str(refusal(BITCOIN, taproot(program))) == "Nobody has the key of this address."


def taproot(program: bytes) -> str:
    """Return the address of a program."""
    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    number = int.from_bytes(program, "big") << 4
    values = [1, *(number >> 5 * place & 31 for place in reversed(range(52)))]
    mod = bech32._polymod([*bech32._expanded("bc"), *values, *[0] * 6]) ^ bech32._BECH32M
    values += [mod >> 5 * place & 31 for place in reversed(range(6))]
    return "bc1" + "".join(letters[value] for value in values)


# Bech32: the vectors of BIP-173 and BIP-350 -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "version", "program"),
    [
        ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", 0, "751e76e8199196d454941c45d1b3a323f1433bd6"),
        (
            "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
            0,
            "1863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
        ),
        ("BC1SW50QGDZ25J", 16, "751e"),
        ("bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", 2, "751e76e8199196d454941c45d1b3a323"),
        (
            "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
            1,
            "000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
        ),
        (P2TR, 1, "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"),
    ],
)
def test_published_segwit_addresses_decode_to_their_programs(text: str, version: int, program: str) -> None:
    answer = bech32.decode(text)
    assert answer is not None
    assert (answer.version, answer.program.hex()) == (version, program)
    assert bech32.encode(answer) == text.lower()


@settings(deadline=None)
@given(st.sampled_from(["bc", "bcrt"]), st.integers(0, 16), st.sampled_from([2, 20, 32, 40]), st.data())
def test_an_encoded_segwit_address_decodes_to_the_same_program(
    prefix: str, version: int, size: int, data: st.DataObject
) -> None:
    segwit = bech32.Segwit(prefix=prefix, version=version, program=data.draw(st.binary(min_size=size, max_size=size)))

    assert bech32.decode(bech32.encode(segwit)) == segwit


@settings(deadline=None)
@given(st.sampled_from([(0, 20), (0, 32), (1, 32), (16, 2)]), st.data())
def test_encoding_many_equals_encoding_each(kind: tuple[int, int], data: st.DataObject) -> None:
    version, size = kind
    programs = data.draw(st.lists(st.binary(min_size=size, max_size=size), max_size=5))
    write = bech32.encoder("bc", version, size)

    assert write.many(programs) == [write(program) for program in programs]


def test_the_encoder_refuses_programs_of_another_size() -> None:
    with pytest.raises(ValueError, match="19 bytes instead of 20"):
        bech32.encoder("bc", 0, 20)(bytes(19))
    with pytest.raises(ValueError, match="21 bytes instead of 20"):
        bech32.encoder("bc", 0, 20).many([bytes(20), bytes(21)])


@pytest.mark.parametrize(
    "text",
    [
        # Checksums of the wrong kind, by version.
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
        "tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf",
        "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
        "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47",
        # An invalid letter, an unknown version, mixed case, wrong padding, no data.
        "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
        "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
        "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
        "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j",
        "bc1gmk9yu",
        "1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "é1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        # The Kelvin sign, whose lower case is a k.
        "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7\N{KELVIN SIGN}V8F3T4",
        "bc1" + "q" * 90,
    ],
)
def test_published_invalid_segwit_addresses_are_refused(text: str) -> None:
    assert bech32.decode(text) is None
    assert type(refusal(BITCOIN, text)) is AddressError


@pytest.mark.parametrize(
    "text",
    [
        "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
        "BC1SW50QGDZ25J",
        "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
        "bc1pw5dgrnzv",
        "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
    ],
)
def test_segwit_versions_and_sizes_not_in_use_are_refused(text: str) -> None:
    assert str(refusal(BITCOIN, text)) == "The address is of a kind that is not known yet."


def test_an_address_with_an_unknown_prefix_is_refused() -> None:
    other = "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut"
    assert bech32.decode(other) is not None
    assert type(refusal(BITCOIN, other)) is AddressError
    assert stored_form(other) is None


# Base58 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"\0", "1"),
        (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
        (bytes.fromhex("0000287fb4cd"), "11233QC4"),
        (
            b"The quick brown fox jumps over the lazy dog.",
            "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z",
        ),
    ],
)
def test_base58_matches_published_vectors(raw: bytes, text: str) -> None:
    assert base58.encode(raw) == text
    assert base58.decode(text) == raw


def test_an_unknown_base58_version_or_length_is_refused() -> None:
    for payload in (b"\x01" + b"\x02" * 20, b"\x00" + b"\x02" * 19, b"\x41" + b"\x02" * 21):
        text = base58.encode_checked(payload)
        assert base58.decode_checked(text) == payload
        assert stored_form(text) is None
        assert type(refusal(BITCOIN, text)) is type(refusal(TRON, text)) is AddressError


# TON ----------------------------------------------------------------------------------------------------------


def test_ton_tokens_are_refused_on_the_masterchain_and_all_coins_on_unknown_workchains() -> None:
    assert "masterchain" in str(refusal(TON, "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"))
    assert "masterchain" in str(refusal(TON, "-1:" + "3" * 64))
    assert stored_form("Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF") == "-1:" + "3" * 64


# Solana: a public key is a point of the curve ------------------------------------------------------------------


@pytest.mark.parametrize("y", [2, 7, 8, 11])
def test_solana_addresses_off_the_curve_are_refused(y: int) -> None:
    off = base58.encode(y.to_bytes(32, "little"))

    assert stored_form(off) == off
    assert str(refusal(SOLANA, off)) == "Nobody has the key of this address."


@given(st.binary(min_size=32, max_size=32) | st.sampled_from([bytes(32), b"\1" + bytes(31), b"\xff" * 32]))
def test_a_public_key_is_what_the_chain_takes_for_one(raw: bytes) -> None:
    assert is_on_curve(base58.encode(raw)) is Pubkey(raw).is_on_curve()
