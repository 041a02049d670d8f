"""`sluice fees`, as an operator types it."""

from __future__ import annotations

from uuid import UUID

import pytest

from models.db import base
from models.deposits import crediting
from models.merchants import rows as merchants
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.models.builders import CATALOGUE, Chain
from tests.models.invoices.builders import invoice, paid


@pytest.fixture
def mine(sluice: CommandLine, database: str, shop: UUID, chain: Chain) -> UUID:
    sluice.env["DATABASE_URL"] = database
    paid(chain, invoice(shop))
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    merchant = merchants.create_merchant("Operator").id
    merchants.set_cosign(merchant, is_required=True)
    return merchant


def test_fees_are_shown_and_taken_once(sluice: CommandLine, mine: UUID) -> None:
    shown = sluice("fees", "show", "--json").json["coins"]
    assert shown == [
        {"currency": "USDT", "fees": "0.45", "owned": "0.45", "maturing": "0", "reserve": "0", "free": "0.45"}
    ]
    assert sluice("fees", "show").out.splitlines() == [
        "USDT: 0.45 owned, 0.45 of the fees can be taken",
        "  fees 0.45; 0 of the fees mature, 0 are kept for gas",
    ]

    taking = ("fees", "take", "USDT", "0.4", "--to", str(mine), "--reference", "2026-11", "--yes")
    assert sluice(*taking).out.strip() == f"0.4 USDT of the fees went to merchant {mine}"
    assert sluice(*taking, "--json").json["is_new"] is False
    assert sluice("fees", "show", "--json").json["coins"][0]["free"] == "0.05"
    base.connect(sluice.env["DATABASE_URL"])
    assert acted() == [("fees.taken", "USDT 2026-11")]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"0.4": "1"}, "less USDT than that can be taken"),
        ({"0.4": "0"}, "nothing was asked for"),
        ({"USDT": "XYZ"}, "no coin 'XYZ'"),
        ({"2026-11": "a b"}, "a reference is"),
        ({"MERCHANT": "018f0000-0000-7000-8000-000000000000"}, "there is no merchant"),
    ],
)
def test_an_impossible_taking_is_refused(sluice: CommandLine, mine: UUID, change: dict[str, str], error: str) -> None:
    words = ["fees", "take", "USDT", "0.4", "--to", "MERCHANT", "--reference", "2026-11", "--yes"]
    outcome = sluice(*(({"MERCHANT": str(mine)} | change).get(word, word) for word in words))
    assert outcome.code == 1
    assert error in outcome.err
