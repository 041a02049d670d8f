"""`sluice merchant` and `sluice key` through the command line."""

import base64
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db import base
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, Account
from models.merchants import logos, notices
from models.merchants import rows as merchants
from models.merchants.emails import EmailRow
from models.merchants.rows import find_key, open_secret
from models.outcomes import disowned
from models.payout_links import rows as payout_links
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.payouts.withdrawals import WithdrawalRule
from models.spends import signing_stops
from tests.actors.payouts.withdrawals import add_key
from tests.cli.conftest import CommandLine
from tests.core.merchants.test_logos import PLAIN
from tests.models.builders import CATALOGUE
from tests.models.payout_links.builders import claiming, funded
from tests.models.payouts.builders import FEE, RECIPIENT, USDT, rich_shop


def test_a_merchant_is_created_and_listed(sluice_db: CommandLine) -> None:
    created = sluice_db("merchant", "create", "Café", "--owner", "Alice", "--json").json
    assert UUID(created["merchant_id"])
    assert (created["name"], created["owner"]) == ("Café", "Alice")
    assert sluice_db("merchant", "list", "--json").json == {"items": [created]}
    assert created["merchant_id"] in sluice_db("merchant", "list").out


def test_an_owner_can_be_named_by_id(sluice_db: CommandLine) -> None:
    first = sluice_db("merchant", "create", "First", "--json").json
    second = sluice_db("merchant", "create", "Second", "--owner", first["owner_id"], "--json").json
    assert second["owner_id"] == first["owner_id"]


def test_a_key_works_with_the_secret_keys_of_the_settings(sluice_db: CommandLine) -> None:
    merchant = sluice_db("merchant", "create", "Shop", "--json").json
    key = sluice_db("key", "create", merchant["merchant_id"], "--kind", "payout", "--label", "cron", "--json").json
    base.connect(sluice_db.env["DATABASE_URL"])
    row = find_key(key["public_id"])
    assert row is not None
    assert (row.kind, str(row.merchant_id)) == ("payout", merchant["merchant_id"])
    assert open_secret(row, SecretBox(DEVELOPMENT_SECRET_KEYS)) == key["secret"]


def test_keys_are_sealed_with_the_first_of_the_secret_keys(sluice_db: CommandLine) -> None:
    new_key = "new:" + base64.b64encode(b"n" * 32).decode()
    sluice_db.env["SECRET_KEYS"] = f"{new_key},{DEVELOPMENT_SECRET_KEYS}"
    merchant = sluice_db("merchant", "create", "Shop", "--json").json
    key = sluice_db("key", "create", merchant["merchant_id"], "--json").json
    base.connect(sluice_db.env["DATABASE_URL"])
    row = find_key(key["public_id"])
    assert row is not None
    assert open_secret(row, SecretBox(new_key)) == key["secret"]


def test_the_secret_is_shown_to_a_person_once(sluice_db: CommandLine) -> None:
    merchant = sluice_db("merchant", "create", "Shop", "--json").json
    out = sluice_db("key", "create", merchant["merchant_id"]).out
    assert "sk_" in out
    assert "not shown again" in out


def test_keys_are_listed_newest_first_without_a_secret(sluice_db: CommandLine) -> None:
    shop, other = (sluice_db("merchant", "create", name, "--json").json["merchant_id"] for name in ("Shop", "Other"))
    first = sluice_db("key", "create", shop, "--kind", "payout", "--label", "cron", "--json").json
    second = sluice_db("key", "create", other, "--json").json
    sluice_db("key", "revoke", first["public_id"])

    listed = sluice_db("key", "list", "--json")
    assert [(each["public_id"], each["kind"], each["label"]) for each in listed.json["items"]] == [
        (second["public_id"], "unified", ""),
        (first["public_id"], "payout", "cron"),
    ]
    newest, oldest = listed.json["items"]
    assert (newest["revoked_at"], newest["sealed_by"], oldest["merchant_id"]) == (None, "development", shop)
    assert oldest["revoked_at"] is not None
    shown = sluice_db("key", "list", shop)
    assert "revoked 20" in shown.out
    assert shown.out.startswith(f"{first['public_id']}  payout  of {shop}, since ")
    assert second["public_id"] not in shown.out
    assert f"{second['public_id']}  unified" in sluice_db("key", "list", "--limit", "1").out
    assert not {first["secret"], second["secret"]} & set(listed.out.split('"'))
    assert "there is no merchant" in sluice_db("key", "list", str(uuid4())).err


def test_a_key_is_revoked_and_revoking_again_changes_nothing(sluice_db: CommandLine) -> None:
    merchant = sluice_db("merchant", "create", "Shop", "--json").json
    public_id = sluice_db("key", "create", merchant["merchant_id"], "--json").json["public_id"]
    assert sluice_db("key", "revoke", public_id, "--json").json["changed"] is True
    assert sluice_db("key", "revoke", public_id, "--json").json["changed"] is False
    base.connect(sluice_db.env["DATABASE_URL"])
    assert find_key(public_id) is None


