"""Declares `sluice wallet addresses`: names the addresses of a wallet by index, on every family of networks."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, get_args

import typer

from chains.keys import Keys
from cli.output import CommandError, JsonFlag, show
from cli.wallet.files import (
    DEFAULT,
    DataOption,
    KeystoreOption,
    PassphraseFileOption,
    PassphraseOption,
    Source,
    asked_words,
    keys_of,
)
from core.addresses.addresses import display
from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.fields import Environment

COUNT_MAX: Final = 10_000
INDEX_MAX: Final = 2**31 - 1


def addresses(
    networks: Annotated[list[str] | None, typer.Argument(metavar="[NETWORK]...", help="Codes; all if none.")] = None,
    *,
    first: Annotated[int, typer.Option("--from", min=0, max=INDEX_MAX, help="The first deposit address.")] = 0,
    count: Annotated[int, typer.Option(min=0, max=COUNT_MAX, help="The number of deposit addresses.")] = 10,
    words: Annotated[bool, typer.Option("--words", help="Ask for the words on paper; no keystore is needed.")] = False,
    keystore: KeystoreOption = DEFAULT,
    data: DataOption = None,
    passphrase: PassphraseOption = None,
    passphrase_file: PassphraseFileOption = None,
    environment: Annotated[
        str, typer.Option(envvar="ENVIRONMENT", show_envvar=True, help="production, or development's chains.")
    ] = "production",
    as_json: JsonFlag = False,
) -> None:
    """Name the hot wallet and the deposit addresses of each family, from a keystore or from the words alone.

    Needs no database and no other setting. Networks of one family share their addresses.
    """
    families = _families(environment, networks or [])
    source = Source(path=keystore, data=data, passphrase=passphrase, passphrase_file=passphrase_file)
    keys = keys_of(asked_words() if words else source.mnemonic())
    indices = range(first, min(first + count, INDEX_MAX + 1))
    listed = [_listed(keys, served, indices) for served in families]
    lines = [line for each in listed for line in _lines(each)]
    document = {"address_public_key": keys.pool_public_key, "families": listed}
    show(document, [f"ADDRESS_PUBLIC_KEY={keys.pool_public_key}", *lines], as_json=as_json)


def _families(environment: str, codes: Sequence[str]) -> list[list[Network]]:
    """Return the named networks by family; all of the catalogue if none is named. Raises CommandError."""
    known = {name: name for name in get_args(Environment)}.get(environment)
    if known is None:
        raise CommandError(f"ENVIRONMENT is one of {', '.join(get_args(Environment))}")
    there = load_catalogue(known).networks
    if unknown := [code for code in codes if code not in there]:
        raise CommandError(f"the catalogue has no network {', '.join(unknown)}")
    by_family: dict[str, list[Network]] = {}
    for network in there.values():
        if not codes or network.code in codes:
            by_family.setdefault(network.family, []).append(network)
    return list(by_family.values())


def _listed(keys: Keys, served: Sequence[Network], indices: range) -> dict[str, Any]:
    network = served[0]
    deposits = zip(indices, keys.deposit_addresses(network, indices), strict=True)
    return {
        "family": network.family,
        "networks": [each.code for each in served],
        "hot": display(network, keys.hot_address(network)),
        "deposits": [{"index": index, "address": display(network, address)} for index, address in deposits],
    }


def _lines(listed: dict[str, Any]) -> Iterator[str]:
    yield f"{listed['family']}: {', '.join(listed['networks'])}"
    yield f"  hot  {listed['hot']}"
    yield from (f"  {each['index']}  {each['address']}" for each in listed["deposits"])
