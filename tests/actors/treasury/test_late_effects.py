"""Where a spend's effects come in several blocks, a comparison allows for a part of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, cast

import pytest

from actors.treasury import comparison
from actors.treasury.sweep import _Keeper
from chains.spending import Case, Fate, FateKind, Movement, OutputFate
from core.catalogue import families
from models.db.base import execute
from models.treasury import addresses, cold_books, reconciliation
from models.treasury.snapshots import Balances, Holding
from tests.actors.scan.paper import CTX
from tests.models.builders import CATALOGUE, Chain, merchant
from tests.models.invoices.builders import invoice
from tests.models.treasury.builders import HOT, pin_hot, spend, topup

NETWORK: Final = CATALOGUE.networks["ethereum"]
STRANGER: Final = "0x" + "66" * 20


class Later:
    """A spender by whose nodes every spend ended in a block above the books'."""

    def fate(self, case: Case) -> Fate:
        outputs = tuple(OutputFate(effect="exact") for _ in case.intent.outputs)
        return Fate(kind=FateKind.INCLUDED, txid=case.txids[0], height=10**6, block_hash="0x", outputs=outputs)


@pytest.fixture(params=[True, False], ids=["late", "at once"])
def is_late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the family has late effects."""
    made: bool = request.param
    traits = replace(families.TRAITS["evm"], has_late_effects=made)
    monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": traits}))
    monkeypatch.setattr(comparison.registry, "spender", lambda *_: Later())
    return made


def details(place: str, address: str, units: int) -> list[str]:
    """Compare one balance of coin with the books; return what is wrong."""
    books = reconciliation.read_books("ethereum")
    assert books is not None
    holding = Holding(place=cast("Any", place), currency="ETH", address=address, units=units)
    balances = Balances(height=books.cursor.height, block_hash=books.cursor.hash, witnesses=1, holdings=(holding,))
    findings = comparison.compared(CTX, NETWORK, books, balances)
    assert findings is not None
    return [each.detail for each in findings if each.detail]


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_hot_wallet_may_show_a_part_of_a_spend_that_ended_later(
    chain: Chain, *, is_noted: bool, is_late: bool
) -> None:
    pin_hot()
    topup(chain, 1_000)
    ended = (chain.height + 1, "0xlater") if is_noted else None
    spend(recipient=STRANGER, token_units=30, mined=ended)
    assert details("hot", HOT, 1_000) == []
    assert (details("hot", HOT, 970) == []) is is_late
    assert details("hot", HOT, 969) != [], "more is missing than it can have taken"


def test_a_deposit_address_is_not_judged_while_a_spend_ends_later(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    owner = invoice(merchant(), pay_currency="ETH", payer_units=1_000)
    chain.mine(1, chain.transfer(owner, 1_000, currency="ETH"))
    execute("UPDATE deposits SET status = 'confirmed'")
    address = owner.address.lower()
    spend(purpose="sweep", sender=address, recipient=HOT, token_units=400, mined=(chain.height + 1, "0xlater"))
    # An unsettled one above the scan keeps each address waiting.
    assert details("deposits", address, 600) == []
    execute("UPDATE spends SET settled_at = app_now()")
    assert (details("deposits", address, 600) == []) is is_late
    assert addresses.moves_after("ethereum", address, chain.height)
    assert not addresses.moves_after("ethereum", address, chain.height + 1)
    keeper = _Keeper(CTX, NETWORK, cast("Any", None), cast("Any", reconciliation.read_books("ethereum")).cursor,
                     cast("Any", None), None)  # fmt: skip
    assert keeper._is_in_motion(address) is is_late


def undelivered(chain: Chain, **columns: Any) -> None:
    """Write a spend in the newest block whose only output is still on its way."""
    place = (chain.height, chain._hash())
    spend_id = spend(
        mined=place, effect=None, is_success=None, left_units=30, arrived_units=0, token_units=30, **columns
    )
    # The builder's movements have it arrive.
    execute("DELETE FROM spend_movements WHERE spend_id = %s AND units > 0", (spend_id,))


def test_an_output_on_its_way_may_have_come_back_to_the_hot_wallet(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    topup(chain, 1_000)
    undelivered(chain, recipient=STRANGER)
    assert details("hot", HOT, 970) == []
    assert (details("hot", HOT, 1_000) == []) is is_late
    assert details("hot", HOT, 1_001) != [], "more is there than can have come back"
    assert details("hot", HOT, 969) != [], "it has left already"


def test_a_sweep_on_its_way_may_have_reached_the_hot_wallet(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    topup(chain, 1_000)
    undelivered(chain, purpose="sweep", sender=STRANGER, recipient=HOT)
    assert details("hot", HOT, 1_000) == []
    assert (details("hot", HOT, 1_030) == []) is is_late
    assert details("hot", HOT, 1_031) != []


def test_coin_that_went_along_with_tokens_may_have_come_back(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    topup(chain, 1_000)
    undelivered(chain, recipient=STRANGER, currency="USDT", ceiling_units=7)
    assert details("hot", HOT, 1_000) == []
    assert (details("hot", HOT, 1_007) == []) is is_late
    assert details("hot", HOT, 1_008) != []


def test_an_address_is_in_motion_until_the_last_output_has_ended(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    undelivered(chain, recipient=STRANGER)
    assert addresses.is_in_motion("ethereum", [STRANGER])
    assert is_late in {True, False}
    execute("UPDATE spends SET effect = 'exact'")
    assert not addresses.is_in_motion("ethereum", [STRANGER])


def test_a_spend_in_no_row_s_block_may_have_come_back_too(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    """Its row names no block yet, and nodes show its transaction in one, and not its end."""
    pin_hot()
    topup(chain, 1_000)
    spend(recipient=STRANGER, token_units=30)

    class OnItsWay:
        def fate(self, case: Case) -> Fate:
            return Fate(
                kind=FateKind.INCLUDED, txid=case.txids[0], height=chain.height, block_hash=chain._hash(),
                outputs=(OutputFate(effect=None),), movements=(Movement(address=HOT, currency="ETH", units=-30),),
            )  # fmt: skip

    monkeypatch.setattr(comparison.registry, "spender", lambda *_: OnItsWay())
    assert (details("hot", HOT, 970), is_late in {True, False}) == ([], True)
    assert details("hot", HOT, 1_000) == [], "it may be back"
    assert details("hot", HOT, 1_001) != []
    assert details("hot", HOT, 969) != []


def test_the_cold_address_is_open_until_its_coin_has_arrived(chain: Chain, *, is_late: bool) -> None:
    pin_hot()
    undelivered(chain, purpose="cold", recipient=STRANGER)
    assert cold_books.is_open("ethereum", "ETH")
    execute("UPDATE spends SET effect = 'exact'")
    assert (cold_books.is_open("ethereum", "ETH"), is_late in {True, False}) == (False, True)