def test_revoking_names_the_coins_whose_rules_end(sluice_db: CommandLine) -> None:
    merchant = sluice_db("merchant", "create", "Shop", "--json").json["merchant_id"]
    keys = [sluice_db("key", "create", merchant, "--json").json["public_id"] for _ in range(2)]
    base.connect(sluice_db.env["DATABASE_URL"])
    for currency, is_enabled, key in (("USDT", True, 0), ("ETH", True, 0), ("DAI", False, 0), ("USDC", True, 1)):
        rule = WithdrawalRule(
            merchant_id=UUID(merchant),
            currency=currency,
            network="ethereum",
            address="0x1",
            threshold_units=1,
            is_enabled=is_enabled,
            set_by=keys[key],
        )
        assert rule.write()

    base.execute("UPDATE withdrawal_rules SET cosigned_by = %s WHERE currency = 'USDC'", (keys[0],))

    answer = sluice_db("key", "revoke", keys[0], "--json").json
    assert (answer["stopped_withdrawals"], answer["cancelled_payouts"]) == (["ETH", "USDC", "USDT"], 0)
    assert "its address is named again: USDC" in sluice_db("key", "revoke", keys[1]).out


def test_revoking_gives_back_what_a_rule_of_the_key_is_about_to_send(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    shop, payout_id, key = rich_shop(), uuid7(), "pk_" + "a" * 24
    add_key(shop, key)
    with base.transaction():
        payouts.insert(CATALOGUE, PayoutRow(
            id=payout_id, merchant_id=shop, order_id=f"autowithdraw:{payout_id}", kind="autowithdraw", currency="USDT",
            network="ethereum", address=RECIPIENT.lower(), amount_units=50 * USDT, fee_units=FEE,
            to_units=50 * USDT - FEE, is_fee_on_top=False, status="awaiting_cosign", source="manual", created_by=key,
        ))  # fmt: skip

    assert "are given back: 1" in sluice_db("key", "revoke", key).out
    base.connect(sluice_db.env["DATABASE_URL"])
    assert base.rows("SELECT status, error FROM payouts") == [("cancelled", disowned.REASON)]


def test_revoking_returns_the_reserves_of_funded_cheques(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    shop, key = rich_shop(), "pk_" + "a" * 24
    add_key(shop, key)
    before = ledger.balance(Account(shop, AVAILABLE, "USDT"))
    mine, claim, others = funded(shop, created_by=key), funded(shop, created_by=key), funded(shop)
    claiming(claim)

    shown = sluice_db("key", "revoke", key, "--json").json

    base.connect(sluice_db.env["DATABASE_URL"])
    assert (shown["cancelled_cheques"], shown["kept_cheques"]) == (1, 0)
    assert [payout_links.reread(link.id).status for link in (mine, claim, others)] == [
        "cancelled",
        "claiming",
        "funded",
    ]
    assert ledger.balance(Account(shop, AVAILABLE, "USDT")) == before - claim.held_units - others.held_units


def test_revoking_keeps_cheques_that_a_lost_claim_may_have_paid(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    shop, key = rich_shop(), "pk_" + "a" * 24
    add_key(shop, key)
    kept = funded(shop, created_by=key)
    with base.transaction():
        signing_stops.stop("ethereum", reason="restored")

    assert "cheques that stay while their network is recovered, then revoke the key again: 1" in (
        sluice_db("key", "revoke", key).out
    )
    base.connect(sluice_db.env["DATABASE_URL"])
    assert payout_links.reread(kept.id).status == "funded"

    base.execute("DELETE FROM signing_stops")
    assert "cheques that are cancelled: 1" in sluice_db("key", "revoke", key).out


def test_the_owner_gets_notices_of_keys_co_signing_and_allowlists(sluice_db: CommandLine) -> None:
    sluice_db.env["SMTP_URL"] = "smtp://127.0.0.1:1"
    shop = sluice_db("merchant", "create", "Shop", "--json").json["merchant_id"]
    assert (
        "security notices: o@mail.example" in sluice_db("merchant", "set", shop, "--owner-email", "o@mail.example").out
    )
    key = sluice_db("key", "create", shop, "--json").json["public_id"]
    for words in (
        ("merchant", "set", shop, "--no-cosign"), ("merchant", "unlock", shop),
        ("merchant", "set", shop, "--owner-email", "o@mail.example"), ("merchant", "set", shop, "--cosign"),
        ("merchant", "set", shop, "--cosign"), ("merchant", "set", shop, "--no-cosign"),
        ("key", "revoke", key), ("key", "revoke", key), ("merchant", "set", shop, "--owner-email", "none"),
    ):  # fmt: skip
        sluice_db(*words)

    base.connect(sluice_db.env["DATABASE_URL"])
    [email] = EmailRow.read("true")
    content = notices._decode.decode(email.open(SecretBox(DEVELOPMENT_SECRET_KEYS)))
    assert [(change.by, change.text) for change in content.changes] == [
        ("operator", f"A new API key of kind unified: {key}"),
        ("operator", "Co-signing is required."),
        ("operator", "Co-signing is not required."),
        ("operator", f"The API key {key} is revoked."),
        ("operator", "Security notices go to another address, or end."),
    ]
    refused = sluice_db("merchant", "set", shop, "--owner-email", "a@b@c")
    assert (refused.code, "this is no e-mail address" in refused.err) == (2, True)


def test_buyers_read_the_name_and_contact_that_an_operator_sets(sluice_db: CommandLine) -> None:
    shop = UUID(sluice_db("merchant", "create", "Shop GmbH", "--json").json["merchant_id"])
    base.connect(sluice_db.env["DATABASE_URL"])
    assert merchants.face_of(shop) == ("Shop GmbH", "", "", "")

    sluice_db("merchant", "set", str(shop), "--display-name", "Corner Shop", "--contact", "help@shop.example")
    assert merchants.face_of(shop) == ("Corner Shop", "help@shop.example", "", "")
    assert merchants.face_of(shop).contact_link == "mailto:help@shop.example"
    sluice_db("merchant", "set", str(shop), "--contact", "https://shop.example/help@desk")
    assert merchants.face_of(shop).contact_link == "https://shop.example/help@desk"
    for words in (
        ("--contact", "http://shop.example"), ("--contact", "javascript:alert(1)"), ("--contact", "a@b@c"),
        ("--contact", "https://"), ("--display-name", "x" * 65), ("--display-name", "Shop\u202e"),
        ("--display-name", " "),
    ):  # fmt: skip
        assert sluice_db("merchant", "set", str(shop), *words).code in {1, 2}, words
    assert sluice_db("merchant", "set", str(uuid4()), "--display-name", "x").code == 1
    assert merchants.face_of(shop) == ("Corner Shop", "https://shop.example/help@desk", "", "")

    sluice_db("merchant", "set", str(shop), "--display-name", "none", "--contact", "none")
    assert merchants.face_of(shop) == ("Shop GmbH", "", "", "")
    with pytest.raises(LookupError):
        merchants.face_of(uuid4())


def test_an_operator_sets_logo_and_colour(sluice_db: CommandLine, tmp_path: Path) -> None:
    shop = sluice_db("merchant", "create", "Shop", "--json").json["merchant_id"]
    good, bad = tmp_path / "logo.png", tmp_path / "logo.svg"
    good.write_bytes(PLAIN)
    bad.write_text("<svg/>")
    done = sluice_db("merchant", "set", shop, "--logo", str(good), "--accent", "green")
    assert "colour for buyers: green" in done.out
    base.connect(sluice_db.env["DATABASE_URL"])
    face = merchants.face_of(UUID(shop))
    assert (face.accent, logos.read_logo(face.logo)) == ("green", PLAIN)

    for words, reason in (
        (("--logo", str(bad)), "no PNG"), (("--logo", str(tmp_path / "none.png")), "cannot be read"),
        (("--logo", str(tmp_path)), "cannot be read"), (("--accent", "mauve"), "one of teal"),
    ):  # fmt: skip
        refused = sluice_db("merchant", "set", shop, *words)
        assert refused.code in {1, 2}
        assert reason in refused.err
    assert merchants.face_of(UUID(shop)) == face
    sluice_db("merchant", "set", shop, "--logo", "none", "--accent", "none")
    assert merchants.face_of(UUID(shop)) == ("Shop", "", "", "")


def test_mistakes_are_answered_in_a_line(sluice_db: CommandLine) -> None:
    for words in (
        ("merchant", "create", " "),
        ("merchant", "create", "Shop", "--owner", str(uuid4())),
        ("key", "create", str(uuid4())),
        ("key", "revoke", "pk_" + "a" * 24),
        ("key", "revoke", "nonsense"),
        ("merchant", "unlock", str(uuid4())),
    ):
        outcome = sluice_db(*words)
        assert outcome.code == 1, words
        assert outcome.err.startswith("sluice: "), words


def test_an_invalid_id_or_kind_is_wrong_usage(sluice_db: CommandLine) -> None:
    assert sluice_db("key", "create", "nonsense").code == 2
    assert sluice_db("key", "create", str(uuid4()), "--kind", "admin").code == 2


def test_a_merchant_that_locked_itself_out_is_unlocked(sluice_db: CommandLine) -> None:
    merchant = sluice_db("merchant", "create", "Shop", "--json").json
    base.connect(sluice_db.env["DATABASE_URL"])
    base.execute("UPDATE merchants SET ip_allowlist = '{203.0.113.7}'")

    assert sluice_db("merchant", "unlock", merchant["merchant_id"], "--json").json["ended"] == ["203.0.113.7"]
    assert sluice_db("merchant", "unlock", merchant["merchant_id"]).out.strip() == "there was no list"
    assert "there is no merchant" in sluice_db("merchant", "unlock", str(uuid4())).err
