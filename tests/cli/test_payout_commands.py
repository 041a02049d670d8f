"""`sluice payouts` and `sluice merchant set`: a freeze holds once a command returns; a wrong name freezes nothing."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest

from actors.recovery import resume
from cli import session
from models.db import base
from models.db.base import execute, one, transaction
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD
from models.merchants import emails
from models.outcomes import endings
from models.payouts import freezes
from models.payouts.freezes import RECONCILER
from models.payouts.rows import PayoutRow
from models.spends import signing_stops
from models.treasury import reconciliation
from models.treasury.reconciliation import Finding
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine, Outcome
from tests.models.builders import USDT, Chain, assert_sound
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import rich_shop
from tests.models.payouts.held import funded, payout, reread, taken
from tests.models.spends import by_hand
from tests.models.treasury.builders import pin_hot

REASON = ("--reason", "a leak")


@contextmanager
def connected(sluice: CommandLine) -> Iterator[None]:
    base.connect(sluice.env["DATABASE_URL"])
    yield
    base.close()


@pytest.fixture
def merchant(sluice_db: CommandLine) -> str:
    created = sluice_db("merchant", "create", "Shop", "--json").json
    return str(created["merchant_id"])


def items(sluice: CommandLine) -> list[tuple[str, str, str, str]]:
    answer = sluice("payouts", "frozen", "--json").json["items"]
    return [(item["scope"], item["name"], item["frozen_by"], item["reason"]) for item in answer]


def test_every_scope_is_frozen_listed_and_lifted(sluice_db: CommandLine, merchant: str) -> None:
    scopes = {
        ("--all",): ("all", ""),
        ("--network", "ethereum"): ("network", "ethereum"),
        ("--merchant", merchant): ("merchant", merchant),
        ("--conversion",): ("conversion", ""),
        ("--coin", "USDT:ethereum"): ("coin", "USDT:ethereum"),
    }
    for words, (scope, name) in scopes.items():
        done = sluice_db("payouts", "freeze", *words, *REASON, "--json").json
        assert done == {"scope": scope, "name": name, "frozen": True, "changed": True}
        assert items(sluice_db) == [(scope, name, "operator", "a leak")]
        with connected(sluice_db):
            assert freezes.is_frozen(UUID(merchant), "ethereum", "USDT") == (scope != "conversion")
        assert sluice_db("payouts", "freeze", *words, *REASON, "--json").json["changed"] is False

        lifted = sluice_db("payouts", "unfreeze", *words, "--json").json

        assert lifted == {"scope": scope, "name": name, "frozen": False, "changed": True, "still_frozen": []}
        assert sluice_db("payouts", "unfreeze", *words, "--json").json["changed"] is False
    assert sluice_db("payouts", "frozen").out == "nothing is frozen\n"


def test_an_operator_lifts_the_reconcilers_freeze_and_sees_the_others(sluice_db: CommandLine) -> None:
    with connected(sluice_db):
        freezes.freeze("network", "bsc", reason="12 USDT are missing", frozen_by=RECONCILER)
        finding = Finding(
            currency="USDT", place="hot", height=9, chain_units=0, expected_units=12, detail="missing", address=""
        )
        assert reconciliation.note("bsc", finding) == 1
    sluice_db("payouts", "freeze", "--network", "bsc", *REASON)
    sluice_db("payouts", "freeze", "--conversion", *REASON)

    out = sluice_db("payouts", "unfreeze", "--network", "bsc").out

    with connected(sluice_db):
        assert [row.misses for row in reconciliation.listing()] == [0], "after an operator looked, counted from zero"
    assert out.startswith("payouts on bsc: lifted\nstill frozen: conversions, since ")
    assert items(sluice_db) == [("conversion", "", "operator", "a leak")]


def test_the_list_shows_author_reason_and_time(sluice_db: CommandLine, merchant: str) -> None:
    sluice_db("payouts", "freeze", "--merchant", merchant, "--reason", "Ümlaut & co")

    (line,) = sluice_db("payouts", "frozen").out.splitlines()

    assert line.startswith(f"payouts of merchant {merchant}, since 2")
    assert line.endswith("by operator: Ümlaut & co")


@pytest.mark.parametrize(
    "words",
    [
        ("freeze", *REASON),
        ("freeze", "--all", "--network", "ethereum", *REASON),
        ("freeze", "--network", "atlantis", *REASON),
        ("freeze", "--network", "", *REASON),
        ("freeze", "--coin", "USDT", *REASON),
        ("freeze", "--coin", "USDT:bitcoin", *REASON),
        ("freeze", "--merchant", str(uuid4()), *REASON),
        ("freeze", "--all", "--reason", " "),
        ("freeze", "--all", "--reason", "x" * 256),
        ("freeze", "--all", "--reason", "two\nlines"),
        ("unfreeze",),
        ("unfreeze", "--all", "--conversion"),
    ],
)
def test_a_wrong_name_is_reported_in_a_line_and_freezes_nothing(sluice_db: CommandLine, words: tuple[str, ...]) -> None:
    outcome = sluice_db("payouts", *words)

    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert outcome.err.startswith("sluice: ")
    assert items(sluice_db) == []


@pytest.mark.parametrize("words", [("freeze", "--all"), ("freeze", "--merchant", "nonsense", *REASON)])
def test_a_freeze_without_reason_or_with_no_id_is_wrong_use(sluice_db: CommandLine, words: tuple[str, ...]) -> None:
    assert sluice_db("payouts", *words).code == 2


def test_cosigning_is_switched_on_and_off(sluice_db: CommandLine, merchant: str) -> None:
    def is_required() -> bool:
        with connected(sluice_db):
            row = one("SELECT is_cosign_required FROM merchants WHERE id = %s", (merchant,))
        assert row is not None
        return bool(row[0])

    assert sluice_db("merchant", "set", merchant, "--cosign", "--json").json == {
        "merchant_id": merchant,
        "cosign": True,
    }
    assert is_required()
    assert sluice_db("merchant", "set", merchant, "--no-cosign").code == 0
    assert not is_required()


def test_a_merchants_fee_is_set_and_given_back_to_the_settings(sluice_db: CommandLine, merchant: str) -> None:
    def own() -> object:
        with connected(sluice_db):
            sql = "SELECT own_fee_ppm, own_fee_fixed_usd_cents, terms_version FROM merchants WHERE id = %s"
            return one(sql, (merchant,))

    both = ("--fee-percent", "0.75", "--fee-fixed-usd", "0", "--json")
    assert sluice_db("merchant", "set", merchant, *both).json == {
        "merchant_id": merchant,
        "fee_percent": "0.75",
        "fee_fixed_usd": "0",
    }
    assert own() == (7_500, 0, 3)
    (shown,) = sluice_db("merchant", "list", "--json").json["items"]
    assert (shown["fee_percent"], shown["fee_fixed_usd"]) == ("0.75", "0")

    assert sluice_db("merchant", "set", merchant, "--fee-percent", "default").code == 0
    assert own() == (None, 0, 4)


@pytest.mark.parametrize(
    "wrong",
    [("--fee-percent", "100.1"), ("--fee-percent", "1e1"), ("--fee-fixed-usd", "0.001"), ("--fee-fixed-usd", "-1")],
)
def test_a_fee_that_cannot_be_changes_nothing(sluice_db: CommandLine, merchant: str, wrong: tuple[str, str]) -> None:
    assert sluice_db("merchant", "set", merchant, "--cosign", *wrong).code == 2
    with connected(sluice_db):
        assert one("SELECT is_cosign_required, terms_version FROM merchants WHERE id = %s", (merchant,)) == (False, 1)


def test_cosigning_is_set_for_a_merchant_that_exists_and_only_as_said(sluice_db: CommandLine, merchant: str) -> None:
    unknown: Outcome = sluice_db("merchant", "set", str(uuid4()), "--cosign")
    assert (unknown.code, unknown.err.startswith("sluice: there is no merchant")) == (1, True)
    assert sluice_db("merchant", "set", merchant).code == 2


def test_every_command_of_the_page_for_operators_works(sluice_db: CommandLine, merchant: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "payouts-operations.md").read_text(encoding="utf-8")
    commands = re.findall(r"^sluice (.+)$", page, re.MULTILINE)
    commands += re.findall(r"`sluice (key create [^`]+)`", page)
    assert len(commands) > 5

    for command in commands:
        outcome = sluice_db(*shlex.split(command.replace("MERCHANT_ID", merchant)))
        assert (outcome.code, "sluice: " in outcome.err) == (0, False), command


def test_an_operator_cancels_an_approved_payout_whoevers_it_is(
    sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(sluice_db):
        shop = funded()
        order, gone = payout(shop, status="approved"), taken(payout(shop), "approved", "broadcasting")
    done = sluice_db("payouts", "cancel", str(order.id), "--json").json
    assert done == {"payout": str(order.id), "merchant": str(shop), "status": "cancelled"}
    with connected(sluice_db):
        assert (reread(order).status, reread(order).error) == ("cancelled", "Cancelled by the operator.")
        assert balances_of(shop) == {AVAILABLE: 89 * USDT, PAYOUT_HELD: 11 * USDT}

    for payout_id, problem in ((gone.id, "is broadcasting: only"), (order.id, "is cancelled: only"), (uuid4(), "no")):
        outcome = sluice_db("payouts", "cancel", str(payout_id))
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        assert problem in outcome.err
    with connected(sluice_db):
        assert reread(gone).status == "broadcasting"
        kept = payout(shop)
        with transaction():
            signing_stops.stop("ethereum", reason="restored")
    assert "caught up" in sluice_db("payouts", "cancel", str(kept.id)).err
    with connected(sluice_db):
        signing_stops.note_caught_up("ethereum")
        pin_hot()
    sluice_db.env["ETHEREUM_RPC_URLS"] = "http://127.0.0.1:1"
    assert "the providers of ethereum failed" in sluice_db("payouts", "cancel", str(kept.id)).err
    monkeypatch.setattr(resume, "is_awaited", lambda *_: True)
    assert "waits for a block" in sluice_db("payouts", "cancel", str(kept.id)).err
    monkeypatch.setattr(resume, "is_awaited", lambda *_: False)
    assert sluice_db("payouts", "cancel", str(kept.id), "--json").json["status"] == "cancelled"
    with connected(sluice_db):
        assert acted() == [("payout.cancelled", str(order.id)), ("payout.cancelled", str(kept.id))]


@pytest.mark.parametrize("status", ["pending", "approved"])
def test_an_operator_cancels_a_payout_whose_coin_is_frozen(
    sluice_db: CommandLine, status: Literal["pending", "approved"]
) -> None:
    """Its token may refuse all our transfers for days: the network's other payouts are signed, and this one was not."""
    with connected(sluice_db):
        order = payout(funded(), status=status)
        freezes.freeze("coin", "USDT:ethereum", reason="refused", frozen_by=freezes.REFUSAL)
        execute("UPDATE payouts SET wait_reason = 'frozen', created_at = app_now() - interval '31 minutes'")

    assert sluice_db("payouts", "cancel", str(order.id), "--json").json["status"] == "cancelled"
    with connected(sluice_db):
        assert balances_of(order.merchant_id) == {AVAILABLE: 100 * USDT}


