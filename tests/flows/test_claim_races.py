"""Cheques under fire: two claims, a cancel, the expiry and the reaper at once, each cheque with one outcome."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from actors.payout_links.calls import cancel_payout_link
from actors.payout_links.claims import claim_payout_link
from actors.payout_links.ticks import expire_payout_links, reap_claims
from actors.queue import call_actors
from actors.queue.messages import Answer
from core.payout_links.schemas import Claim
from models.db import base
from models.db.base import execute, one, rows
from models.ledger.ledger import holdings
from models.payout_links import claims as payout_link_claims
from models.payout_links.rows import PayoutLinkRow
from tests.actors.asking import performer
from tests.actors.payout_links.world import ANN, BOB, configure
from tests.models.builders import USDT, assert_sound
from tests.models.payout_links.builders import funded, rich_merchant
from tests.models.queue.builders import info

FUNDS: Final = 20_000 * USDT
ENDS: Final = {"claimed", "cancelled", "expired"}
REFUSALS: Final = {
    "payoutlink.claim_in_progress", "payoutlink.cancelled", "payoutlink.expired", "payoutlink.not_cancellable",
}  # fmt: skip


@pytest.fixture
def shop(database: str, monkeypatch: pytest.MonkeyPatch) -> UUID:
    configure(database)
    # Every claim that is under way counts as stuck.
    monkeypatch.setattr(payout_link_claims, "STUCK_AFTER_S", 0)
    return rich_merchant(FUNDS)


def claim(link: PayoutLinkRow, address: str) -> Answer:
    message = Claim(token_hash=bytes(link.token_hash).hex(), address=address)
    return call_actors._outcome(performer(claim_payout_link), info(None), msgspec.json.encode(message))


def cancel(link: PayoutLinkRow) -> Answer:
    body = msgspec.json.encode({"link_id": str(link.id)})
    return call_actors._outcome(performer(cancel_payout_link), info(link.merchant_id), body)


# Each takes a cheque; its answer, if there is one, is judged.
RACERS: Final[tuple[Callable[[PayoutLinkRow], Answer | None], ...]] = (
    lambda link: claim(link, ANN),
    lambda link: claim(link, BOB),
    cancel,
    lambda _: expire_payout_links(),
    lambda _: reap_claims(),
)


def race(shop: UUID, rounds: int, seed: int) -> Counter[str]:
    """Let all of them go for one cheque after the other; return how often each outcome was."""
    chance, barrier, outcomes = random.Random(seed), threading.Barrier(len(RACERS)), Counter[str]()  # noqa: S311
    cheques = [funded(shop, amount_units=USDT // 2, fee_units=USDT // 2) for _ in range(rounds)]
    execute("UPDATE payout_links SET expires_at = app_now() + interval '1 day'")
    # For some the time is over as the race begins, for others it never is.
    short = [chance.random() < 0.5 for _ in cheques]

    def run(number: int) -> list[Answer | None]:
        collected = []
        try:
            one("SELECT 1")  # connected before the start, so that they really collide
            for link, is_short in zip(cheques, short, strict=True):
                if number == 0 and is_short:
                    execute(
                        "UPDATE payout_links SET expires_at = app_now() + interval '2 ms' WHERE id = %s", (link.id,)
                    )
                barrier.wait(timeout=60)
                collected.append(RACERS[number](link))
        finally:
            base.close()
        return collected

    with ThreadPoolExecutor(len(RACERS)) as pool:
        answers = list(pool.map(run, range(len(RACERS))))
    reap_claims()
    for place, link in enumerate(cheques):
        outcomes[judge(link, [collected[place] for collected in answers])] += 1
    return outcomes


def judge(link: PayoutLinkRow, answers: list[Answer | None]) -> str:
    """Check each caller's answer against the cheque's final state, and return that state."""
    ((status, address, payout_id),) = rows(
        "SELECT status, claim_address, payout_id FROM payout_links WHERE id = %s", (link.id,)
    )
    by_ann, by_bob, cancelled, *_ = answers
    assert by_ann is not None
    assert by_bob is not None
    assert cancelled is not None
    for answer, named in ((by_ann, ANN), (by_bob, BOB)):
        if answer.kind == "done":
            assert (status, address) == ("claimed", named.lower())
            assert msgspec.json.decode(answer.body) == {"status": "claimed", "payout_id": str(payout_id)}
    if cancelled.kind == "done":
        assert msgspec.json.decode(cancelled.body)["status"] == status
    refused: list[Any] = [answer for answer in (by_ann, by_bob, cancelled) if answer.kind != "done"]
    assert {(answer.kind, answer.code in REFUSALS) for answer in refused} <= {("error", True)}, refused
    assert status in ENDS | {"funded"}
    return str(status)


def assert_conserved(shop: UUID, outcomes: Counter[str]) -> None:
    claimed = (outcomes["claimed"] + outcomes["funded"]) * USDT
    by_kind = {kind: units for kind, units in holdings(shop)["USDT"].items() if units}
    assert by_kind == {"available": FUNDS - claimed} | ({"payout_held": claimed} if claimed else {})
    assert one("SELECT count(*) FROM payouts") == (outcomes["claimed"],)
    assert_sound()


def test_three_hundred_cheques_have_one_outcome_each(shop: UUID) -> None:
    outcomes = race(shop, 300, seed=7)

    assert_conserved(shop, outcomes)
    assert outcomes["claimed"] > 0
    assert outcomes["cancelled"] > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_thousand_cheques_have_one_outcome_each(shop: UUID) -> None:
    outcomes = race(shop, 10_000, seed=11)

    assert_conserved(shop, outcomes)
    assert outcomes.keys() >= ENDS
