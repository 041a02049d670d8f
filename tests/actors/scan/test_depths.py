"""Credits deposits at a larger depth than the network's if they need it, such as mining rewards."""

from __future__ import annotations

from uuid import UUID

import pytest

from models.db.base import column, rows
from models.deposits import rows as deposits
from models.invoices import rows as invoices
from models.invoices import timeline, views
from models.invoices.shown import Shown
from models.ledger.ledger import holdings
from models.treasury import addresses
from models.wallets import settlement
from tests.actors.scan.paper import begin, poll, statuses, to
from tests.models.builders import CATALOGUE
from tests.models.invoices.builders import invoice
from tests.models.wallets.builders import wallet
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
DEEP = ETHEREUM.maturity + 5


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain of one block, which the gateway has scanned."""
    del database
    made = begin(monkeypatch)
    made.mine()
    poll()
    return made


def bury(chain: PaperReader, depth: int) -> None:
    """Bury block 2 to a depth, and scan."""
    chain.mine(count=depth - (chain.tip - 1))
    poll()


def counted(invoice_id: UUID) -> tuple[int, int]:
    """Return an invoice's shown confirmations and required ones."""
    shown = views.payment(CATALOGUE, Shown(invoices.reread(invoice_id)), pay_url="", public=True)
    return shown["confirmations"], shown["required_confirmations"]


def test_an_invoices_deposit_is_credited_at_its_own_depth(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address, depth_min=DEEP))
    bury(chain, DEEP - 1)
    assert (statuses(), invoices.reread(mine.id).status) == (["pending"], "check")
    assert counted(mine.id) == (DEEP - 1, DEEP)
    assert deposits.owners_due("ethereum", kind="invoice", confirmations=ETHEREUM.confirmations, limit=9) == []

    bury(chain, DEEP)
    assert (statuses(), invoices.reread(mine.id).status) == (["credited"], "paid")
    assert counted(mine.id) == (DEEP, DEEP)
    # It waited beyond maturity, so that no part matures.
    assert rows("SELECT reference FROM ledger_transfers WHERE reference LIKE '%%:mature'") == []
    assert holdings(shop)["USDT"]["available"] > 0


def test_another_settlement_leaves_a_deep_deposit_pending(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address, depth_min=DEEP))
    bury(chain, ETHEREUM.confirmations)
    assert counted(mine.id) == (ETHEREUM.confirmations, DEEP)
    chain.mine(to(mine.address, txid="0xbb"))
    bury(chain, 2 * ETHEREUM.confirmations)
    # The reward counts last, although the other one is younger.
    assert counted(mine.id) == (2 * ETHEREUM.confirmations, DEEP)

    assert rows("SELECT txid, status FROM deposits ORDER BY txid") == [("0xaa", "pending"), ("0xbb", "credited")]


def test_a_wallets_deposit_is_credited_at_its_own_depth(chain: PaperReader, shop: UUID) -> None:
    mine = wallet(shop)
    chain.mine(to(mine.address, depth_min=DEEP))
    bury(chain, DEEP - 1)
    assert statuses() == ["pending"]
    # It was listed as due by mistake.
    settlement._advance(CATALOGUE, mine.id, column("SELECT id FROM deposits")[0])
    assert statuses() == ["pending"]

    bury(chain, DEEP)
    assert statuses() == ["credited"]


def test_a_depth_below_the_networks_changes_nothing(chain: PaperReader, shop: UUID) -> None:
    chain.mine(to(invoice(shop).address, depth_min=1))
    bury(chain, ETHEREUM.confirmations - 1)
    assert statuses() == ["pending"]

    bury(chain, ETHEREUM.confirmations)
    assert statuses() == ["credited"]
    assert rows("SELECT count(*) FROM maturing_credits") == [(1,)]


def test_a_depth_between_confirmations_and_maturity_shortens_the_maturing(chain: PaperReader, shop: UUID) -> None:
    between = ETHEREUM.confirmations + 1
    assert between < ETHEREUM.maturity
    chain.mine(to(invoice(shop).address, depth_min=between))
    bury(chain, between)
    assert (statuses(), rows("SELECT count(*) FROM maturing_credits")) == (["credited"], [(1,)])

    bury(chain, ETHEREUM.maturity)
    assert rows("SELECT count(*) FROM maturing_credits") == [(0,)]


def test_a_deposit_returning_after_a_reorg_has_the_depth_of_its_new_block(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address))
    poll()
    chain.reorg(1)
    chain.mine(to(mine.address, depth_min=DEEP))
    chain.mine()
    poll()

    assert rows("SELECT status, round, depth_min FROM deposits") == [("pending", 1, DEEP)]


def test_a_top_up_stores_the_depth_that_it_needs(chain: PaperReader) -> None:
    assert addresses.pin_hot("ethereum", "0x" + "a" * 40)
    chain.mine(to("0x" + "a" * 40, depth_min=DEEP))
    poll()
    assert rows("SELECT depth_min FROM treasury_topups") == [(DEEP,)]


def test_the_timeline_shows_the_depth_that_a_deposit_needs(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address, depth_min=DEEP))
    bury(chain, ETHEREUM.confirmations)

    events = timeline.read(CATALOGUE, Shown(invoices.reread(mine.id)))
    details = [event["detail"] for event in events if event["event"] == "confirmation"]
    assert [(each["depth"], each["waiting_for"]) for each in details] == [
        (f"{ETHEREUM.confirmations} of {DEEP}", "confirmations")
    ]