# Payouts that moved something else ----------------------------------------------------------------------------------


def unclear(sluice: CommandLine) -> str:
    """Write a payout of 10 USDT of which 9 arrived and 10 left, as deep as failures count; returns its id."""
    base.connect(sluice.env["DATABASE_URL"])
    chain = Chain()
    order = payout(funded(chain=chain), is_approval_required=False, status="approved")
    taken(order, "broadcasting", "sent")
    by_hand.change(
        "state = 'mined', effect = 'other', is_success = false, left_units = 10000000,"
        " arrived_units = 9000000, mined_txid = '0xabc', mined_height = %s, mined_hash = %s, problem = 'moved',"
        " chain_fee_units = 0, signed_height = %s",
        params=(chain.height, chain._hash(), chain.height - 1),
    )
    chain.mature()
    base.close()
    return str(order.id)


def test_a_payout_that_moved_something_else_is_listed_shown_by_the_doctor_and_settled(sluice_db: CommandLine) -> None:
    assert sluice_db("payouts", "unsettled").out == "no payout waits to be settled\n"
    payout_id = unclear(sluice_db)
    [item] = sluice_db("payouts", "unsettled", "--json").json["items"]
    amounts = [item[name] for name in ("payout", "asked", "left", "arrived", "held")]
    assert amounts == [payout_id, "10", "10", "9", "11"]
    assert "payouts to settle" in sluice_db("doctor").out

    done = sluice_db("payouts", "settle", payout_id, "--as", "failed", *REASON, "--yes", "--json")
    assert (done.code, done.json["outcome"], done.json["lost"]) == (0, "failed", "10")
    with connected(sluice_db):
        assert base.rows("SELECT status FROM payouts") == [("failed",)]
        assert base.rows("SELECT outcome, reason, settled_by FROM payout_settlements") == [
            ("failed", "a leak", "operator")
        ]
        assert acted() == [("payout.settled", payout_id)]
        assert_sound()
    assert "payouts to settle" not in sluice_db("doctor").out
    again = sluice_db("payouts", "settle", payout_id, "--as", "paid", "--yes")
    assert (again.code, "no such payout waits" in again.err) == (1, True)


