"""Secrets are sealed again by a new key while others read and write them, also by a command that is killed."""

from __future__ import annotations

import base64
import threading
from typing import Any, Final
from uuid import UUID

import pytest

from api.http.auth import Authenticator
from core.ids import uuid7
from core.secrets.secretbox import SecretBox, SecretBoxError
from core.secrets.signing import sign_request
from models.db import base, grants
from models.db.base import execute, rows, transaction
from models.merchants import emails
from models.merchants import rows as merchants
from models.merchants.emails import Draft, EmailRow
from models.merchants.rows import IssuedKey
from models.outcomes import resealing
from models.outcomes.resealing import SEALED, Sealed
from models.webhooks import outbox
from models.webhooks.outbox import Endpoint
from models.webhooks.rows import EndpointRecord
from tests.cli.conftest import CommandLine
from tests.models.builders import merchant

pytestmark = pytest.mark.usefixtures("database")

OLD_KEY: Final = "old:" + base64.b64encode(b"o" * 32).decode()
NEW_KEY: Final = "new:" + base64.b64encode(b"n" * 32).decode()
OLD, BOTH, NEW = SecretBox(OLD_KEY), SecretBox(f"{NEW_KEY},{OLD_KEY}"), SecretBox(NEW_KEY)
KEYS, ENDPOINTS, EMAILS = SEALED


def new_key(shop: UUID, box: SecretBox = OLD) -> IssuedKey:
    return merchants.create_key(shop, "unified", "", box)


def new_endpoint(shop: UUID) -> Endpoint:
    with transaction():
        return outbox.register_endpoint(shop, "https://shop.example/hook", box=OLD)


def new_email(shop: UUID, box: SecretBox = OLD) -> UUID:
    with transaction():
        draft = Draft(object_id=uuid7(), recipient="ann@mail.example", subject="Hello", body=b"your money")
        return emails.add(shop, [draft], kind="cheque", box=box)[0]


def email(email_id: UUID) -> EmailRow:
    return EmailRow.read("e.id = %s", (email_id,))[0]


def seal_all(**options: Any) -> dict[str, int]:
    return {sealed.table: resealing.seal_all(sealed, BOTH, **options) for sealed in SEALED}


def test_every_sealed_column_is_listed() -> None:
    boxes = rows("SELECT table_name, column_name FROM information_schema.columns WHERE column_name LIKE '%%\\_box'")

    assert {(sealed.table, sealed.column) for sealed in SEALED} == set(boxes)
    # Answers to calls are never sealed at rest: those with a secret are not stored.
    assert {sealed.table for sealed in SEALED} == grants._SEALED - {"calls"}


def test_after_it_the_gateway_works_with_the_new_key_alone(sluice_db: CommandLine) -> None:
    shop = merchant()
    key, former, endpoint, letter = new_key(shop), new_endpoint(shop), new_endpoint(shop), new_email(shop)
    gone = new_email(shop)
    execute("UPDATE emails SET status = 'sent', body_box = '' WHERE id = %s", (gone,))

    sluice_db.env["SECRET_KEYS"] = f"{NEW_KEY},{OLD_KEY}"
    done = sluice_db("secrets", "reseal", "--json")
    assert done.json == {
        "key": "new",
        "resealed": {"api_keys": 1, "webhook_endpoints": 2, "emails": 1},
        "left": {"api_keys": {}, "webhook_endpoints": {}, "emails": {}},
    }
    base.connect(sluice_db.env["DATABASE_URL"])
    authenticator = Authenticator(secret_box=NEW, now=lambda: 1_764_000_000)
    headers = {
        "HTTP_X_PUBLIC_ID": key.public_id,
        "HTTP_X_TIMESTAMP": "1764000000",
        "HTTP_X_SIGNATURE": sign_request(key.secret, "1764000000", "GET", "/v1/balances", b""),
    }
    assert authenticator.authenticate(headers, "GET", "/v1/balances", b"").merchant_id == shop
    stored = {each.id: each.secret_box for each in EndpointRecord.read("true")}
    assert {each.id: outbox.open_secret(each.id, stored[each.id], box=NEW) for each in (former, endpoint)} == {
        former.id: former.secret,
        endpoint.id: endpoint.secret,
    }
    assert email(letter).open(NEW) == b"your money"
    assert email(gone).body_box == ""
    sluice_db.env["SECRET_KEYS"] = NEW_KEY
    again = sluice_db("secrets", "reseal")
    assert (again.code, again.out.splitlines()[0]) == (0, "api_keys: 0 sealed again by new")


