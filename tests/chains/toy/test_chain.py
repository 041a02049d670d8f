"""The toy chain enforces its rules itself: it refuses a gateway's mistakes, as a real chain would."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.chains.toy.chain import NATIVE, WINDOW, Claim, RefusedError, ToyChain, Tx, address_of

FEE = 1_000
CLAIMS: tuple[Claim, ...] = ("counter", "coins", "window")


class Key:
    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public = self._key.public_key().public_bytes_raw()
        self.address = address_of(self.public)

    def signed(self, tx: Tx) -> Tx:
        return replace(tx, signatures=((self.public.hex(), self._key.sign(tx.body()).hex()),))


def rich(claim: Claim, **more: int) -> tuple[ToyChain, Key]:
    chain, key = ToyChain(claim=claim, **more), Key()
    for _ in range(2):
        chain.faucet(key.address, 10_000)
    chain.mine()
    return chain, key


def paid(chain: ToyChain, key: Key, to: str = "toyshop", units: int = 5_000, *, fee: int = FEE, nth: int = 0) -> Tx:
    """Return a signed payment of the claim that comes nth."""
    if chain.claim == "coins":
        coin = sorted(c for c, (owner, _, _) in chain.state.coins.items() if owner == key.address)[nth]
        change = chain.state.coins[coin][1] - units - fee
        return key.signed(Tx("", ((to, NATIVE, units), (key.address, NATIVE, change)), fee, coins=(coin,)))
    if chain.claim == "counter":
        counter = chain.state.counters.get(key.address, 0) + nth
        return key.signed(Tx(key.address, ((to, NATIVE, units),), fee, counter=counter))
    return key.signed(Tx(key.address, ((to, NATIVE, units),), fee + nth, reference=chain.head.height))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_payment_is_included_once_however_often_it_is_sent(claim: Claim) -> None:
    chain, key = rich(claim)
    tx = paid(chain, key)
    assert chain.send(tx.raw) == chain.send(tx.raw) == tx.txid
    chain.mine(2)

    assert (chain.units_at("toyshop"), chain.units_at(key.address)) == (5_000, 14_000)
    with pytest.raises(RefusedError, match="included"):
        chain.send(tx.raw)


@pytest.mark.parametrize("claim", ["counter", "coins"])
def test_of_two_with_one_claim_the_dearer_waits_and_one_is_included(claim: Claim) -> None:
    chain, key = rich(claim)
    cheap, dear = paid(chain, key), paid(chain, key, fee=2 * FEE)
    chain.send(cheap.raw)
    chain.send(dear.raw)
    with pytest.raises(RefusedError, match="underpriced"):
        chain.send(cheap.raw)
    chain.mine()

    assert chain.head.txs == (dear,)
    with pytest.raises(RefusedError, match=r"counter used|coin spent"):
        chain.send(cheap.raw)


def test_a_number_that_comes_too_early_waits_for_those_before() -> None:
    chain, key = rich("counter")
    chain.send(paid(chain, key, nth=1).raw)
    chain.mine()
    assert chain.head.txs == ()

    chain.send(paid(chain, key).raw)
    chain.mine()
    assert len(chain.head.txs) == 2


def test_a_window_ends_and_what_waited_is_never_included() -> None:
    chain, key = rich("window")
    tx = paid(chain, key)
    chain.mine(WINDOW)
    with pytest.raises(RefusedError, match="expired"):
        chain.send(tx.raw)


@pytest.mark.parametrize("claim", CLAIMS)
def test_nothing_is_spent_that_is_not_there_or_by_another_key(claim: Claim) -> None:
    chain, key = rich(claim)
    with pytest.raises(RefusedError, match=r"unfunded|sums differ|negative"):
        chain.send(paid(chain, key, units=30_000).raw)
    tx = paid(chain, key)
    with pytest.raises(RefusedError, match="bad signature"):
        chain.send(Key().signed(tx).raw)
    with pytest.raises(RefusedError, match="bad signature"):
        chain.send(replace(tx, fee=tx.fee + 1).raw)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("keeps", [True, False])
def test_a_reorg_removes_and_includes_again(claim: Claim, *, keeps: bool) -> None:
    chain, key = rich(claim)
    tx = paid(chain, key)
    chain.send(tx.raw)
    chain.mine()
    before = chain.head.hash
    chain.reorg(1, keeps=keeps)
    assert chain.units_at("toyshop") == 0
    chain.mine()

    assert chain.head.hash != before
    assert chain.units_at("toyshop") == (5_000 if keeps else 0)


def test_heights_have_holes_beside_which_parents_are_named() -> None:
    chain = ToyChain(claim="counter", hole_every=4)
    chain.mine(6)

    assert [block.height for block in chain.blocks] == [1, 2, 3, 5, 6, 7, 9]
    assert (chain.at(4), chain.is_hole(4), chain.is_hole(8), chain.is_hole(10)) == (None, True, True, False)
    after = chain.at(5)
    assert after is not None
    assert (after.parent_height, after.parent_hash) == (3, chain.blocks[2].hash)


def test_one_output_may_fail_where_the_others_take_effect() -> None:
    chain, key = rich("counter", outputs_max=3)
    chain.deaf.add("toydeaf")
    outputs = (("toya", NATIVE, 1), ("toydeaf", NATIVE, 2), ("toyb", NATIVE, 3))
    tx = key.signed(Tx(key.address, outputs, FEE, counter=0))
    chain.send(tx.raw)
    chain.mine()

    assert chain.head.failed == {(tx.txid, 1)}
    assert [chain.units_at(name) for name in ("toya", "toydeaf", "toyb")] == [1, 0, 3]
