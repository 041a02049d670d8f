"""`sluice secrets`: makes the keys that seal secrets. Run by operators; opens no store."""

import base64
import secrets
from datetime import UTC, datetime

import typer

from cli.output import JsonFlag, show

app = typer.Typer(help="The keys in SECRET_KEYS.", no_args_is_help=True)

KEY_BYTES = 32


@app.callback()
def _group() -> None:
    """Keep the command's name, since the group has one command."""


@app.command()
def new(*, as_json: JsonFlag = False) -> None:
    """Print an entry for SECRET_KEYS with a new random key; its id is the present moment."""
    key_id = f"k{datetime.now(UTC):%Y%m%d%H%M%S}"
    entry = f"{key_id}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"
    show({"entry": entry}, [entry], as_json=as_json)
