"""The transactions of a block that concern us, from made-up looks and pages."""

from __future__ import annotations

import base64
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chains.base import Block, ContradictionError
from chains.ton import boc, transactions
from chains.ton.cells import CellError
from chains.ton.credits import charge_units, is_departure
from chains.ton.jettons import JETTONS
from chains.ton.scan.block import (
    CHARGE_UNITS_MAX,
    Read,
    Seen,
    _charges,
    assets_of,
    departed,
    departure_id,
    matched,
)
from tests.chains.ton.reading import CATALOGUE, STRANGER, World, finds, lying
from tests.chains.ton.recorded import TRANSACTIONS
from tests.chains.ton.world import TON, coin

OURS = "0:" + "ab" * 32
BLOCK = Block(height=7, hash="aa", parent_height=6, parent_hash="bb", time=datetime(2026, 11, 28, tzinfo=UTC))


def test_a_look_that_shows_another_account_than_the_cells_is_refused() -> None:
    raw = boc.write(boc.read_base64(TRANSACTIONS["returned"][0]))
    seen = Seen(OURS, "", is_external=False, owners=(), raw=raw)
    with pytest.raises(ContradictionError, match="another account"):
        matched([Read(BLOCK, [seen])], assets_of([]), finds({OURS}))


def test_a_strangers_transaction_is_not_read_for_the_name_of_our_jetton_wallets() -> None:
    """A stranger may write their data anywhere, in a transaction of a form that a later version of the chain adds."""
    unread = b"no cells at all"
    [known] = JETTONS.values()
    assets = assets_of([CATALOGUE.pairs["USDT", "ton"]])
    stranger = Seen(STRANGER, "", is_external=False, owners=(OURS,), raw=unread)
    [scan] = matched([Read(BLOCK, [stranger])], assets, finds({OURS}))
    assert (scan.transfers, scan.charges, scan.sent) == ((), (), ())
    for account in (OURS, known.wallet(OURS)):
        with pytest.raises(CellError):
            matched([Read(BLOCK, [stranger._replace(account=account)])], assets, finds({OURS}))


def test_a_departure_is_looked_for_past_requests_that_cannot_be_read() -> None:
    raw = boc.write(boc.read_base64(TRANSACTIONS["first_request"][0]))
    request = transactions.read(boc.read(raw))
    other = Seen(STRANGER, base64.b64encode(bytes(32)).decode(), is_external=True, owners=(), raw=b"no cells at all")
    own = other._replace(account=request.address, raw=raw)
    txid = departure_id(request)
    assert [departed(seen, txid) for seen in (other, own)] == [None, request]
    named = other._replace(txid=base64.b64encode(bytes.fromhex(txid)).decode())
    with pytest.raises(CellError):
        departed(named, txid)


def test_a_page_without_an_end_is_left_at_once(chain: World) -> None:
    first = chain.pay(coin(OURS, TON))

    def endless(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"incomplete": True, "transactions": []}

    with lying(chain, getBlockTransactionsExt=endless) as liar:
        with pytest.raises(ContradictionError, match="no last page"):
            liar.scan(first)
        assert liar.nodes[0].asked.count("getBlockTransactionsExt") == 1


def test_a_charge_that_no_account_can_owe_is_refused() -> None:
    """No proof shows that a transaction is in its block: a provider may make one of any fees."""
    due = transactions.read(boc.read_base64(TRANSACTIONS["rent_due"][0]))
    most = replace(due, total_fees=due.incoming.units + CHARGE_UNITS_MAX)
    for made, is_refused in ((due, False), (most, False), (replace(most, total_fees=most.total_fees + 1), True)):
        with pytest.raises(ContradictionError, match="charge") if is_refused else nullcontext():
            assert len([*_charges([made], assets_of([]), None)]) == 1


def test_what_a_wallet_returns_is_no_departure() -> None:
    returned = transactions.read(boc.read_base64(TRANSACTIONS["returned"][0]))
    assert returned.outgoing
    assert not is_departure(returned)
    assert charge_units(returned, 0) == -returned.change
    request = transactions.read(boc.read_base64(TRANSACTIONS["first_request"][0]))
    assert (is_departure(request), charge_units(request, 0)) == (True, 0)
