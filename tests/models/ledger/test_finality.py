"""Credits become available at the maturity depth, and only after the chain calls their block final."""

from __future__ import annotations

from uuid import UUID

from models.db.base import execute, rows
from models.deposits import crediting, cursors
from models.ledger.ledger import AVAILABLE, MATURING
from models.ledger.maturity import FINALITY_PATIENCE
from tests.models.builders import Chain, assert_sound
from tests.models.invoices.builders import invoice, paid
from tests.models.ledger.figures import balances_of


def credited(shop: UUID) -> Chain:
    chain = Chain()
    paid(chain, invoice(shop))
    assert MATURING in balances_of(shop)
    return chain


def release(chain: Chain) -> int:
    return crediting.release_matured(chain.network, limit=10)


def test_without_a_finality_tag_depth_alone_decides(shop: UUID) -> None:
    chain = credited(shop)
    chain.mine(chain.network.maturity - chain.network.confirmations - 1)
    assert release(chain) == 0
    chain.mine()

    assert release(chain) == 1
    assert set(balances_of(shop)) == {AVAILABLE}
    assert_sound()


def test_a_deep_credit_waits_until_its_block_is_final(shop: UUID) -> None:
    chain = credited(shop)
    [(height,)] = rows("SELECT block_height FROM deposits")
    cursors.seen_final("ethereum", height - 1)
    chain.mature()
    assert (release(chain), set(balances_of(shop))) == (0, {MATURING})

    cursors.seen_final("ethereum", height)
    assert (release(chain), set(balances_of(shop))) == (1, {AVAILABLE})


def test_a_final_block_still_waits_for_its_depth(shop: UUID) -> None:
    chain = credited(shop)
    cursors.seen_final("ethereum", 10**9)

    assert (release(chain), set(balances_of(shop))) == (0, {MATURING})


def test_a_stopped_finality_tag_delays_credits_for_twice_the_depth_at_most(shop: UUID) -> None:
    chain = credited(shop)
    cursors.seen_final("ethereum", 1)
    stand_still(chain)
    chain.mine(FINALITY_PATIENCE * chain.network.maturity - chain.network.confirmations - 1)
    assert release(chain) == 0
    chain.mine()

    assert release(chain) == 1


def test_a_moving_finality_tag_is_waited_for_during_a_burst_of_blocks(shop: UUID) -> None:
    """A provider whose head jumps can invent blocks, but not time."""
    chain = credited(shop)
    [(height,)] = rows("SELECT block_height FROM deposits")
    cursors.seen_final("ethereum", 1)
    stand_still(chain)
    cursors.seen_final("ethereum", height - 1)
    chain.mine(5 * chain.network.maturity)
    assert (release(chain), set(balances_of(shop))) == (0, {MATURING})

    stand_still(chain)
    assert (release(chain), set(balances_of(shop))) == (1, {AVAILABLE})


def test_an_invented_final_height_does_not_count_beyond_the_scan(shop: UUID) -> None:
    chain = credited(shop)
    cursors.seen_final("ethereum", 10**12)
    assert rows("SELECT final_height FROM chain_cursors") == [(chain.height,)]
    paid(chain, invoice(shop))
    chain.mine(chain.network.maturity - chain.network.confirmations)

    assert release(chain) == 1
    cursors.seen_final("ethereum", None)
    cursors.seen_final("ethereum", 3)
    assert release(chain) == 0


def stand_still(chain: Chain) -> None:
    """Let twice the duration of the maturity depth pass."""
    span_s = FINALITY_PATIENCE * chain.network.maturity * chain.network.block_time_ms // 1000
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (span_s,))
