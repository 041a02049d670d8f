"""Coins that come to a pool address without an owner, on networks of coins."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, cast

import pytest
import structlog

from actors.scan import witnesses
from actors.scan.reading import Matching
from actors.scan.rescan import reread
from actors.scan.rewind import rewind
from chains.base import Transfer
from chains.family import Reader
from core.catalogue import families
from models.db.base import execute, rows, transaction
from models.invariants import deposits
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, UNOWNED, Account
from models.payouts import conversion
from models.spends import coins
from models.treasury import addresses, liquidity, topups, unowned
from tests.actors.scan import paper
from tests.actors.scan.paper import CTX, begin, poll
from tests.models.builders import CATALOGUE, SENDER, assert_sound
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import nets_of
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
HOT: Final = "0x" + "aa" * 20
FREE: Final = "0x" + "bb" * 20
UNITS: Final = 10_000_000
OWNED: Final = Account(GATEWAY, EQUITY, "ETH")
NOBODYS: Final = Account(GATEWAY, UNOWNED, "ETH")
HELD: Final = Account(GATEWAY, CUSTODY, "ETH", "ethereum")


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """Two providers of a chain of coins, and a pool address without an owner."""
    del database
    other = replace(families.TRAITS["evm"], claim=cast("Any", "coins"), has_sender=False)
    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": other}))
    addresses.pin_hot("ethereum", HOT)
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 900000007, %s)", (FREE,))
    made = begin(monkeypatch)
    made.mine()
    poll()
    made.providers = 2
    return made


def to(address: str, **more: Any) -> Transfer:
    return replace(paper.to(address, **more), currency="ETH")


def mature(chain: PaperReader) -> None:
    """Bury the newest block, and read all a second time."""
    chain.mine(count=ETHEREUM.maturity)
    poll(ETHEREUM.maturity + 1)
    for height in range(2, chain.tip + 1):
        reread(CTX, ETHEREUM, cast("Reader", chain), height)
    execute("UPDATE chain_cursors SET reread_height = height")
    poll()


def witness() -> None:
    execute("UPDATE treasury_topups SET next_attempt_at = app_now()")
    witnesses.seek_second_opinions("ethereum")


def statuses() -> list[tuple[str, str, str]]:
    return rows("SELECT txid, status, origin FROM treasury_topups ORDER BY txid")


def free_units() -> int:
    free = coins.free("ethereum", ETHEREUM.family, "ETH", limit=9, depth=ETHEREUM.maturity)
    return sum(coin.units for coin in free)


def test_a_key_is_ours_with_or_without_an_owner(chain: PaperReader) -> None:
    del chain
    assert set(Matching(ETHEREUM).keys({FREE, HOT, SENDER})) == {FREE, HOT}


def test_a_payment_to_an_unowned_address_is_booked_once_two_providers_agree(chain: PaperReader) -> None:
    chain.mine(to(FREE), to(HOT, txid="0xtop"))
    mature(chain)
    assert rows("SELECT DISTINCT doubted_for FROM treasury_topups") == [("unpriced",)]
    assert ([status for _, status, _ in statuses()], free_units()) == (["pending", "pending"], 0)

    witness()
    poll()

    assert rows("SELECT address, problem FROM treasury_topups ORDER BY txid") == [(FREE, ""), (HOT, "")]
    assert ([status for _, status, _ in statuses()], free_units()) == (["booked", "booked"], 2 * UNITS)
    assert_sound()


def test_an_invented_payment_to_an_unowned_address_is_neither_booked_nor_spent(chain: PaperReader) -> None:
    chain.invented = ("0xaa",)
    chain.mine(to(FREE))
    mature(chain)
    witness()
    poll()

    assert ([status for _, status, _ in statuses()], free_units()) == (["pending"], 0)
    assert nets_of(OWNED, NOBODYS, HELD) == [0, 0, 0]


def test_an_unowned_coin_is_logged_once_held_and_never_sold(chain: PaperReader) -> None:
    chain.providers = 1
    with structlog.testing.capture_logs() as logs:
        chain.mine(to(FREE), to(HOT, txid="0xtop"))
        mature(chain)

    assert [line for line in logs if line["event"] == "deposit.unowned"] == [
        {
            "event": "deposit.unowned", "log_level": "error", "network": "ethereum", "txid": "0xaa", "ordinal": "0",
            "address": FREE, "currency": "ETH", "amount": "0.00000000001",
        }
    ]  # fmt: skip
    assert statuses() == [("0xaa", "booked", "unowned"), ("0xtop", "booked", "transfer")]
    # It is in custody, as on the chain, and conversions sell only the other one.
    assert nets_of(OWNED, NOBODYS, HELD) == [UNITS, UNITS, -2 * UNITS]
    assert conversion.owned_units("ETH") == UNITS
    assert liquidity.owed() == {"ETH": UNITS}
    assert_sound()


def test_a_reorg_reverses_an_unowned_coin(chain: PaperReader) -> None:
    chain.providers = 1
    chain.mine(to(FREE))
    mature(chain)
    chain.reorg(1)
    chain.mine(count=ETHEREUM.maturity + 3)
    poll(ETHEREUM.maturity + 5)

    assert statuses() == [("0xaa", "reversed", "unowned")]
    assert nets_of(OWNED, NOBODYS, HELD) == [0, 0, 0]
    assert_sound()


def test_an_address_with_a_missing_owner_counts_as_unowned(chain: PaperReader) -> None:
    chain.providers = 1
    execute(
        "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)"
        " VALUES ('evm', 900000007, 'invoice', gen_random_uuid())"
    )
    chain.mine(to(FREE))
    poll()
    assert statuses() == [("0xaa", "pending", "unowned")]


def forgotten(chain: PaperReader) -> InvoiceRow:
    """Return an invoice paid in a deep block while its address had no owner in the database."""
    chain.providers = 1
    made = invoice()
    execute("DELETE FROM address_owners WHERE owner_id = %s", (made.id,))
    chain.mine(to(made.address))
    mature(chain)
    return made


def remember(made: InvoiceRow) -> None:
    execute(
        "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id) VALUES ('evm', %s, 'invoice', %s)",
        (made.address_ordinal, made.id),
    )


def read_again(chain: PaperReader) -> list[Any]:
    """Read the paying block again; return the log's changes of owners."""
    with structlog.testing.capture_logs() as logs:
        for height in range(2, chain.tip + 1):
            reread(CTX, ETHEREUM, cast("Reader", chain), height)
    return [(line["txid"], line["owner_id"]) for line in logs if line["event"] == "deposit.owner_changed"]


