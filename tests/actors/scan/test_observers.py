"""Each block is shown to every observer of the table in its order; nothing is noted of a block that was not scanned."""

from __future__ import annotations

import pytest

from actors.scan import observers
from actors.scan.reading import Matching, Observer, Reading
from chains.base import BlockScan
from core.catalogue.catalogue import Network
from models.db.base import in_transaction
from tests.actors.scan import paper
from tests.models.builders import CATALOGUE
from tests.peers.paper_reader import PaperReader


class Notebook:
    """Observers that write down what they are shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def observer(self, name: str, *, new: int = 0, is_concerned: bool = True) -> Observer:
        def note(reading: Reading) -> int:
            assert in_transaction()
            self.seen.append((name, (reading.scan.block.height, reading.is_late)))
            return new

        def take_back(network: Network) -> None:
            assert in_transaction()
            self.seen.append((name, network.code))

        return Observer(note=note, concerns=lambda _reading: is_concerned, take_back=take_back)


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    del database
    made = paper.begin(monkeypatch)
    made.mine()
    paper.poll()
    return made


def table(monkeypatch: pytest.MonkeyPatch, *rows: Observer) -> None:
    monkeypatch.setattr(observers, "OBSERVERS", rows)


def reading(chain: PaperReader, height: int) -> Reading:
    network = CATALOGUE.networks["ethereum"]
    ours = Matching(network)
    scan = chain.reread(height, ours)
    assert isinstance(scan, BlockScan)
    return Reading(ctx=paper.CTX, network=network, chain=chain, scan=scan, ours=ours)


def test_the_scan_shows_a_block_to_all_and_a_reorg_takes_it_back_from_all(
    chain: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Notebook()
    table(monkeypatch, book.observer("one"), book.observer("two"))
    chain.mine()
    paper.poll()
    assert book.seen == [("one", (2, False)), ("two", (2, False))]

    book.seen.clear()
    chain.reorg(1)
    chain.mine()
    paper.poll()
    assert book.seen[:2] == [("one", "ethereum"), ("two", "ethereum")]


def test_a_late_reading_is_noted_by_all_if_it_concerns_any(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Notebook()
    chain.mine()
    paper.poll()
    quiet = book.observer("two", new=1, is_concerned=False)
    table(monkeypatch, book.observer("one", new=2), quiet)
    assert observers.note_late(reading(chain, 2)) == 3
    assert book.seen == [("one", (2, True)), ("two", (2, True))]

    table(monkeypatch, quiet)
    assert observers.note_late(reading(chain, 2)) == 0
    chain.mine()
    table(monkeypatch, book.observer("one"))
    assert observers.note_late(reading(chain, 3)) == 0, "the scan has not recorded it"
    assert len(book.seen) == 2


def test_every_observer_is_in_the_table_once() -> None:
    notes = [row.note.__module__ for row in observers.OBSERVERS]

    modules = ("coins", "departures", "charges", "record")
    assert notes == [f"actors.scan.{module}" for module in modules]
