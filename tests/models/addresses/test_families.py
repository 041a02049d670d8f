"""Each family numbers its addresses by itself, even before its pool is filled; the audit reads stored forms."""

from __future__ import annotations

import pytest

from core.addresses.addresses import display, parse
from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import TRAITS
from models.addresses import reservations
from models.addresses.pool import AddressStash, chunk_message, fill
from models.addresses.reservations import CHUNK, SEQUENCES, is_any_left, level, reclaim, reserve, skip_ahead
from models.db.base import one, rows, transaction
from models.spends import signing_stops
from tests.models.addresses.test_pool import PUBLIC_KEY, SIGNER

pytestmark = pytest.mark.usefixtures("database")

UNFILLED = sorted(set(TRAITS) - {"evm"})


def test_every_family_has_its_own_sequence_and_cursor() -> None:
    assert set(SEQUENCES) == set(TRAITS)
    assert len(set(SEQUENCES.values())) == len(SEQUENCES)
    cursors = rows("SELECT family, ordinal FROM address_marks WHERE marked_at = 'epoch'")
    assert dict(cursors) == dict.fromkeys(TRAITS, -1)


@pytest.mark.parametrize("family", UNFILLED)
def test_a_family_without_a_filled_pool_has_no_addresses(family: str) -> None:
    assert (level(family), is_any_left(family), reserve(family, 5), reclaim(family)) == (0, False, [], 0)
    assert level("evm") == 0


@pytest.mark.parametrize("family", UNFILLED)
def test_a_family_is_filled_from_ordinal_0(family: str) -> None:
    addresses = [f"{family} {place}" for place in range(CHUNK)]
    assert fill(family, 0, addresses, SIGNER.sign(chunk_message(family, 0, addresses)))

    assert (is_any_left(family), is_any_left("evm")) == (True, False)
    assert AddressStash(PUBLIC_KEY).take(family) == (0, addresses[0])


def test_after_a_restore_every_family_skips_ordinals_even_with_an_empty_pool() -> None:
    signing_stops.distrust()

    for family in TRAITS:
        assert level(family) == -reservations.SKIPPED
        assert signing_stops.renew_pool(family) is None, "skipped already"
    addresses = [f"tron {place}" for place in range(CHUNK)]
    assert fill("tron", 0, addresses, SIGNER.sign(chunk_message("tron", 0, addresses)))
    assert reserve("tron", 5) == [], "a buyer may still pay to one of these"


def test_one_family_skips_without_the_others() -> None:
    with transaction():
        assert skip_ahead("ton") == reservations.SKIPPED
    assert (level("ton"), level("evm")) == (-reservations.SKIPPED, 0)


@pytest.mark.parametrize(
    ("network", "text"),
    [
        ("ethereum", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
        ("tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        ("solana", "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"),
        ("ton", "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"),
        ("bitcoin", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
        ("bitcoin", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"),
    ],
)
def test_the_audit_reads_shown_addresses_as_stored_ones(network: str, text: str) -> None:
    there = load_catalogue("production").networks[network]
    stored = parse(there, text)

    for shown in (display(there, stored), stored):
        assert one("SELECT stored_address(%s)", (shown,)) == (stored,)


def test_the_audit_reads_ton_test_network_addresses() -> None:
    there = load_catalogue("development").networks["ton"]
    stored = parse(there, "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs")

    assert display(there, stored).startswith("0Q")
    assert one("SELECT stored_address(%s)", (display(there, stored),)) == (stored,)