def test_nothing_is_settled_without_a_yes(sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    payout_id = unclear(sluice_db)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert sluice_db("payouts", "settle", payout_id, "--as", "paid").code != 0
    assert sluice_db("payouts", "settle", payout_id, "--as", "unknown", "--yes").code == 2
    with connected(sluice_db):
        assert base.rows("SELECT status FROM payouts") == [("sent",)]


def test_the_victim_of_a_deadlock_is_repeated(sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merchant's refunds, reorgs and the signer lock the same rows."""
    victims: list[bool] = []
    end = endings.end

    def first_a_victim(*args: Any, **named: Any) -> PayoutRow | None:
        victims.append(not victims or victims[-1] is False)
        if victims[-1]:
            execute("DO $$ BEGIN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01'; END $$")
        return end(*args, **named)

    monkeypatch.setattr(endings, "end", first_a_victim)
    settled_id = unclear(sluice_db)
    with connected(sluice_db):
        order, kept = (payout(rich_shop(), status="approved", network=network) for network in ("ethereum", "bsc"))
        with transaction():
            signing_stops.stop("bsc", reason="restored")
        signing_stops.note_caught_up("bsc")
    assert sluice_db("payouts", "settle", settled_id, "--as", "paid", "--yes").code == 0
    for each in (order, kept):
        assert sluice_db("payouts", "cancel", str(each.id), "--json").json["status"] == "cancelled"
    assert victims == [True, False] * 3
    with connected(sluice_db):
        assert balances_of(order.merchant_id) == {AVAILABLE: 100 * USDT}


@pytest.mark.parametrize("url", ["", "smtp://127.0.0.1:1"])
def test_an_operators_decision_sends_receipts_by_the_settings(
    sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for name, value in (sluice_db.env | {"SMTP_URL": url}).items():
        monkeypatch.setenv(name, value)

    with session.database():
        assert (emails.post() is not None) == bool(url)
