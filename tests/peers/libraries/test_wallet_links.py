"""Each wallet link is read by the parsers that wallets are built from as the transfer that was meant."""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from core.catalogue.catalogue import Pair, load_catalogue
from core.invoices import uris
from devstack.servers.npm import NoNpmError, find_node
from tests.conftest import ROOT
from tests.peers.libraries.fetched import BIP21, ETH_URL, KIT, SOLANA_PAY, fetched
from tests.peers.libraries.library import Library

CATALOGUE: Final = load_catalogue("production")
CACHE: Final = ROOT / ".sluice" / "cache"
# An address of each family, in its shown form.
ADDRESSES: Final = {
    "bitcoin": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
    "evm": "0x52908400098527886E0F7030069857D2E4169EE7",
    "tron": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
    "solana": "mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN",
    "ton": "UQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_p0p",
}
# Of a network's smallest units: one, and one with all digits that a reader of floats still keeps.
AMOUNTS: Final = (1, 1_234_567)


def request(pair: Pair, units: int) -> uris.Request:
    network = CATALOGUE.networks[pair.network]
    return uris.Request(network=network, pair=pair, address=ADDRESSES[network.family], units=units)


def links(family: str) -> list[tuple[uris.Request, str]]:
    """Return every transfer on a family's networks that has a link, with its link."""
    pairs = [pair for pair in CATALOGUE.pairs.values() if CATALOGUE.networks[pair.network].family == family]
    asked = [request(pair, units) for pair in pairs for units in AMOUNTS]
    return [(each, uris.wallet_uri(each)) for each in asked if uris.wallet_uri(each)]


def read(family: str) -> list[tuple[uris.Request, Any]]:
    """Return the transfers of a family with the readings of their links; without npm a developer skips."""
    asked = links(family)
    try:
        bundles = [str(fetched(os.environ, CACHE, bundle)) for bundle in (BIP21, ETH_URL, SOLANA_PAY, KIT)]
        argv = [find_node(os.environ, CACHE), str(Path(__file__).with_name("wallets.cjs")), *bundles]
    except NoNpmError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    text = json.dumps([link for _, link in asked])
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, timeout=60)
    return list(zip((each for each, _ in asked), json.loads(done.stdout), strict=True))


def test_bitcoins_links() -> None:
    for asked, reading in read("bitcoin"):
        assert reading["address"] == asked.address
        assert Decimal(repr(reading["amount"])) == Decimal(asked.units).scaleb(-asked.pair.decimals)
        assert reading["parameters"] == ["amount"]


def test_links_of_evm_networks() -> None:
    for asked, reading in read("evm"):
        assert (reading["scheme"], reading["chain_id"]) == ("ethereum", asked.network.chain_identity)
        if asked.is_token:
            assert reading["target_address"] == asked.pair.contract
            assert reading["function_name"] == "transfer"
            assert reading["parameters"] == {"address": asked.address, "uint256": str(asked.units)}
        else:
            assert reading["target_address"] == asked.address
            assert "function_name" not in reading
            assert reading["parameters"] == {"value": str(asked.units)}


def test_solanas_links() -> None:
    for asked, reading in read("solana"):
        assert reading["address"] == asked.address
        assert Decimal(repr(reading["amount"])) == Decimal(asked.units).scaleb(-asked.pair.decimals)
        assert reading["token"] == asked.pair.contract


def account(friendly: str) -> str:
    """Return the account of a TON address as TEP-2 defines it."""
    raw = base64.urlsafe_b64decode(friendly)
    tag, workchain, number, checksum = raw[0], raw[1], raw[2:34], raw[34:]
    assert tag in {0x11, 0x51}
    assert binascii.crc_hqx(raw[:34], 0) == int.from_bytes(checksum, "big")
    return f"{workchain}:{number.hex()}"


def test_tons_links_name_accounts_in_the_form_of_their_standard() -> None:
    """There is no parser for ton://transfer that wallets share: the address is TEP-2's, the rest a URL's."""
    for asked, link in links("ton"):
        parts = urlsplit(link)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert (parts.scheme, parts.netloc) == ("ton", "transfer")
        assert account(parts.path.removeprefix("/")) == account(ADDRESSES["ton"])
        assert query.pop("amount") == str(asked.units)
        if asked.is_token:
            assert account(query.pop("jetton")) == account(asked.pair.contract or "")
        assert query == {}


def test_trons_links_name_an_account_of_tron(tronweb: Library) -> None:
    """TRON has no standard: the link is a target and an amount of the coin, and tokens have none."""
    for asked, link in links("tron"):
        parts = urlsplit(link)
        assert not asked.is_token
        assert (parts.scheme, parts.path) == ("tron", asked.address)
        assert tronweb.ask("isAddress", text=parts.path) is True
        assert parse_qs(parts.query) == {"amount": [asked.decimal]}


def test_each_family_is_read() -> None:
    assert {network.family for network in CATALOGUE.networks.values()} == set(ADDRESSES)
    assert all(links(family) for family in ADDRESSES)
