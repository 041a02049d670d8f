"""`sluice treasury unowned` and `keep`, as an operator types them."""

from __future__ import annotations

import io

import pytest

from models.db import base
from models.ledger.ledger import EQUITY, GATEWAY, UNOWNED, Account
from models.treasury import topups
from models.treasury.rows import Topup
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.models.builders import Chain, assert_sound
from tests.models.ledger.figures import nets_of
from tests.models.treasury.builders import ETHER, HOT, pin_hot, topup

ACCOUNTS = (Account(GATEWAY, EQUITY, "ETH"), Account(GATEWAY, UNOWNED, "ETH"))


@pytest.fixture
def came(sluice: CommandLine, database: str, chain: Chain) -> Topup:
    """Return a top-up of two ETH to an address without an owner, deep enough."""
    sluice.env["DATABASE_URL"] = database
    sluice.env["ETHEREUM_RPC_URLS"] = "http://127.0.0.1:1"
    pin_hot()
    made = topup(chain, 2 * ETHER, origin="unowned")
    chain.mature()
    topups.book_matured(chain.network, limit=9)
    return made


def test_it_is_listed_until_it_is_kept_and_kept_once(
    came: Topup, sluice: CommandLine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [listed] = sluice("treasury", "unowned", "--network", "ethereum", "--json").json["unowned"]
    line = sluice("treasury", "unowned").out
    status = sluice("treasury", "status", "--network", "ethereum").out
    base.connect(database)
    assert nets_of(*ACCOUNTS) == [0, 2 * ETHER]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    kept = sluice("treasury", "keep", "ethereum", came.txid.upper().replace("0X", "0x"))
    again = sluice("treasury", "keep", "ethereum", came.txid, "--yes")

    assert (listed["address"], listed["amount"], listed["status"]) == (HOT, "2", "booked")
    assert f"{HOT}: 2 ETH by {came.txid}" in line
    assert "2 ETH at addresses of nobody" in status
    assert (kept.code, kept.out.strip()) == (0, "2 ETH on ethereum is the gateway's own")
    assert (again.code, "no payment of" in again.err) == (1, True)
    assert "nothing came" in sluice("treasury", "unowned").out
    base.connect(database)
    assert nets_of(*ACCOUNTS) == [2 * ETHER, 0]
    assert acted() == [("coin.kept", f"ethereum {came.txid}")]
    assert_sound()


def test_an_unbooked_or_unnamed_topup_is_not_kept(
    came: Topup, sluice: CommandLine, database: str, chain: Chain
) -> None:
    base.connect(database)
    base.execute("UPDATE treasury_topups SET ordinal = '0'")
    young = topup(chain, ETHER, origin="unowned")
    base.execute("UPDATE treasury_topups SET txid = %s, ordinal = '1' WHERE id = %s", (came.txid, young.id))
    command = ("treasury", "keep", "ethereum", came.txid, "--yes")

    assert "made 2 transfers: say which with --output: 0, 1" in sluice(*command).err
    assert "no payment of" in sluice(*command, "--output", "2").err
    assert "not booked yet" in sluice(*command, "--output", "1").err
    base.connect(database)
    assert nets_of(*ACCOUNTS) == [0, 2 * ETHER]


def test_a_reorg_takes_what_was_kept_from_the_gateways_own(
    came: Topup, sluice: CommandLine, database: str, chain: Chain
) -> None:
    assert sluice("treasury", "keep", "ethereum", came.txid, "--yes").code == 0
    base.connect(database)
    base.execute("UPDATE chain_cursors SET height = %s", (came.block_height - 1,))
    topups.reverse_orphans(chain.network.code)
    assert nets_of(*ACCOUNTS) == [0, 0]
    assert_sound()
