"""Wallet links name the right recipient, coin and amount, in the form of each family's standard."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from core.catalogue.catalogue import load_catalogue
from core.invoices import uris

CATALOGUE = load_catalogue("production")
EVM = "0x52908400098527886E0F7030069857D2E4169EE7"
USDT_ON_ETHEREUM = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
USDT_ON_SOLANA = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"
USDT_ON_TON = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"


def request(coin: str, network: str, address: str, units: int) -> uris.Request:
    pair = CATALOGUE.pairs[coin, network]
    return uris.Request(network=CATALOGUE.networks[network], pair=pair, address=address, units=units)


@pytest.mark.parametrize(
    ("coin", "network", "address", "units", "link"),
    [
        # The example of BIP-21, but for its label.
        ("BTC", "bitcoin", "175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W", 2_030_000_000,
         "bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=20.3"),
        ("BTC", "bitcoin", "bc1qx", 1, "bitcoin:bc1qx?amount=0.00000001"),
        ("ETH", "ethereum", EVM, 2_014_000_000_000_000_000, f"ethereum:{EVM}@1?value=2014000000000000000"),
        ("BNB", "bsc", EVM, 1, f"ethereum:{EVM}@56?value=1"),
        ("USDT", "ethereum", EVM, 125_000_000,
         f"ethereum:{USDT_ON_ETHEREUM}@1/transfer?address={EVM}&uint256=125000000"),
        ("TRX", "tron", "TSxqGqbNs4YeDpRLsNnRe5M1aXbJyrD7oH", 1_500_000,
         "tron:TSxqGqbNs4YeDpRLsNnRe5M1aXbJyrD7oH?amount=1.5"),
        ("USDT", "tron", "TSxqGqbNs4YeDpRLsNnRe5M1aXbJyrD7oH", 1_500_000, ""),
        ("SOL", "solana", "mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN", 1_000_000_000,
         "solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=1"),
        ("USDT", "solana", "mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN", 10_000,
         f"solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=0.01&spl-token={USDT_ON_SOLANA}"),
        ("TON", "ton", "UQx", 1_500_000_000, "ton://transfer/UQx?amount=1500000000"),
        ("USDT", "ton", "UQx", 1_500_000, f"ton://transfer/UQx?amount=1500000&jetton={USDT_ON_TON}"),
    ],
)  # fmt: skip
def test_a_wallet_link_has_its_standards_form(coin: str, network: str, address: str, units: int, link: str) -> None:
    assert uris.wallet_uri(request(coin, network, address, units)) == link


def test_a_code_never_names_a_contract_as_its_target() -> None:
    """A wallet that reads only the target would send the money to the contract."""
    for coin, network in CATALOGUE.pairs:
        asked = request(coin, network, "RECIPIENT", 7)
        code = uris.code_uri(asked)
        target = urlsplit(code).path.strip("/").split("@")[0].removeprefix("transfer/")
        assert target in {"RECIPIENT", ""} or urlsplit(code).netloc == "transfer", (coin, network)
        if CATALOGUE.networks[network].family == "evm" and asked.is_token:
            assert code == ""
            assert parse_qs(urlsplit(uris.wallet_uri(asked)).query) == {"address": ["RECIPIENT"], "uint256": ["7"]}
