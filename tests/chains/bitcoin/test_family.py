"""The parts of the bitcoin family share one wiring and its connections."""

from __future__ import annotations

from typing import cast

import pytest

from chains.bitcoin.family import FAMILY
from chains.bitcoin.reader import BitcoinReader
from chains.bitcoin.spends.spender import BitcoinSpender
from chains.bitcoin.treasurer import BitcoinTreasurer
from chains.family import DEPOSITS, HOT, Wiring
from core.catalogue.catalogue import load_catalogue


def wiring(environment: str = "development", **options: int) -> Wiring:
    catalogue = load_catalogue("production" if environment == "production" else "development")
    return Wiring(
        network=catalogue.networks["bitcoin"],
        pairs=tuple(catalogue.pairs_on("bitcoin")),
        urls=("http://127.0.0.1:1",),
        timeout_s=1,
        sanctions_oracle=None,
        options={f"_{name}": number for name, number in options.items()},
    )


def test_reader_spender_and_treasurer_share_their_providers() -> None:
    one = wiring()
    reader, spender = cast("BitcoinReader", FAMILY.reader(one)), cast("BitcoinSpender", FAMILY.spender(one))
    treasurer = cast("BitcoinTreasurer", FAMILY.treasurer(one))

    assert reader._providers is spender.providers is treasurer._providers
    assert FAMILY.screener(one) is None


@pytest.mark.parametrize(("options", "rate"), [({}, 5_000), ({"JOIN_SAT_VB": 0}, 0), ({"JOIN_SAT_VB": 12}, 12_000)])
def test_the_operators_rate_for_joining_coins_replaces_the_catalogues(options: dict[str, int], rate: int) -> None:
    assert cast("BitcoinTreasurer", FAMILY.treasurer(wiring(**options)))._join_rate == rate


@pytest.mark.parametrize(("environment", "prefix"), [("production", "bc1q"), ("development", "bcrt1q")])
def test_addresses_are_those_of_the_networks_own_chain(environment: str, prefix: str) -> None:
    deriver = FAMILY.deriver(b"\x01" * 64, wiring(environment).network)

    assert {deriver.address(account, 0).startswith(prefix) for account in (DEPOSITS, HOT)} == {True}
