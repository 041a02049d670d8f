"""Departures that two of our keys signed belong to the deposit address; the hot wallet only paid for them."""

from __future__ import annotations

from uuid import UUID

import pytest

from chains.base import ContradictionError
from chains.spending import Output, Window
from models.db.base import rows, transaction
from models.recovery import adoption
from models.spends import unexplained
from models.treasury import addresses
from tests.actors.scan.paper import begin, poll
from tests.actors.scan.test_coins import HOT, claims, depart
from tests.models.builders import CATALOGUE
from tests.models.invoices.builders import invoice
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    del database
    claims(monkeypatch, "window", has_sender=True)
    addresses.pin_hot("ethereum", HOT)
    made = begin(monkeypatch)
    made.mine()
    poll()
    return made


@pytest.mark.parametrize("is_owner_first", [True, False])
def test_a_departure_that_two_keys_signed_is_the_owners(
    chain: PaperReader, shop: UUID, *, is_owner_first: bool
) -> None:
    owner = invoice(shop).address.lower()
    sent = ((owner, "0xswept"), (HOT, "0xswept"))
    chain.mine(sent=sent if is_owner_first else sent[::-1])
    depart(
        chain, "0xswept", sender=owner, payer=HOT, fee_units=-3, spends=(), outputs=(Output(recipient=HOT, units=7),),
        window=Window(reference="1", last_height=chain.tip + 9),
    )  # fmt: skip
    poll()
    assert rows("SELECT sender, payer, chain_fee_units::int FROM unexplained_departures") == [(owner, HOT, -3)]

    departure = unexplained.find("ethereum", "0xswept")
    assert departure is not None
    if departure.is_open:
        with transaction():
            assert adoption.adopt(CATALOGUE, departure.id)
    assert rows("SELECT purpose, sender, payer FROM spends") == [("sweep", owner, HOT)]


def test_only_another_payer_gains_by_a_departure(chain: PaperReader) -> None:
    chain.mine()
    with pytest.raises(ContradictionError):
        depart(chain, "0xswept", sender=HOT, fee_units=-3)
