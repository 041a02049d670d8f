"""`sluice wallet`: makes and checks the keystore that the signer opens, and names its addresses. Run by operators."""

import json
from pathlib import Path
from typing import Annotated

import typer

from chains.family import WatchedDeriver
from chains.keys import Keys, load_keys, new_mnemonic
from chains.keystore import KeystoreError, seal
from cli.output import CommandError, JsonFlag, show
from cli.wallet import files
from cli.wallet.addresses import addresses
from cli.wallet.files import (
    DEFAULT,
    DataOption,
    KeystoreOption,
    PassphraseFileOption,
    PassphraseOption,
    Source,
    asked_new_passphrase,
    asked_words,
    keys_of,
)
from core.settings.settings import load_settings

app = typer.Typer(help="The gateway's root secret.", no_args_is_help=True)

app.command()(addresses)


@app.command()
def init(
    keystore: Annotated[Path, typer.Option(help="Where to write the keystore; never overwritten.")] = DEFAULT,
    *,
    import_words: Annotated[
        bool, typer.Option("--import", help="Ask for an existing BIP-39 mnemonic instead of making a new one.")
    ] = False,
    passphrase: PassphraseOption = None,
    show_mnemonic: Annotated[bool, typer.Option(help="Put a new mnemonic into --json output too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write an encrypted keystore and print ADDRESS_PUBLIC_KEY, which the other processes need.

    A new mnemonic is shown once, on the error stream. Write it down and keep it secret: it controls all the money.
    """
    try:
        mnemonic = asked_words() if import_words else new_mnemonic()
        keys = Keys(mnemonic)
        files.write_new(keystore, seal(mnemonic, passphrase or asked_new_passphrase()))
    except KeystoreError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        raise typer.BadParameter(f"{keystore}: {error.strerror}") from None
    _report(keystore, keys, backup=None if import_words else mnemonic, as_json=as_json, show_mnemonic=show_mnemonic)


@app.command()
def verify(
    keystore: KeystoreOption = DEFAULT,
    *,
    data: DataOption = None,
    passphrase: PassphraseOption = None,
    passphrase_file: PassphraseFileOption = None,
    words: Annotated[bool, typer.Option("--words", help="Ask for the words on paper, and compare.")] = False,
    public_key: Annotated[
        str | None,
        typer.Option("--public-key", envvar="ADDRESS_PUBLIC_KEY", show_envvar=True, help="The wallet's public key."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Open a keystore with its passphrase, and compare it with ADDRESS_PUBLIC_KEY and with the words on paper.

    Exits 1 if it does not open, or belongs to another wallet. Shows no secret, and needs no other setting.
    """
    source = Source(path=keystore, data=data, passphrase=passphrase, passphrase_file=passphrase_file)
    keys = keys_of(source.mnemonic())
    if public_key is not None and public_key != keys.pool_public_key:
        raise CommandError(f"{source.name} opens, but ADDRESS_PUBLIC_KEY belongs to another wallet")
    if words and keys_of(asked_words()).pool_public_key != keys.pool_public_key:
        raise CommandError(f"{source.name} opens, but these are the words of another wallet")
    document = {
        "keystore": source.name,
        "address_public_key": keys.pool_public_key,
        "public_key_compared": public_key is not None,
        "words_compared": words,
    }
    show(document, _verified(document), as_json=as_json)


def _verified(document: dict[str, object]) -> list[str]:
    lines = [f"{document['keystore']} opens", f"ADDRESS_PUBLIC_KEY={document['address_public_key']}"]
    lines += ["ADDRESS_PUBLIC_KEY of the settings is this wallet's"] if document["public_key_compared"] else []
    return lines + (["the words are this wallet's"] if document["words_compared"] else [])


@app.command()
def rekey(
    keystore: KeystoreOption = DEFAULT,
    *,
    passphrase: PassphraseOption = None,
    passphrase_file: PassphraseFileOption = None,
    new_passphrase_file: Annotated[
        Path | None, typer.Option(help="The file of the new passphrase; asked for where it is not given.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Seal a keystore with a new passphrase, in place; if the command is killed, the old or the new one opens it.

    The words and addresses stay. A copy of the keystore from before still opens with the old passphrase.
    """
    source = Source(path=keystore, data=None, passphrase=passphrase, passphrase_file=passphrase_file)
    mnemonic = source.mnemonic()
    new = asked_new_passphrase() if new_passphrase_file is None else files.passphrase_in(new_passphrase_file)
    try:
        files.rekey(keystore, mnemonic, new)
    except OSError as error:
        raise CommandError(f"{keystore}: {error.strerror}; the old or the new passphrase opens it") from None
    lines = [f"{keystore} opens with the new passphrase", "give it to the signer and start the signer again"]
    show({"keystore": str(keystore), "address_public_key": keys_of(mnemonic).pool_public_key}, lines, as_json=as_json)


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
    known = settings.catalogue.networks.get(network)
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
