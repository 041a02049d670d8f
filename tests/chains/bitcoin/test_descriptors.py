"""Descriptors of our addresses: published checksums, and equal addresses from another library and a real node."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from embit import bip39
from embit.descriptor import Descriptor
from embit.networks import NETWORKS

from chains.bitcoin.descriptors import checksum
from chains.bitcoin.keys import BitcoinDeriver
from chains.family import DEPOSITS, HOT
from chains.net.json_rpc import JsonRpc
from devstack.bitcoin.node import BitcoinNode
from tests.chains.test_keys import ABANDON

SEED = bip39.mnemonic_to_seed(ABANDON)


def test_a_checksum_is_the_published_one() -> None:
    assert checksum("raw(deadbeef)") == "89f8spxm"


def test_a_letter_that_no_descriptor_has_is_refused() -> None:
    with pytest.raises(ValueError, match="substring"):
        checksum("raw(é)")


@pytest.mark.parametrize("chain", ["main", "regtest"])
def test_another_library_finds_our_addresses(chain: str) -> None:
    deriver = BitcoinDeriver(SEED, chain)

    for account, text in zip((DEPOSITS, HOT), deriver.descriptors(), strict=True):
        parsed = Descriptor.from_string(text.partition("#")[0])
        for index in (0, 1, 77) if account == DEPOSITS else (0,):
            assert parsed.derive(index).address(NETWORKS[chain]) == deriver.address(account, index)
        assert text.startswith(f"wpkh([73c5da0a/84h/{0 if chain == 'main' else 1}h/{account}h]")
        assert text.partition("#")[2] == checksum(text.partition("#")[0])


def test_the_account_is_the_published_one() -> None:
    from embit.base58 import decode_check, encode_check  # noqa: PLC0415 - for this test alone

    published = (
        "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtf"
        "SdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs"
    )
    as_xpub = encode_check(bytes.fromhex("0488b21e") + decode_check(published)[4:])

    assert f"]{as_xpub}/0/*)" in BitcoinDeriver(SEED, "main").descriptors()[0]


def test_a_node_takes_them(bitcoind: Callable[[], BitcoinNode]) -> None:
    rpc, deriver = JsonRpc(bitcoind().url, timeout_s=10), BitcoinDeriver(SEED, "regtest")

    deposits, hot = deriver.descriptors()
    assert rpc.call("deriveaddresses", [deposits, [0, 2]], list[str]) == [
        deriver.address(DEPOSITS, index) for index in range(3)
    ]
    assert rpc.call("deriveaddresses", [hot, [0, 0]], list[str]) == [deriver.address(HOT, 0)]
