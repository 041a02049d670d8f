"""Operators' acts are rows: who, what, when and why, written with the act and never changed."""

from __future__ import annotations

import base64
import getpass
from typing import Any, Final

import psycopg2
import pytest

from cli.shell.operators import NAME_CHARS_MAX
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db import base
from models.db.base import execute, is_true, rows, transaction
from models.ledger import acts
from models.merchants import rows as merchants
from models.payouts import freezes
from tests.cli.conftest import CommandLine
from tests.models.builders import merchant

BY: Final = ("--by", "Ann", "--reason", "a test")


def recorded() -> list[tuple[Any, ...]]:
    return rows("SELECT act, subject, details, reason, done_by FROM operator_acts ORDER BY id")


def test_freezes_and_their_ends_are_recorded(sluice_db: CommandLine) -> None:
    for words in (("freeze", "--network", "tron"), ("unfreeze", "--network", "tron"), ("unfreeze", "--all")):
        assert sluice_db("payouts", *words, *BY).code == 0
    base.connect(sluice_db.env["DATABASE_URL"])
    assert recorded() == [
        ("payouts.frozen", "payouts on tron", "", "a test", "operator Ann"),
        ("payouts.unfrozen", "payouts on tron", "", "a test", "operator Ann"),
    ]


def test_a_merchant_that_is_frozen_whole_is_recorded_with_its_keys(sluice_db: CommandLine) -> None:
    shop = sluice_db("merchant", "create", "Shop", "--json").json["merchant_id"]
    key = sluice_db("key", "create", shop, "--json").json["public_id"]
    assert sluice_db("merchant", "disable", shop, "--yes", *BY).code == 0
    base.connect(sluice_db.env["DATABASE_URL"])
    assert recorded()[2:] == [
        ("payouts.frozen", f"payouts of merchant {shop}", "", "a test", "operator Ann"),
        ("key.revoked", key, f"of merchant {shop}", "a test", "operator Ann"),
    ]


def test_merchants_and_keys_are_recorded_without_secrets_and_personal_data(sluice_db: CommandLine) -> None:
    shop = sluice_db("merchant", "create", "Shop", "--by", "Ann", "--json").json["merchant_id"]
    key = sluice_db("key", "create", shop, "--kind", "payout", *BY, "--json").json
    terms = ("--cosign", "--fee-percent", "2", "--owner-email", "ann@mail.example", "--contact", "shop@mail.example")
    assert sluice_db("merchant", "set", shop, *terms, *BY).code == 0
    for _ in range(2):
        assert sluice_db("key", "revoke", key["public_id"], *BY).code == 0
    base.connect(sluice_db.env["DATABASE_URL"])
    execute("UPDATE merchants SET ip_allowlist = '{192.0.2.1}'")
    for _ in range(2):
        assert sluice_db("merchant", "unlock", shop, *BY).code == 0

    base.connect(sluice_db.env["DATABASE_URL"])
    assert recorded() == [
        ("merchant.created", shop, "", "", "operator Ann"),
        ("key.created", key["public_id"], f"payout, of merchant {shop}", "a test", "operator Ann"),
        ("merchant.changed", shop, "cosign=True, fee_percent=2, owner_email, contact", "a test", "operator Ann"),
        ("key.revoked", key["public_id"], f"of merchant {shop}", "a test", "operator Ann"),
        ("merchant.unlocked", shop, "", "a test", "operator Ann"),
    ]
    assert not is_true("SELECT 1 FROM operator_acts a WHERE a::text ~ 'mail.example|sk_'")


def test_a_resealing_and_skipped_addresses_are_recorded(sluice_db: CommandLine) -> None:
    assert sluice_db("secrets", "reseal", *BY).code == 0
    assert sluice_db("treasury", "skip-addresses", "evm", "--yes", *BY).code == 0
    base.connect(sluice_db.env["DATABASE_URL"])
    sealed, skipped = recorded()
    assert sealed == ("secrets.resealed", "development", "", "a test", "operator Ann")
    assert skipped[:2] + skipped[3:] == ("addresses.skipped", "evm", "a test", "operator Ann")
    assert skipped[2].startswith("the next is number ")


