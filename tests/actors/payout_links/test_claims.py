"""Claims a cheque: one payout to one address, however often repeated, refused or interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from core.errors import (
    ComplianceAddressBlocked,
    DomainError,
    PayoutAmountBelowFee,
    PayoutFrozen,
    PayoutlinkBadAddress,
    PayoutlinkCancelled,
    PayoutlinkClaimInProgress,
    PayoutlinkDestinationInternal,
    PayoutlinkExpired,
    PayoutlinkNotFound,
    PayoutMemoUnsupported,
)
from models.db.base import execute, rows, transaction, value
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payouts import freezes
from models.payouts import rows as payouts
from models.queue.calls import AbandonedError, ReplayedError
from models.spends import unexplained
from tests.actors.payout_links.world import ANN, BOB, cancel, claim, configure, create, give_up, info
from tests.models.builders import USDT, endpoint
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import address
from tests.models.ledger.figures import balances_of
from tests.models.payout_links.builders import advance
from tests.models.payouts.builders import FEE, charge, fund, trade
from tests.models.spends.departures import LESS, OUT_OF_BLOCKS, a_departure

CONTRACT = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
TREASURY = "0x" + "7e" * 20


@pytest.fixture
def link(shop: UUID) -> dict[str, Any]:
    return create(shop)


def status(link: dict[str, Any]) -> str:
    return payout_links.reread(UUID(link["link_id"])).status


def count(table: str) -> int:
    return value(f"SELECT count(*) FROM {table}")


def test_a_claim_creates_the_payout_and_notifies_the_signer(shop: UUID, link: dict[str, Any], rung: list[str]) -> None:
    endpoint(shop)
    answer = claim(link["claim_token"])

    payout = payouts.find_by_order(shop, f"payoutlink:{link['link_id']}")
    assert payout is not None
    assert answer == {"status": "claimed", "payout_id": str(payout.id)}
    assert (payout.address, payout.to_units, payout.status) == (ANN.lower(), 25 * USDT, "approved")
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]
    assert balances_of(shop)["payout_held"] == 25 * USDT + FEE


def test_the_same_address_in_any_spelling_returns_the_same_payout(link: dict[str, Any]) -> None:
    first = claim(link["claim_token"])

    assert claim(link["claim_token"], ANN.lower()) == first
    with pytest.raises(PayoutlinkClaimInProgress):
        claim(link["claim_token"], BOB)
    assert count("payouts") == 1


def test_a_repeated_claim_returns_its_payout_even_if_new_claims_are_refused(
    shop: UUID, link: dict[str, Any], database: str, tmp_path: Path
) -> None:
    first = claim(link["claim_token"])
    (tmp_path / "denied").write_text(ANN, encoding="utf-8")
    configure(database, DENY_LIST=str(tmp_path / "denied"))
    freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")
    advance(2)

    assert claim(link["claim_token"]) == first


def test_a_redelivered_claim_gets_its_response(link: dict[str, Any]) -> None:
    call = info(None)
    claim(link["claim_token"], call=call)

    with pytest.raises(ReplayedError):
        claim(link["claim_token"], call=call)
    assert count("payouts") == 1


@pytest.mark.parametrize(
    ("to", "error"),
    [
        ("0x1", PayoutlinkBadAddress),
        ("0x52908400098527886e0F7030069857D2E4169EE7", PayoutlinkBadAddress),
        ("0x" + "0" * 40, PayoutlinkBadAddress),
        ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", PayoutlinkBadAddress),
        (CONTRACT, PayoutlinkBadAddress),
        (TREASURY, PayoutlinkDestinationInternal),
    ],
)
def test_an_impossible_destination_leaves_the_link_funded(
    link: dict[str, Any], to: str, error: type[DomainError]
) -> None:
    execute("INSERT INTO treasury_addresses (network, role, address) VALUES ('ethereum', 'hot', %s)", (TREASURY,))

    with pytest.raises(error):
        claim(link["claim_token"], to)
    assert status(link) == "funded"
    assert claim(link["claim_token"])["status"] == "claimed"


def test_our_own_deposit_address_is_refused(link: dict[str, Any]) -> None:
    _, pooled = address()

    with pytest.raises(PayoutlinkDestinationInternal):
        claim(link["claim_token"], pooled)
    assert status(link) == "funded"


def test_a_denied_address_leaves_the_link_funded(link: dict[str, Any], database: str, tmp_path: Path) -> None:
    (tmp_path / "denied").write_text(BOB, encoding="utf-8")
    configure(database, DENY_LIST=str(tmp_path / "denied"))

    with pytest.raises(ComplianceAddressBlocked):
        claim(link["claim_token"], BOB)
    assert status(link) == "funded"
    assert claim(link["claim_token"])["status"] == "claimed"


def test_a_dust_amount_for_bitcoin_leaves_the_link_funded(shop: UUID, database: str) -> None:
    configure(database, BITCOIN_RPC_URLS="http://127.0.0.1:1")
    charge("BTC", "bitcoin", 400)
    trade(BTC="50000")
    fund(shop, 1_000, currency="BTC")
    small = create(shop, currency="BTC", network="bitcoin", amount="0.000005")

    with pytest.raises(PayoutAmountBelowFee):
        claim(small["claim_token"], "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn")
    assert status(small) == "funded"
    assert claim(small["claim_token"], "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080")["status"] == "claimed"


def test_a_memo_is_refused_on_a_network_without_memos(link: dict[str, Any]) -> None:
    with pytest.raises(PayoutMemoUnsupported):
        claim(link["claim_token"], memo="hello")
    assert status(link) == "funded"


def test_an_unknown_token_is_not_found() -> None:
    with pytest.raises(PayoutlinkNotFound):
        claim("A" * 43)


def test_a_frozen_link_stays_funded_and_can_be_claimed_after_the_freeze(shop: UUID, link: dict[str, Any]) -> None:
    freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")
    advance(5)

    with pytest.raises(PayoutFrozen):
        claim(link["claim_token"])
    assert status(link) == "funded"
    freezes.unfreeze("merchant", str(shop))

    assert claim(link["claim_token"])["status"] == "claimed"


def test_a_claim_waits_for_an_unexplained_departure_of_its_sum(shop: UUID, link: dict[str, Any]) -> None:
    """A reorg took it out of its block, so that it stops no signing; but it may have paid this cheque."""
    new = a_departure(currency="USDT", contract="0xtoken", decimals=6, token_units=25 * 10**6, slot=None)
    with transaction():
        unexplained.note(new)
    execute(OUT_OF_BLOCKS)
    execute("DELETE FROM signing_stops")
    execute("DELETE FROM payout_freezes")
    with pytest.raises(PayoutFrozen):
        claim(link["claim_token"])
    execute(LESS)
    claim(link["claim_token"])
    assert rows("SELECT status FROM payouts WHERE merchant_id = %s", (shop,)) == [("approved",)]


def test_an_expired_or_cancelled_link_is_gone(shop: UUID, link: dict[str, Any]) -> None:
    other = create(shop)
    cancel(shop, other["link_id"])
    with pytest.raises(PayoutlinkCancelled):
        claim(other["claim_token"])

    advance(1.01)

    with pytest.raises(PayoutlinkExpired):
        claim(link["claim_token"])
    assert status(link) == "funded"


def test_an_interrupted_claim_continues_only_with_its_own_address(
    link: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("the power fails")

    with monkeypatch.context() as patched:
        patched.setattr(payout_link_claims, "finish", fails)
        with pytest.raises(ZeroDivisionError):
            claim(link["claim_token"])
    assert status(link) == "claiming"
    execute("INSERT INTO signing_stops (network, reason, sender) VALUES ('ethereum', 'restored', '')")
    with pytest.raises(PayoutFrozen):
        claim(link["claim_token"])
    assert status(link) == "claiming"
    execute("DELETE FROM signing_stops")

    with pytest.raises(PayoutlinkClaimInProgress):
        claim(link["claim_token"], BOB)
    assert claim(link["claim_token"])["status"] == "claimed"


def test_an_abandoned_claim_does_not_begin(link: dict[str, Any]) -> None:
    call = info(None)
    give_up(call)

    with pytest.raises(AbandonedError):
        claim(link["claim_token"], call=call)
    assert status(link) == "funded"


def test_thirty_concurrent_claims_make_one_payout_to_one_address(shop: UUID, link: dict[str, Any]) -> None:
    answers = at_once(30, lambda number: claim(link["claim_token"], (ANN, BOB)[number % 2]))

    won = [answer for answer in answers if isinstance(answer, dict)]
    assert len({answer["payout_id"] for answer in won}) == 1
    assert {type(answer) for answer in answers} <= {dict, PayoutlinkClaimInProgress}
    assert count("payouts") == 1
    assert balances_of(shop)["payout_held"] == 25 * USDT + FEE
