"""From a network to its reader, its spender and its cap."""

import dataclasses
from typing import Any, cast

import pytest

from chains import registry
from chains.evm.reader import EvmReader
from chains.evm.spends.spender import EvmSpender
from chains.registry import coin_treasurer, fee_cap_units, reader, spender, treasurer
from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import Parameters
from core.settings.settings import Settings, load_settings

NETWORKS = load_catalogue("development").networks


def settings(**urls: str) -> Settings:
    base = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1/sluice",
        "REDIS_URL": "redis://127.0.0.1",
    }
    return load_settings(base | urls)


def test_a_network_keeps_its_adapter_and_so_its_connections() -> None:
    first, again = (reader(NETWORKS["ethereum"], settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1")) for _ in range(2))

    assert isinstance(first, EvmReader)
    assert first is again


def test_networks_do_not_share_an_adapter() -> None:
    both = settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1", BSC_RPC_URLS="http://127.0.0.1:1")

    assert reader(NETWORKS["ethereum"], both) is not reader(NETWORKS["bsc"], both)


@pytest.mark.parametrize("code", [code for code, network in NETWORKS.items() if network.family == "evm"])
def test_every_evm_network_of_the_catalogue_is_served(code: str) -> None:
    assert reader(NETWORKS[code], settings(**{f"{code.upper()}_RPC_URLS": "http://127.0.0.1:1"}))


def test_a_network_without_providers_is_not_served() -> None:
    with pytest.raises(LookupError, match="bsc is not served"):
        reader(NETWORKS["bsc"], settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1"))


def test_a_family_that_this_version_does_not_know_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MODULES", {})
    with pytest.raises(LookupError, match="ton is not served"):
        reader(NETWORKS["ton"], settings().model_copy(update={"rpc_urls": {"ton": ("http://127.0.0.1:1",)}}))


def test_a_network_keeps_its_spender_which_shares_the_adapters_connections() -> None:
    urls = settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1")
    first, again = (spender(NETWORKS["ethereum"], urls) for _ in range(2))
    scanner = reader(NETWORKS["ethereum"], urls)

    assert isinstance(first, EvmSpender)
    assert isinstance(scanner, EvmReader)
    assert first is again
    assert first.providers is scanner._providers


def test_where_no_adapter_is_there_is_no_spender() -> None:
    with pytest.raises(LookupError, match="bsc is not served"):
        spender(NETWORKS["bsc"], settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1"))


def test_the_operators_gas_cap_replaces_the_catalogues() -> None:
    named = settings(ETHEREUM_GAS_CAP_GWEI="7")

    assert [fee_cap_units(NETWORKS[code], named) for code in ("ethereum", "bsc")] == [7 * 10**9, 20 * 10**9]
    without = dataclasses.replace(NETWORKS["ton"], family_parameters=cast("Any", Parameters()))
    with pytest.raises(LookupError, match="ton has no cap on fees"):
        fee_cap_units(without, named)


def test_who_sweeps_is_asked_of_no_network_of_coins_and_who_joins_of_no_other() -> None:
    urls = settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1")

    with pytest.raises(LookupError, match="nothing is swept on bitcoin"):
        treasurer(NETWORKS["bitcoin"], urls)
    with pytest.raises(LookupError, match="ethereum has no coins"):
        coin_treasurer(NETWORKS["ethereum"], urls)


def test_what_is_built_of_a_network_learns_the_operators_numbers_by_their_names() -> None:
    wirings = [
        registry._wiring_of(NETWORKS["bsc"], settings(BSC_RPC_URLS="http://127.0.0.1:1").model_copy(update=update))
        for update in ({}, {"figures": {"bsc": {"_SOME": 7}}}, {"figures": {"bsc": {"_SOME": 7}}})
    ]

    assert [dict(wiring.options) for wiring in wirings] == [{}, {"_SOME": 7}, {"_SOME": 7}]
    assert wirings[1] is wirings[2]
