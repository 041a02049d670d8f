"""Checks that the ledger counts coins in the chain's units, since invariants compare the two directly."""

from __future__ import annotations

from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import traits_of


def test_the_ledger_counts_coins_in_their_chains_units() -> None:
    catalogue = load_catalogue("production")
    lying = [network for network in catalogue.networks.values() if traits_of(network).spends_coins]
    by_key = {
        (pair.currency, pair.network): (pair.decimals, catalogue.scale(pair.currency))
        for network in lying
        for pair in catalogue.pairs_on(network.code)
    }
    assert by_key == {("BTC", "bitcoin"): (8, 8)}
