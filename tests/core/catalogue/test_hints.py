"""Refused codes are answered by the one that was meant, if any resembles it."""

from __future__ import annotations

import pytest

from core.catalogue import hints
from core.catalogue.catalogue import load_catalogue

CATALOGUE = load_catalogue("production")
SERVED = frozenset(CATALOGUE.networks)


@pytest.mark.parametrize(
    ("code", "meant"),
    [("usd", "USD"), ("Usdt", "USDT"), ("USDT_TRC20", None), ("EURO", "EUR"), ("XBT", "BTC"), ("MATIC", "POL"),
     ("gram", "TON"), ("tether", "USDT"), ("USDDT", "USDT"), ("QQQQQ", None), ("", None), ("!!", None)],
)  # fmt: skip
def test_an_unknown_currency_is_answered_by_the_one_that_was_meant(code: str, meant: str | None) -> None:
    question = f" Did you mean {meant}?" if meant else ""
    assert hints.unknown_currency(CATALOGUE, code) == f"currency is unknown.{question}"


@pytest.mark.parametrize(
    ("network", "meant"),
    [("ETH", "ethereum"), ("erc20", "ethereum"), ("ERC-20", "ethereum"), ("TRC20", "tron"), ("BEP20", "bsc"),
     ("matic", "polygon"), ("etherium", "ethereum"), ("Tron", "tron"), ("spl", "solana"), ("nowhere", None)],
)  # fmt: skip
def test_an_unknown_network_is_answered_by_the_one_that_was_meant(network: str, meant: str | None) -> None:
    question = f" Did you mean {meant}?" if meant else ""
    assert hints.unoffered(CATALOGUE, "USDT", network, SERVED) == f"network is unknown.{question}"


def test_every_name_leads_to_a_code_of_the_catalogue() -> None:
    assert set(hints._NETWORKS.values()) == set(CATALOGUE.networks) - {"base"}
    assert {code for code in hints._COINS.values() if not CATALOGUE.is_pricing_currency(code)} == set()


def test_a_fiat_currency_is_no_coin() -> None:
    text = hints.unknown_coin(CATALOGUE, "USD", name="to_currency")
    assert text.startswith("to_currency must be a coin, and USD is none. The coins are ")
    assert "USDT" in text


def test_only_served_networks_are_proposed() -> None:
    served = {"tron", "bsc", "bitcoin"}
    assert hints.network_needed(CATALOGUE, "USDT", served) == "USDT has several networks; name one of tron, bsc."
    assert hints.unoffered(CATALOGUE, "USDT", "bitcoin", served) == (
        "USDT is not offered on bitcoin here; it is offered on tron, bsc."
    )
    assert hints.unoffered(CATALOGUE, "BTC", "tron", {"tron"}) == "BTC is not offered on tron here."