def deposited() -> list[Any]:
    return rows("SELECT txid, status, owner_id FROM deposits WHERE status <> 'reversed'")


def test_a_coin_whose_owner_is_found_later_is_booked_once(chain: PaperReader) -> None:
    made = forgotten(chain)
    assert statuses() == [("0xaa", "booked", "unowned")]
    remember(made)

    assert read_again(chain) == [("0xaa", str(made.id))]
    assert (statuses()[0][1], deposited()[0][2], nets_of(OWNED, NOBODYS)) == ("reversed", made.id, [0, 0])
    assert read_again(chain) == []
    assert_sound()


def test_an_unbooked_coin_changes_its_owner_too(chain: PaperReader) -> None:
    made = forgotten(chain)
    execute("UPDATE treasury_topups SET doubted_for = NULL")
    chain.mine(to(made.address, txid="0xbb"))
    poll()
    remember(made)

    assert sorted(read_again(chain)) == [("0xaa", str(made.id)), ("0xbb", str(made.id))]
    assert [status for _, status, _ in statuses()] == ["reversed", "reversed"]
    assert_sound()


def test_a_coin_kept_by_an_operator_stays_the_gateways(chain: PaperReader) -> None:
    made = forgotten(chain)
    assert unowned.keep(unowned.listing(limit=1)[0])
    remember(made)

    assert (read_again(chain), deposited(), statuses()) == ([], [], [("0xaa", "booked", "adopted")])
    assert_sound()


def read_anew(chain: PaperReader, above: int) -> list[Any]:
    """Move the scan back and let it read on; return the coins that it logged as unowned."""
    with structlog.testing.capture_logs() as logs:
        rewind(CTX, ETHEREUM, cast("Reader", chain), above, is_forced=True)
        assert {status for _, status, _ in statuses()} == {"reversed"}
        poll(2 * ETHEREUM.maturity)
    return [line for line in logs if line["event"] == "deposit.unowned"]


@pytest.mark.parametrize("is_remembered", [True, False])
def test_a_coin_kept_by_an_operator_stays_kept_after_a_rewind(chain: PaperReader, *, is_remembered: bool) -> None:
    made = forgotten(chain)
    (listed,) = unowned.listing(limit=1)
    assert unowned.keep(listed)
    if is_remembered:
        remember(made)

    assert read_anew(chain, listed.block_height - 1) == []
    assert (deposited(), statuses()) == ([], [("0xaa", "booked", "adopted")])
    assert nets_of(OWNED, NOBODYS) == [UNITS, 0]
    if not is_remembered:
        remember(made)
    assert_sound()


def test_a_stalled_rewind_keeps_coins_that_the_scan_has_read_again(chain: PaperReader) -> None:
    """The worker reverses the operator's list and reads on before the operator's process begins with it."""
    made = forgotten(chain)
    (listed,) = unowned.listing(limit=1)
    with pytest.MonkeyPatch.context() as patch:

        def stalled(step: Any, *args: Any) -> Any:
            patch.undo()
            poll(2 * ETHEREUM.maturity)
            return step(*args)

        patch.setattr(topups, "repeat_on_deadlock", stalled)
        rewind(CTX, ETHEREUM, cast("Reader", chain), listed.block_height - 1, is_forced=True)
    assert statuses() == [("0xaa", "booked", "unowned")]
    remember(made)


def test_a_return_from_the_cold_address_stays_one_after_a_rewind(chain: PaperReader) -> None:
    chain.providers = 1
    chain.mine(to(HOT, txid="0xtop"))
    mature(chain)
    (booked,) = topups.find("ethereum", "0xtop")
    assert topups.take_as_returned(booked) == 0

    read_anew(chain, booked.block_height - 1)
    assert statuses() == [("0xtop", "booked", "cold")]
    assert_sound()


def test_a_deposit_with_a_missing_owner_becomes_no_top_up(chain: PaperReader) -> None:
    made = forgotten(chain)
    remember(made)
    read_again(chain)
    execute("DELETE FROM address_owners WHERE owner_id = %s", (made.id,))

    read_again(chain)
    assert (statuses(), [owner for _, _, owner in deposited()]) == (
        [("0xaa", "reversed", "unowned")],
        [made.id],
    )
    remember(made)
    assert_sound()


def test_the_audit_finds_a_coin_that_is_booked_twice(chain: PaperReader, monkeypatch: pytest.MonkeyPatch) -> None:
    made = forgotten(chain)
    remember(made)
    with monkeypatch.context() as blind:
        blind.setattr(topups, "lock_coin", lambda *_: None)
        assert read_again(chain) == []

    assert "coins_are_booked_once" in {each.name for each in deposits.check()}
    for topup in topups.Topup.read("true"):
        with transaction():
            topups.reverse(topup)
    assert_sound()
