"""Charges are recorded with their block where the chain has any, undone with it, and judged by a second reading."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
import structlog

from actors.scan import witnesses
from actors.scan.rescan import reread
from chains.base import Charge, ContradictionError
from core.catalogue import families
from models.db.base import execute, rows
from models.ledger.ledger import GAS, GATEWAY, Account
from models.treasury import addresses
from tests.actors.scan.paper import CTX, begin, poll
from tests.models.builders import CATALOGUE
from tests.models.ledger.figures import net_of
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
HOT = "0x" + "aa" * 20
MARK = "q7"


def traits(monkeypatch: pytest.MonkeyPatch, **others: Any) -> None:
    other = replace(families.TRAITS["evm"], **others)
    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": other}))


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain of one block, which the gateway has scanned, in a family with charges."""
    del database
    traits(monkeypatch, has_charges=True)
    addresses.pin_hot("ethereum", HOT)
    made = begin(monkeypatch)
    made.mine()
    poll()
    return made


def charge(txid: str = "0xin", **more: Any) -> Charge:
    return Charge(**{"txid": txid, "address": HOT, "units": 5} | more)


def listed() -> list[tuple[Any, ...]]:
    return rows("SELECT txid, address, currency, decimals, units, block_height, status FROM charges ORDER BY txid")


def units() -> dict[str, int]:
    return {txid: int(units) for txid, units in rows("SELECT txid, units FROM charges")}


def test_a_block_with_charges_is_recorded_with_them(chain: PaperReader) -> None:
    chain.mine(charges=(charge(), charge("0xnothing", units=0), charge("0xgain", units=-3)))
    poll()
    assert listed() == [
        ("0xgain", HOT, "ETH", 18, -3, 2, "pending"),
        ("0xin", HOT, "ETH", 18, 5, 2, "pending"),
    ]


def test_charges_are_booked_when_final(chain: PaperReader) -> None:
    chain.mine(charges=(charge(),))
    chain.mine(count=ETHEREUM.maturity - 1)
    poll(2)
    assert net_of(Account(GATEWAY, GAS, "ETH")) == -5


def test_where_chains_charge_nothing_none_is_recorded(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    traits(monkeypatch, has_charges=False)
    chain.mine(charges=(charge(),))
    poll()
    assert listed() == []


def test_a_reorg_takes_charges_with_their_block(chain: PaperReader) -> None:
    chain.mine(charges=(charge(), charge("0xagain")))
    poll()
    chain.reorg(1)
    chain.mine(count=2)
    chain.mine(charges=(charge("0xagain", units=6),))
    poll(3)
    assert units() == {"0xagain": 6}


def read_twice(chain: PaperReader, *second: Charge) -> None:
    """Let another provider show these charges of the newest block."""
    chain.scans[2] = replace(chain.scans[2], charges=second)
    reread(CTX, ETHEREUM, chain, 2)  # type: ignore[arg-type]


def by_status() -> list[tuple[str, str]]:
    return [(row[0], row[-1]) for row in listed()]


def test_charges_that_one_of_two_readings_shows_are_doubted(chain: PaperReader) -> None:
    chain.providers = 2
    chain.mine(charges=(charge("0xboth"), charge("0xfirst")))
    poll()
    read_twice(chain, charge("0xboth"), charge("0xsecond"))
    assert by_status() == [("0xboth", "pending"), ("0xfirst", "doubted"), ("0xsecond", "doubted")]


def test_a_single_provider_adds_charges_by_a_second_reading(chain: PaperReader) -> None:
    chain.mine(charges=(charge("0xfirst"),))
    poll()
    read_twice(chain, charge("0xsecond"))
    assert by_status() == [("0xfirst", "doubted"), ("0xsecond", "pending")]


def test_a_third_answer_decides_about_a_doubted_charge(chain: PaperReader) -> None:
    """One provider leaves a true charge out, and invents another."""
    chain.providers = 3
    chain.mine(charges=(charge("0xtrue"),))
    poll()
    read_twice(chain, charge("0xinvented"))
    chain.scans[2] = replace(chain.scans[2], charges=(charge("0xtrue"),))
    with structlog.testing.capture_logs() as logged:
        witnesses.seek_second_opinions("ethereum")
    assert by_status() == [("0xinvented", "denied"), ("0xtrue", "pending")]
    assert [(line["event"], line["txid"]) for line in logged if line["event"].startswith("charge")] == [
        ("charge.denied", "0xinvented")
    ]

    # Another lie about the same block changes neither.
    read_twice(chain, charge("0xinvented"))
    assert by_status() == [("0xinvented", "denied"), ("0xtrue", "pending")]
    chain.mine(count=ETHEREUM.maturity - 1)
    poll(2)
    execute("UPDATE chain_cursors SET reread_height = height")
    poll()
    assert net_of(Account(GATEWAY, GAS, "ETH")) == -5


@pytest.mark.parametrize("invented", [(), ("0xtrue",)])
def test_a_charge_is_asked_about_ever_more_rarely_while_providers_disagree(
    chain: PaperReader, invented: tuple[str, ...]
) -> None:
    chain.providers, chain.invented = 2, invented
    chain.mine(charges=(charge("0xtrue"),))
    poll()
    read_twice(chain)
    chain.scans[2] = replace(chain.scans[2], charges=(charge("0xtrue"),) if invented else ())
    chain.providers = 2 if invented else 1
    for _ in range(2):
        witnesses.seek_second_opinions("ethereum")
    [(attempts, problem)] = rows("SELECT attempts, problem FROM charges")
    assert (attempts, by_status()) == (1, [("0xtrue", "doubted")])
    assert "providers agree" in problem


def test_a_doubted_charge_is_asked_about_only_where_chains_have_charges(
    chain: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.providers = 3
    chain.mine(charges=(charge("0xtrue"),))
    poll()
    read_twice(chain)
    traits(monkeypatch, has_charges=False)
    witnesses.seek_second_opinions("ethereum")
    assert by_status() == [("0xtrue", "doubted")]


def test_a_second_reading_without_charges_doubts_those_of_the_first(chain: PaperReader) -> None:
    chain.mine(charges=(charge(),))
    poll()
    read_twice(chain)
    assert [row[-1] for row in listed()] == ["doubted"]


@pytest.mark.parametrize("figures", [{"units": 2**129}, {"units": -(2**129)}])
def test_impossible_charges_are_refused(figures: dict[str, int]) -> None:
    with pytest.raises(ContradictionError):
        charge(**figures)
