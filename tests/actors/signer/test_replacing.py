"""Chooses the attempt from coins that a higher offer replaces, and the coins that pay for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest

from actors.signer import follow_up, replacing
from chains.spending import Coin, Coins, Intent, KeyRef, Output
from core.catalogue.catalogue import load_catalogue
from models.spends import held_coins
from models.spends.held_coins import HeldCoin
from models.spends.rows import AttemptRow, SpendRow

NETWORK = next(each for each in load_catalogue("development").networks.values() if each.code == "bitcoin")
WALLET = KeyRef(address="hot", ordinal=None)
FREE = Coin(txid="free", vout=0, units=5, key=WALLET, depth=6)
ID = UUID(int=1)
Terms = tuple[int, str, str] | None
Outbid = Callable[..., Terms]


def held_coin(txid: str, number: int, spent_by: str | None = None) -> HeldCoin:
    return HeldCoin(txid, 0, 5, "hot", None, 6, number, spent_by, None if spent_by is None else 9)


class Claims:
    """A spender of coins whose bytes are the names of its claimed coins."""

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        return [(name, 0) for name in raw.decode()]


@pytest.fixture
def outbid(monkeypatch: pytest.MonkeyPatch) -> Outbid:
    """Return the replaced attempt: (its number, its coins, further coins to pay with)."""

    def ask(rows: list[HeldCoin], *raws: bytes) -> Terms:
        intent = Intent(wallet=WALLET, pair=None, outputs=(Output(recipient="to", units=1),))
        monkeypatch.setattr(held_coins, "of_spend", lambda _id, _family: rows)
        monkeypatch.setattr(replacing, "free_coins", lambda _network, _currency: (FREE,))
        monkeypatch.setattr(replacing, "intent_of", lambda _spend: intent)
        monkeypatch.setattr(replacing, "scanned", lambda _network: None)
        spend = SpendRow(
            id=ID, network="bitcoin", purpose="payout", sender="hot", key_ordinal=None, currency="BTC", contract=None,
            decimals=8, token_units=1, slot=None,
        )  # fmt: skip
        attempts = [
            AttemptRow(
                spend_id=ID, number=number, network="bitcoin", txid=str(number), raw=raw, ceiling_units=number, terms={}
            )
            for number, raw in enumerate(raws)
        ]
        replaced = replacing.replaced(NETWORK, Claims(), spend, attempts[::-1])  # type: ignore[arg-type]
        if replaced is None:
            return None
        assert isinstance(replaced.draft.claim, Coins)
        assert replaced.outpoints == {(row.txid, 0) for row in rows if row.spent_by_txid is None}
        claimed, besides = (
            "".join(coin.txid for coin in each) for each in (replaced.draft.claim.coins, replaced.purse.coins)
        )
        return replaced.draft.offer.ceiling_units, claimed, besides

    return ask


@pytest.mark.parametrize(
    ("rows", "raws", "spy"),
    [
        ([held_coin("a", 0)], [b"a"], (0, "a", "free")),
        ([held_coin("a", 0), held_coin("b", 1)], [b"a", b"ab"], (1, "ab", "free")),
        # A coin that a later attempt added is lost: the later one is skipped, and its other added coins are as good as
        # free.
        ([held_coin("a", 0), held_coin("b", 1, "thief")], [b"a", b"ab"], (0, "a", "free")),
        ([held_coin("a", 0), held_coin("b", 1, "thief"), held_coin("c", 2)], [b"a", b"ab", b"abc"], (0, "a", "cfree")),
        ([held_coin("a", 0), held_coin("b", 1), held_coin("c", 2, "thief")], [b"a", b"ab", b"abc"], (1, "ab", "free")),
        ([held_coin("a", 0), held_coin("b", 1, "thief"), held_coin("c", 2)], [b"a", b"ab", b"ac"], (2, "ac", "free")),
        # A coin that another spend took over is no longer held.
        ([held_coin("a", 0)], [b"a", b"ab"], (0, "a", "free")),
        # An attempt adopted from the chain has its own coins; its replacement has to exclude the first attempt too.
        ([held_coin("a", 0), held_coin("b", 1)], [b"a", b"b"], (1, "ab", "free")),
        # A coin that all attempts claim is lost: no attempt can be replaced.
        ([held_coin("a", 0, "thief"), held_coin("b", 1)], [b"a", b"ab"], None),
        ([held_coin("a", 0, "thief"), held_coin("b", 1)], [b"a", b"b"], None),
    ],
)
def test_the_newest_attempt_with_all_its_coins_is_replaced(
    outbid: Outbid, rows: list[HeldCoin], raws: list[bytes], spy: Terms
) -> None:
    assert outbid(rows, *raws) == spy


@pytest.mark.parametrize(("code", "seconds"), [("bitcoin", 3 * 600), ("ethereum", 6 * 12), ("polygon", 60)])
def test_patience_is_a_few_blocks_and_three_on_bitcoin(code: str, seconds: int) -> None:
    assert follow_up._patience_s(load_catalogue("production").networks[code]) == seconds
