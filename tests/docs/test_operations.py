"""docs/operations.md: the figures of fees that it names are the catalogue's."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.families import bitcoin_parameters
from core.settings.settings import Settings

PAGE: Final = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
CATALOGUE: Final = load_catalogue("production")
CAPPED: Final = {code: network for code, network in CATALOGUE.networks.items() if network.family_parameters.fee_cap}


def line(pattern: str) -> str:
    (matches,) = re.findall(pattern, PAGE)
    return str(matches)


@pytest.mark.parametrize(("suffix", "alias"), [("_GAS_CAP_GWEI", "_GAS_CAP_GWEI"), ("_FEE_CAP", "")])
def test_every_cap_on_fees_is_the_catalogues(suffix: str, alias: str) -> None:
    named = line(rf"\n\| `<NETWORK>{suffix}` \| ([^|]+) \|")

    assert named.split(", ") == [
        f"{code} {network.family_parameters.fee_cap}"
        for code, network in CAPPED.items()
        if alias == network.family_parameters.FEE_CAP_ALIAS
    ]


def test_the_rate_below_which_coins_are_joined_is_the_catalogues() -> None:
    named = line(r"\n\| `BITCOIN_JOIN_SAT_VB` \| ([^|]+) \|")

    assert int(named) == bitcoin_parameters(CATALOGUE.networks["bitcoin"]).join_sat_vb


def test_every_gas_reserve_follows_from_the_catalogues_cap_and_dearest_transfer() -> None:
    transfers = int(line(r"`GAS_RESERVE_TRANSFERS` \((\d+)\)"))
    assert transfers == Settings.model_fields["gas_reserve_transfers"].default
    named = line(r"By the catalogue's figures that is (.+)\.\n")
    figures = re.findall(r"([0-9.]+)(?: ([A-Z]+))?(?: for ([a-z]+))?", named)

    assert {network or currency: Decimal(figure) for figure, currency, network in figures} == {
        code if network.gas_currency == "ETH" else network.gas_currency: transfers * dearest(network)
        for code, network in CAPPED.items()
    }


def dearest(network: Network) -> Decimal:
    """Return what a transfer of a network's dearest coin takes at its cap, in whole coins."""
    parameters, decimals = network.family_parameters, CATALOGUE.assets[network.gas_currency].precision
    assert parameters.fee_cap is not None
    units = parameters.payout_measure_max * parameters.fee_cap * parameters.FEE_CAP_UNIT
    return Decimal(units).scaleb(-decimals)
