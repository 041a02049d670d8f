"""Metrics of scans that have stopped, and of deposits that no second provider confirms."""

from __future__ import annotations

from typing import Final

import pytest

from api.health.gauges import freeze_gauges, scanner_gauges, sighting_gauges, trust_gauges
from models.db.base import execute, transaction
from models.deposits import cursors, sightings, witnesses
from models.payouts import freezes
from models.spends import signing_stops
from tests.api.conftest import make_settings
from tests.api.rows import add_invoice, add_merchant, add_sighting
from tests.models.builders import Chain, reach_head
from tests.models.invoices.builders import invoice

SETTINGS: Final = make_settings()


def gauge(name: str) -> dict[str, float]:
    return {
        sample.labels["network"]: sample.value
        for metric in (*trust_gauges(), *sighting_gauges(), *scanner_gauges(SETTINGS), *freeze_gauges(SETTINGS))
        if metric.name == name
        for sample in metric.samples
        if "network" in sample.labels
    }


@pytest.mark.usefixtures("database")
def test_a_stopped_scan_shows_and_a_running_one_does_not() -> None:
    for network in ("ethereum", "bsc"):
        Chain(network)
    assert cursors.halt("bsc", "providers disagree about a block")
    assert not cursors.halt("bsc", "providers disagree about a block")
    assert gauge("sluice_scanner_halted") == {"ethereum": 0, "bsc": 1}

    cursors.resume("bsc")
    assert gauge("sluice_scanner_halted") == {"ethereum": 0, "bsc": 0}


@pytest.mark.usefixtures("database")
def test_a_network_that_waits_for_its_scan_shows_as_not_signed_for() -> None:
    Chain()
    Chain("polygon")
    reach_head()
    assert gauge("sluice_signing_stopped_seconds") == {}
    execute("UPDATE app_clock SET ahead = ahead + interval '2 minutes'")
    assert 120 <= gauge("sluice_signing_stopped_seconds").pop("ethereum") < 180
    with transaction():
        signing_stops.stop("ethereum", reason="a test")
    assert gauge("sluice_signing_stopped_seconds")["ethereum"] < 60
    assert "polygon" not in gauge("sluice_signing_stopped_seconds"), "it is not served"


@pytest.mark.usefixtures("database")
def test_deposits_that_wait_for_a_second_provider_show_until_it_answers() -> None:
    chain = Chain()
    deposit = chain.pay(invoice(), 10**18)
    assert gauge("sluice_deposits_awaiting_quorum") == {}

    assert witnesses.doubt("ethereum", deposit.txid, deposit.ordinal)
    assert gauge("sluice_deposits_awaiting_quorum") == {"ethereum": 1}
    [asked] = witnesses.due("ethereum", confirmations=2, limit=5)
    assert witnesses.agree(asked)
    assert gauge("sluice_deposits_awaiting_quorum") == {}


@pytest.mark.usefixtures("database")
def test_sightings_without_a_block_show_with_the_age_of_the_last_look() -> None:
    Chain()
    assert gauge("sluice_sightings_age_seconds") == {}
    shop = add_merchant()
    add_sighting(shop, add_invoice(shop), 5)
    sightings.note_look("ethereum")
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")

    assert gauge("sluice_sightings") == {"ethereum": 1}
    assert 3600 <= gauge("sluice_sightings_age_seconds")["ethereum"] < 3660
    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    assert gauge("sluice_sightings") == {}


@pytest.mark.usefixtures("database")
def test_freezes_show_by_scope_until_they_are_lifted() -> None:
    def shown() -> dict[str, float]:
        return {s.labels["scope"]: s.value for metric in freeze_gauges(SETTINGS) for s in metric.samples if s.value}

    assert shown() == {}
    freezes.freeze("network", "bsc", reason="r", frozen_by=freezes.RECONCILER)
    freezes.freeze("network", "bsc", reason="r", frozen_by="operator")
    freezes.freeze("all", reason="r", frozen_by="operator")
    assert shown() == {"network": 2, "all": 1}
    freezes.unfreeze("network", "bsc")
    assert shown() == {"all": 1}