def test_a_command_that_is_killed_loses_at_most_a_batch_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = merchant()
    keys = [new_key(shop) for _ in range(7)]
    steps = iter([resealing._seal, killed_within])

    def seal(*args: Any) -> int:
        return next(steps)(*args)

    monkeypatch.setattr(resealing, "_seal", seal)
    with pytest.raises(KeyboardInterrupt):
        resealing.seal_all(KEYS, BOTH, batch=3)

    assert resealing.remaining(KEYS, BOTH) == {"old": 4}
    assert [opened(key, BOTH) for key in keys] == [key.secret for key in keys]
    monkeypatch.undo()
    assert resealing.seal_all(KEYS, BOTH, batch=3) == 4
    assert [opened(key, NEW) for key in keys] == [key.secret for key in keys]


def killed_within(*_: Any) -> int:
    execute("UPDATE api_keys SET secret_box = 'lost'")
    raise KeyboardInterrupt


def opened(key: IssuedKey, box: SecretBox) -> str:
    row = merchants.find_key(key.public_id)
    assert row is not None
    return merchants.open_secret(row, box)


def test_keys_and_letters_of_processes_that_still_seal_by_the_old_key_are_found_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop, late = merchant(), list[IssuedKey]()
    new_key(shop)

    def busy(sealed: Sealed, box: SecretBox, **where: Any) -> list[tuple[UUID, Any, str]]:
        if not late:
            late.append(new_key(shop))
        return locked(sealed, box, **where)

    locked = resealing._locked
    monkeypatch.setattr(resealing, "_locked", busy)
    assert resealing.seal_all(KEYS, BOTH, batch=1) == 2
    assert opened(late[0], NEW) == late[0].secret


def test_a_letter_that_a_worker_empties_meanwhile_stays_empty(database_url: str) -> None:
    letter = new_email(merchant())
    began, ended = threading.Event(), threading.Event()

    def send() -> None:
        base.connect(database_url)
        with transaction():
            execute("UPDATE emails SET status = 'sent', body_box = '' WHERE id = %s", (letter,))
            began.set()
            ended.wait(5)

    sending = threading.Thread(target=send)
    sending.start()
    began.wait(5)
    walked = resealing._walk(EMAILS, BOTH, 10)
    ended.set()
    sending.join()
    assert walked == 0, "the command waits for no row"
    assert resealing.seal_all(EMAILS, BOTH) == 0
    assert email(letter).body_box == ""


def test_a_row_that_was_locked_is_sealed_by_the_next_walk(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key(merchant())
    began, ended = threading.Event(), threading.Event()

    def lock() -> None:
        base.connect(database_url)
        with transaction():
            execute("SELECT 1 FROM api_keys FOR UPDATE")
            began.set()
            ended.wait(5)

    locking = threading.Thread(target=lock)
    locking.start()
    began.wait(5)

    def release(_pause_s: float) -> None:
        ended.set()
        locking.join()

    monkeypatch.setattr(resealing.time, "sleep", release)
    assert resealing.seal_all(KEYS, BOTH) == 1
    assert opened(key, NEW) == key.secret


def test_a_secret_whose_key_is_gone_is_named_and_kept(sluice_db: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resealing, "PAUSE_S", 0)
    shop = merchant()
    lost, key = new_key(shop, SecretBox("gone:" + base64.b64encode(b"g" * 32).decode())), new_key(shop)
    before = rows("SELECT secret_box FROM api_keys WHERE public_id = %s", (lost.public_id,))

    sluice_db.env["SECRET_KEYS"] = f"{NEW_KEY},{OLD_KEY}"
    outcome = sluice_db("secrets", "reseal")
    assert outcome.code == 1
    assert "api_keys: 1 sealed again by new" in outcome.out
    assert "sealed by other keys still: 1 of api_keys by gone" in outcome.err
    base.connect(sluice_db.env["DATABASE_URL"])
    assert rows("SELECT secret_box FROM api_keys WHERE public_id = %s", (lost.public_id,)) == before
    assert opened(key, NEW) == key.secret
    with pytest.raises(SecretBoxError):
        opened(key, OLD)
