"""`sluice secrets`: makes the keys that seal secrets, and seals secrets again by a new one. Run by operators."""

import base64
import secrets
from datetime import UTC, datetime

import typer

from cli.output import CommandError, JsonFlag, show
from cli.session import database
from cli.shell.operators import ByOption, WhyOption, operator
from core.secrets.secretbox import SecretBox
from models.db.base import transaction
from models.ledger import acts
from models.outcomes import resealing
from models.outcomes.resealing import SEALED

app = typer.Typer(help="The keys in SECRET_KEYS.", no_args_is_help=True)

KEY_BYTES = 32


@app.command()
def new(*, as_json: JsonFlag = False) -> None:
    """Print an entry for SECRET_KEYS with a new random key; its id is the present moment."""
    key_id = f"k{datetime.now(UTC):%Y%m%d%H%M%S}"
    entry = f"{key_id}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"
    show({"entry": entry}, [entry], as_json=as_json)


@app.command()
def reseal(*, reason: WhyOption = "", by: ByOption = None, as_json: JsonFlag = False) -> None:
    """Seal all stored secrets again by the first of SECRET_KEYS, after which the other keys can go.

    May run while calls arrive, and again after it was killed. Exits 1 while a secret is sealed by another key: a
    process that seals by it still runs, or SECRET_KEYS lacks it.
    """
    who = operator(by)
    with database() as settings:
        box = SecretBox(settings.secret_keys)
        with transaction():
            # Before the batches: one that is killed has sealed some.
            acts.record("secrets.resealed", box.current, by=who, reason=reason)
        resealed = {sealed.table: resealing.seal_all(sealed, box) for sealed in SEALED}
        left = {sealed.table: resealing.remaining(sealed, box) for sealed in SEALED}
    lines = [f"{table}: {count} sealed again by {box.current}" for table, count in resealed.items()]
    lines += ["If a process has run with the old keys since, start it again and run this command once more."]
    show({"key": box.current, "resealed": resealed, "left": left}, lines, as_json=as_json)
    if any(left.values()):
        raise CommandError(f"sealed by other keys still: {_named(left)}; run the command again, or give it these keys")


def _named(left: dict[str, dict[str, int]]) -> str:
    return ", ".join(f"{count} of {table} by {kid}" for table, by_key in left.items() for kid, count in by_key.items())