def test_the_login_is_named_where_no_one_is(sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise OSError

    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    sluice_db("merchant", "create", "One")
    monkeypatch.setattr(getpass, "getuser", nameless)
    sluice_db("merchant", "create", "Two")
    base.connect(sluice_db.env["DATABASE_URL"])
    assert [act[-1] for act in recorded()] == ["operator root", "operator"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "n" * (NAME_CHARS_MAX + 1)])
def test_a_name_is_printable_and_short(sluice_db: CommandLine, name: str) -> None:
    outcome = sluice_db("payouts", "freeze", "--all", "--reason", "r", "--by", name)
    assert (outcome.code, f"1 to {NAME_CHARS_MAX} printable characters" in outcome.err) == (1, True)
    base.connect(sluice_db.env["DATABASE_URL"])
    assert (freezes.listing(), recorded()) == ([], [])


@pytest.mark.parametrize(
    "words",
    [
        ("payouts", "freeze", "--all", "--reason", "r"),
        ("merchant", "create", "Another"),
        ("merchant", "set", "SHOP", "--cosign"),
        ("key", "create", "SHOP"),
        ("key", "revoke", "KEY"),
    ],
)
def test_no_act_takes_effect_without_its_row(
    sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    shop = merchant()
    key = merchants.create_key(shop, "unified", "", SecretBox(DEVELOPMENT_SECRET_KEYS))
    tables = ("payout_freezes", "merchants", "api_keys")
    before = [rows(f"SELECT * FROM {table} ORDER BY 1") for table in tables]

    def lose(self: acts.Act) -> int:
        raise OSError(self.act)

    monkeypatch.setattr(acts.Act, "write", lose)
    meant = {"SHOP": str(shop), "KEY": key.public_id}
    with pytest.raises(OSError, match=r"\w\.\w"):
        sluice_db(*(meant.get(word, word) for word in words))
    base.connect(sluice_db.env["DATABASE_URL"])
    assert [rows(f"SELECT * FROM {table} ORDER BY 1") for table in tables] == before


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    "change",
    ["UPDATE operator_acts SET done_by = 'another'", "DELETE FROM operator_acts", "TRUNCATE operator_acts"],
)
def test_a_recorded_act_is_never_changed(change: str) -> None:
    with transaction():
        acts.record("payouts.frozen", "all", by="operator Ann")
    with pytest.raises(psycopg2.errors.RestrictViolation, match="append-only"):
        execute(change)


@pytest.mark.usefixtures("database")
def test_an_act_is_recorded_in_its_transaction_and_by_operators_alone() -> None:
    with pytest.raises(RuntimeError, match="its own transaction"):
        acts.record("payouts.frozen", "all", by="operator Ann")
    acts.record("payouts.frozen", "all", by="")
    assert recorded() == []


def test_acts_are_listed_newest_first(sluice_db: CommandLine) -> None:
    new = "new:" + base64.b64encode(b"n" * 32).decode()
    sluice_db.env["SECRET_KEYS"] = f"{new},{DEVELOPMENT_SECRET_KEYS}"
    assert sluice_db("acts").out == "none\n"
    sluice_db("secrets", "reseal", *BY)
    sluice_db("payouts", "freeze", "--all", *BY)
    first, second = sluice_db("acts", "--json").json["items"]
    assert (first["act"], second["act"], second["subject"]) == ("payouts.frozen", "secrets.resealed", "new")
    lines = sluice_db("acts", "--limit", "1").out.splitlines()
    assert [line.partition("  ")[2] for line in lines] == ["operator Ann  payouts.frozen all payouts: a test"]
