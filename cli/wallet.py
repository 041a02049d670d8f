"""`sluice wallet`: makes the keystore that the signer opens, and prints descriptors for watching. Run by operators."""

import json
import os
from pathlib import Path
from typing import Annotated, Final

import typer

from chains.family import WatchedDeriver
from chains.keys import Keys, load_keys, new_mnemonic
from chains.keystore import KeystoreError, seal
from core.catalogue.catalogue import load_catalogue
from core.settings.settings import load_settings

app = typer.Typer(help="The gateway's root secret.", no_args_is_help=True)

OWNER_ONLY: Final = 0o600


@app.command()
def init(
    keystore: Annotated[Path, typer.Option(help="Where to write the keystore; never overwritten.")] = Path(
        "wallet.keystore.json"
    ),
    *,
    import_words: Annotated[
        bool, typer.Option("--import", help="Ask for an existing BIP-39 mnemonic instead of making a new one.")
    ] = False,
    passphrase: Annotated[
        str | None,
        typer.Option(envvar="WALLET_PASSPHRASE", show_envvar=True, help="Asked for where it is not given."),
    ] = None,
    show_mnemonic: Annotated[bool, typer.Option(help="Put a new mnemonic into --json output too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write an encrypted keystore and print ADDRESS_PUBLIC_KEY, which the other processes need.

    A new mnemonic is shown once, on the error stream. Write it down and keep it secret: it controls all the money.
    """
    try:
        mnemonic = _asked_mnemonic() if import_words else new_mnemonic()
        keys = Keys(mnemonic)
        _write_new(keystore, seal(mnemonic, passphrase or _asked_passphrase()))
    except KeystoreError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise typer.BadParameter(f"{keystore}: {error.strerror}") from None
    _report(keystore, keys, backup=None if import_words else mnemonic, as_json=as_json, show_mnemonic=show_mnemonic)


@app.command()
def descriptor(
    network: Annotated[str, typer.Argument(help="The network's code.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the descriptors by which a watch-only wallet follows our addresses: deposits first, then the hot wallet.

    A descriptor shows all our addresses and their balances, and can sign nothing. The command opens the keystore.
    """
    settings = load_settings(role="signer")
    known = load_catalogue(settings.environment).networks.get(network)
    if known is None:
        raise typer.BadParameter(f"there is no network {network}")
    try:
        deriver = load_keys(settings).deriver(known)
    except (KeystoreError, LookupError) as error:
        raise typer.BadParameter(str(error)) from None
    if not isinstance(deriver, WatchedDeriver):
        raise typer.BadParameter(f"addresses on {network} cannot be watched by a public key")
    deposits, hot = deriver.descriptors()
    typer.echo(json.dumps({"deposits": deposits, "hot": hot}) if as_json else f"{deposits}\n{hot}")


def _asked_mnemonic() -> str:
    return str(typer.prompt("Mnemonic", hide_input=True, err=True))


def _asked_passphrase() -> str:
    return str(typer.prompt("Passphrase for the keystore", hide_input=True, confirmation_prompt=True, err=True))


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read. An existing file is kept: it may be a keystore that holds money."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _report(keystore: Path, keys: Keys, *, backup: str | None, as_json: bool, show_mnemonic: bool) -> None:
    if not as_json:
        if backup is not None:
            typer.echo(f"Write these words down, they are not shown again:\n\n  {backup}\n", err=True)
        typer.echo(f"WALLET_KEYSTORE={keystore.resolve()}\nADDRESS_PUBLIC_KEY={keys.pool_public_key}")
        return
    result = {"keystore": str(keystore.resolve()), "address_public_key": keys.pool_public_key}
    if backup is not None and show_mnemonic:
        result["mnemonic"] = backup
    typer.echo(json.dumps(result))
