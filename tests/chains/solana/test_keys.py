"""Derivation of Solana addresses against a published one."""

from embit import bip39

from chains.family import DEPOSITS, HOT
from chains.solana.keys import SolanaDeriver
from core.addresses import solana
from tests.chains.test_keys import ABANDON


def test_the_first_deposit_address_is_the_published_one() -> None:
    deriver = SolanaDeriver(bip39.mnemonic_to_seed(ABANDON))
    assert deriver.address(DEPOSITS, 0) == "HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk"


def test_addresses_have_the_stored_form() -> None:
    deriver = SolanaDeriver(bip39.mnemonic_to_seed(ABANDON))
    addresses = [deriver.address(HOT, 0), *(deriver.address(DEPOSITS, index) for index in range(50))]
    assert [solana.parse(address, None) for address in addresses] == addresses
    assert len(set(addresses)) == len(addresses)
