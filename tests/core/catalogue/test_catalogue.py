"""The catalogue offers the documented pairs, pins the main networks' contracts and never contradicts itself."""

import copy
import dataclasses
import hashlib
import json
import re
from base64 import urlsafe_b64decode
from binascii import crc_hqx
from typing import Any, cast, get_args

import msgspec
import pytest
import sha3

from core.catalogue.catalogue import CATALOGUE_FILE, Catalogue, Pair, load_catalogue
from core.catalogue.families import (
    TRAITS,
    Family,
    Parameters,
    Traits,
    bitcoin_parameters,
    evm_parameters,
    stored_txid,
    traits_of,
    tron_parameters,
)
from core.catalogue.fields import Environment
from core.catalogue.reader import CatalogueError, read_catalogue
from core.money import PrecisionLostError, format_coin

ENVIRONMENTS: tuple[Environment, ...] = get_args(Environment)
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

# Typed from the API reference's table of supported pairs.
NETWORKS_BY_CURRENCY = {
    "USDT": "tron ethereum bsc polygon avalanche solana ton base arbitrum",
    "USDC": "ethereum bsc polygon avalanche solana base arbitrum",
    "DAI": "ethereum polygon",
    "POL": "polygon ethereum",
    "ETH": "ethereum",
    "BNB": "bsc",
    "AVAX": "avalanche",
    "TRX": "tron",
    "SOL": "solana",
    "TON": "ton",
    "BTC": "bitcoin",
}
FIATS = "USD EUR GBP RUB UAH PLN CZK TRY CNY INR BRL CAD AUD CHF AED ZAR MXN IDR THB VND NGN JPY KRW"
PRECISIONS = {"USDT": 6, "USDC": 6, "TRX": 6, "BTC": 8, "SOL": 9, "TON": 9}  # the others 18
CHAIN_IDS = {"ethereum": 1, "bsc": 56, "polygon": 137, "avalanche": 43114, "base": 8453, "arbitrum": 42161}
GENESES = {
    "tron": "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc",
    "solana": "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    "ton": "F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=",
    "bitcoin": "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
}

# A wrong contract or number of decimals loses money, so both are typed twice: a change has to be meant.
TOKENS = {
    ("USDT", "tron"): ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", 6),
    ("USDT", "ethereum"): ("0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
    ("USDT", "bsc"): ("0x55d398326f99059fF775485246999027B3197955", 18),
    ("USDT", "polygon"): ("0xc2132D05D31c914a87C6611C10748AEb04B58e8F", 6),
    ("USDT", "avalanche"): ("0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7", 6),
    ("USDT", "solana"): ("Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB", 6),
    ("USDT", "ton"): ("EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs", 6),
    ("USDT", "base"): ("0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2", 6),
    ("USDT", "arbitrum"): ("0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", 6),
    ("USDC", "ethereum"): ("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6),
    ("USDC", "bsc"): ("0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d", 18),
    ("USDC", "polygon"): ("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", 6),
    ("USDC", "avalanche"): ("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", 6),
    ("USDC", "solana"): ("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6),
    ("USDC", "base"): ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6),
    ("USDC", "arbitrum"): ("0xaf88d065e77c8cC2239327C5EDb3A432268e5831", 6),
    ("DAI", "ethereum"): ("0x6B175474E89094C44Da98b954EedeAC495271d0F", 18),
    ("DAI", "polygon"): ("0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063", 18),
    ("POL", "ethereum"): ("0x455e53CBB86018Ac2B8092FdCd39d8444aFFC3F6", 18),
}
NATIVE_DECIMALS = {"ETH": 18, "BNB": 18, "AVAX": 18, "POL": 18, "TRX": 6, "SOL": 9, "TON": 9, "BTC": 8}


@pytest.fixture(params=ENVIRONMENTS)
def catalogue(request: pytest.FixtureRequest) -> Catalogue:
    return load_catalogue(request.param)


def test_the_catalogue_offers_exactly_the_27_documented_pairs(catalogue: Catalogue) -> None:
    documented = [(coin, network) for coin, names in NETWORKS_BY_CURRENCY.items() for network in names.split()]

    assert len(documented) == 27
    assert list(catalogue.pairs) == documented
    assert {coin: " ".join(catalogue.networks_of(coin)) for coin in catalogue.assets} == NETWORKS_BY_CURRENCY


def test_the_catalogue_has_the_ten_networks_and_their_chain_ids(catalogue: Catalogue) -> None:
    names = {network for networks in NETWORKS_BY_CURRENCY.values() for network in networks.split()}

    assert len(names) == 10
    assert set(catalogue.networks) == names
    identities = {code: network.chain_identity for code, network in catalogue.networks.items()}
    assert {code: int(identity) for code, identity in identities.items() if identity.isdecimal()} == CHAIN_IDS
    assert {code for code, network in catalogue.networks.items() if network.family == "evm"} == set(CHAIN_IDS)


def test_each_main_network_has_an_explorer_and_no_development_network_has() -> None:
    explorers = [network.explorer for network in load_catalogue("production").networks.values()]
    assert all(re.fullmatch(r"https://[a-z.]+/[a-z/#]*\{txid\}", explorer) for explorer in explorers)
    assert len(set(explorers)) == len(explorers)
    assert {network.explorer for network in load_catalogue("development").networks.values()} == {""}


def test_a_main_network_and_its_development_network_have_different_identities() -> None:
    production, development = load_catalogue("production").networks, load_catalogue("development").networks

    assert {code: production[code].chain_identity for code in GENESES} == GENESES
    assert not {development[code].chain_identity for code in GENESES} & set(GENESES.values())


def test_every_family_has_its_traits_and_only_families_with_counters_send_in_turn() -> None:
    assert set(TRAITS) == set(get_args(Family)) == {n.family for n in load_catalogue("production").networks.values()}
    assert {family: traits.claim for family, traits in TRAITS.items()} == {
        "evm": "counter", "ton": "counter", "tron": "window", "solana": "window", "bitcoin": "coins",
    }  # fmt: skip
    assert [family for family, traits in TRAITS.items() if traits.has_memo] == ["solana", "ton"]
    assert [family for family, traits in TRAITS.items() if traits.has_hidden_transfers] == ["evm"]
    assert [family for family, traits in TRAITS.items() if traits.has_mempool or not traits.has_sender] == ["bitcoin"]
    assert {family: (traits.outputs_max, traits.in_flight_max) for family, traits in TRAITS.items()} == {
        "evm": (1, 64), "tron": (1, 64), "solana": (1, 64), "ton": (50, 1), "bitcoin": (100, 25),
    }  # fmt: skip
    assert traits_of(load_catalogue("production").networks["bsc"]) is TRAITS["evm"]


def test_every_question_about_a_family_has_its_answer() -> None:
    asked = {name for name, member in vars(Traits).items() if isinstance(member, property)}
    true = {family: {name for name in asked if getattr(traits, name)} for family, traits in TRAITS.items()}
    counters = {"has_counters", "notes_departures_by_counter", "has_sweeps", "funds_addresses"}
    windows = {"notes_departures_by_sender", "has_sweeps", "has_windows", "funds_addresses", "spends_expire"}
    coins = {"spends_coins", "has_unowned_coins", "has_fee_per_deposit", "always_has_effect", "resumes_on_new_block"}

    assert asked == counters | windows | coins | {"counters_end"}
    assert true == {
        "evm": counters,
        "ton": counters | {"counters_end", "spends_expire"},
        "tron": windows,
        "solana": windows - {"funds_addresses"},
        "bitcoin": coins,
    }


def test_every_family_answers_each_question_about_parameters() -> None:
    silent = Parameters()

    assert (silent.fee_cap, silent.payout_measure_max) == (None, 0)
    assert list(silent.problems("any", "TON", frozenset())) == []
    with pytest.raises(ValueError, match="tron is no network of bitcoin"):
        bitcoin_parameters(load_catalogue("production").networks["tron"])
    with pytest.raises(ValueError, match="tron is no EVM network"):
        evm_parameters(load_catalogue("production").networks["tron"])
    with pytest.raises(ValueError, match="solana is no TRON network"):
        tron_parameters(load_catalogue("production").networks["solana"])


def test_the_catalogue_prices_in_23_fiat_currencies_and_every_coin(catalogue: Catalogue) -> None:
    assert " ".join(catalogue.fiats) == FIATS
    assert len(catalogue.fiats) == 23
    assert {code: catalogue.digits(code) for code in catalogue.fiats} == {
        code: 0 if code in {"JPY", "KRW"} else 2 for code in FIATS.split()
    }
    assert all(catalogue.is_pricing_currency(code) for code in [*FIATS.split(), *NETWORKS_BY_CURRENCY])


@pytest.mark.parametrize("code", ["KZT", "KGS", "UZS", "LTC", "DOGE", "BCH", "DASH", "XMR", "usd", "usdt", " USD", ""])
def test_unknown_currencies_and_networks_are_refused(catalogue: Catalogue, code: str) -> None:
    assert not catalogue.is_pricing_currency(code)
    assert catalogue.networks_of(code) == ()
    with pytest.raises(KeyError):
        catalogue.digits(code)
    with pytest.raises(KeyError):
        catalogue.scale(code)


@pytest.mark.parametrize(
    ("currency", "network"), [("ETH", "base"), ("ETH", "arbitrum"), ("USDC", "tron"), ("BTC", "x")]
)
def test_a_missing_pair_returns_none(catalogue: Catalogue, currency: str, network: str) -> None:
    assert catalogue.pair(currency, network) is None


def test_coins_have_the_documented_precision_and_the_scale_of_their_finest_network(catalogue: Catalogue) -> None:
    assert {code: catalogue.digits(code) for code in catalogue.assets} == {
        code: PRECISIONS.get(code, 18) for code in NETWORKS_BY_CURRENCY
    }
    assert catalogue.ledger_scales() == {
        "USDT": 18, "USDC": 18, "DAI": 18, "POL": 18, "ETH": 18, "BNB": 18, "AVAX": 18, "TRX": 6, "SOL": 9, "TON": 9,
        "BTC": 8,
    }  # fmt: skip
    assert catalogue.scale("USDT") == 18


def test_tokens_are_pinned_to_the_main_networks_contracts_and_decimals(catalogue: Catalogue) -> None:
    tokens = {key: (pair.contract, pair.decimals) for key, pair in catalogue.pairs.items() if pair.contract}
    natives = {key[0]: pair.decimals for key, pair in catalogue.pairs.items() if pair.contract is None}

    assert tokens == TOKENS
    assert natives == NATIVE_DECIMALS


def test_a_network_names_its_fee_coin_and_whether_it_is_offered(catalogue: Catalogue) -> None:
    assert {code: (network.gas_currency, network.native) for code, network in catalogue.networks.items()} == {
        "ethereum": ("ETH", "ETH"), "bsc": ("BNB", "BNB"), "polygon": ("POL", "POL"), "avalanche": ("AVAX", "AVAX"),
        "base": ("ETH", None), "arbitrum": ("ETH", None), "tron": ("TRX", "TRX"), "solana": ("SOL", "SOL"),
        "ton": ("TON", "TON"), "bitcoin": ("BTC", "BTC"),
    }  # fmt: skip


def test_the_pairs_of_a_network_are_listed(catalogue: Catalogue) -> None:
    assert [pair.currency for pair in catalogue.pairs_on("polygon")] == ["USDT", "USDC", "DAI", "POL"]
    assert catalogue.pairs_on("nowhere") == ()


def test_production_uses_real_depths_and_amounts_worth_a_sweep() -> None:
    production = load_catalogue("production")

    assert {code: (n.confirmations, n.maturity) for code, n in production.networks.items()} == {
        "ethereum": (12, 64), "bsc": (20, 60), "polygon": (64, 256), "avalanche": (12, 24), "base": (30, 450),
        "arbitrum": (240, 3600), "tron": (20, 27), "solana": (5, 32), "ton": (5, 30), "bitcoin": (2, 6),
    }  # fmt: skip
    assert [production.pairs["USDT", network].min_deposit_units for network in ("ethereum", "base", "bsc")] == [
        5_000_000, 1_000_000, 10**18,
    ]  # fmt: skip


def test_every_evm_network_has_its_gas_parameters() -> None:
    networks = load_catalogue("production").networks.items()
    by_code = {code: evm_parameters(n) for code, n in networks if n.family == "evm"}

    assert {code: n.gas_cap_gwei for code, n in by_code.items()} == {
        "ethereum": 300, "bsc": 20, "polygon": 1500, "avalanche": 300, "base": 20, "arbitrum": 20,
    }  # fmt: skip
    assert [code for code, n in by_code.items() if not n.has_base_fee] == ["bsc"]
    assert {code: n.coin_gas for code, n in by_code.items() if n.coin_gas != 21_000} == {"arbitrum": 100_000}
    assert {code: n.data_fee_oracle for code, n in by_code.items() if n.data_fee_oracle} == {
        "base": "0x420000000000000000000000000000000000000F",
    }


def test_a_payout_of_coin_is_charged_gas_for_a_contract_wallet() -> None:
    networks = [n for n in load_catalogue("production").networks.values() if n.family == "evm"]
    assert {(n.native, n.code): evm_parameters(n).transfer_gas[n.native] for n in networks if n.native} == {
        ("ETH", "ethereum"): 30_000, ("BNB", "bsc"): 30_000, ("POL", "polygon"): 30_000, ("AVAX", "avalanche"): 30_000,
    }  # fmt: skip


def test_development_differs_only_in_pace_and_minimums() -> None:
    development, production = load_catalogue("development"), load_catalogue("production")

    for code, network in development.networks.items():
        # No development chain is a rollup or has an explorer; off EVM they have an identity and addresses of their own.
        same = dataclasses.replace(
            production.networks[code],
            explorer="",
            confirmations=2,
            maturity=4,
            block_time_ms=1000,
            chain_identity=network.chain_identity if network.family != "evm" else str(CHAIN_IDS[code]),
            family_parameters=in_development(production.networks[code].family_parameters),
        )
        assert network == same
    for key, pair in development.pairs.items():
        assert pair == dataclasses.replace(
            production.pairs[key], min_deposit_units=pair.min_deposit_units, min_payout_units=pair.min_payout_units
        )
        assert pair.min_deposit_units == 2 * pair.min_payout_units <= production.pairs[key].min_deposit_units
    assert production.assets["TON"].name == "Gram"
    assert (development.assets, development.fiats) == (production.assets, production.fiats)


def in_development(parameters: Any) -> Parameters:
    changes = {"evm": {"data_fee_oracle": None}, "ton": {"is_test": True}, "bitcoin": {"chain": "regtest"}}
    return cast("Parameters", msgspec.structs.replace(parameters, **changes.get(parameters.family, {})))


@pytest.mark.parametrize("network", NETWORKS_BY_CURRENCY["USDT"].split())
def test_development_takes_1_usdt_and_pays_out_half_on_every_network(network: str) -> None:
    pair = load_catalogue("development").pairs["USDT", network]

    assert format_coin(pair.min_deposit_units, pair.decimals) == "1"
    assert format_coin(pair.min_payout_units, pair.decimals) == "0.5"


# Contracts: the check digits of every address form -----------------------------------------------------------------


def base58_bytes(text: str) -> bytes:
    number = 0
    for character in text:
        number = number * 58 + BASE58.index(character)
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def is_evm_contract(text: str) -> bool:
    digits = text.removeprefix("0x")
    hashed = sha3.keccak_256(digits.lower().encode()).hexdigest()
    cased = (d.upper() if int(h, 16) >= 8 else d for d, h in zip(digits.lower(), hashed, strict=False))
    return len(text) == 42 and text == "0x" + "".join(cased)


def is_tron_contract(text: str) -> bool:
    payload, check = base58_bytes(text)[:-4], base58_bytes(text)[-4:]
    twice = hashlib.sha256(hashlib.sha256(payload).digest()).digest()
    return len(payload) == 21 and payload[0] == 0x41 and twice[:4] == check


def is_solana_contract(text: str) -> bool:
    return len(base58_bytes(text)) == 32


def is_ton_contract(text: str) -> bool:
    raw = urlsafe_b64decode(text)
    bounceable, basechain = raw[0] == 0x11, raw[1] == 0
    return len(raw) == 36 and bounceable and basechain and crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "big")


CHECKS = {"evm": is_evm_contract, "tron": is_tron_contract, "solana": is_solana_contract, "ton": is_ton_contract}


@pytest.mark.parametrize(("currency", "network"), sorted(TOKENS))
def test_every_contract_carries_valid_check_digits(currency: str, network: str) -> None:
    production = load_catalogue("production")
    contract = production.pairs[currency, network].contract
    check = CHECKS[production.networks[network].family]

    assert contract is not None
    assert check(contract)
    if check is not is_solana_contract:  # a Solana address has no check digits
        assert not check(contract[:-1] + ("A" if contract[-1] != "A" else "B"))


def test_the_checksum_of_evm_contracts_depends_on_case() -> None:
    contract = TOKENS["USDT", "ethereum"][0]

    assert not is_evm_contract(contract.lower())


# Scales ------------------------------------------------------------------------------------------------------------


def test_token_units_become_ledger_units_and_back() -> None:
    on_tron, on_bsc = (load_catalogue("production").pairs["USDT", network] for network in ("tron", "bsc"))

    assert on_tron.to_ledger(1_500_000, 18) == 1_500_000 * 10**12
    assert on_bsc.to_ledger(15 * 10**17, 18) == 15 * 10**17
    assert on_tron.from_ledger(1_500_000 * 10**12, 18) == 1_500_000


def test_an_amount_too_fine_for_a_network_is_refused() -> None:
    on_tron = load_catalogue("production").pairs["USDT", "tron"]

    with pytest.raises(PrecisionLostError):
        on_tron.from_ledger(1_500_000 * 10**12 + 1, 18)


# Nothing can be changed at run time --------------------------------------------------------------------------------


def test_the_catalogue_is_read_once_and_immutable(catalogue: Catalogue) -> None:
    pair = catalogue.pairs["USDT", "tron"]

    assert load_catalogue("production") is load_catalogue("production")
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.contract = None  # type: ignore[misc]
    gas = evm_parameters(catalogue.networks["bsc"]).transfer_gas
    with pytest.raises(AttributeError):
        catalogue.networks["bsc"].family_parameters.gas_cap_gwei = 1  # type: ignore[misc,union-attr]
    for table in (
        catalogue.pairs,
        catalogue.networks,
        catalogue.assets,
        catalogue.fiats,
        catalogue.ledger_scales(),
        gas,
    ):
        with pytest.raises(TypeError):
            table["mine"] = pair  # type: ignore[index]


# Refusals ----------------------------------------------------------------------------------------------------------

Data = dict[str, Any]


def row(data: Data, table: str, **where: str) -> Data:
    match: Data = next(row for row in data[table] if where.items() <= row.items())
    return match


def pair_row(data: Data, currency: str, network: str) -> Data:
    return row(data, "pairs", currency=currency, network=network)


def parameters_row(data: Data, network: str) -> Data:
    family_parameters: Data = row(data, "networks", code=network)["family_parameters"]
    return family_parameters


def without(items: list[Data], item: Data) -> list[Data]:
    return [other for other in items if other is not item]


MUTATIONS: dict[str, tuple[Any, str]] = {
    # The shape of the file and of its rows
    "an unknown table": (lambda d: d.update(coins=[]), "unknown field `coins`"),
    "a missing table": (lambda d: d.pop("pairs"), "missing required field `pairs`"),
    "an unknown field of a network": (lambda d: row(d, "networks", code="bsc").update(rpc="x"), "Network has other"),
    "a missing field of a network": (lambda d: row(d, "networks", code="bsc").pop("maturity"), "Network has other"),
    "a computed field": (lambda d: row(d, "assets", code="BTC").update(scale=8), "Asset has other"),
    "an unknown field of a fiat": (lambda d: row(d, "fiats", code="USD").update(sign="$"), "Fiat has other"),
    "an unknown field of a pair": (lambda d: pair_row(d, "BTC", "bitcoin").update(fee=1), "unknown field `fee`"),
    "an unknown field of development": (lambda d: d["development"].update(contracts={}), "unknown field `contracts`"),
    "a number as text": (lambda d: row(d, "networks", code="tron").update(block_time_ms="3000"), "Expected `int"),
    "true for one": (lambda d: parameters_row(d, "bsc").update(coin_gas=True), "Expected `int`"),
    "a chain id as a number": (lambda d: row(d, "networks", code="bsc").update(chain_identity=56), "Expected `str`"),
    "a network without parameters": (lambda d: row(d, "networks", code="tron").pop("family_parameters"), "Network has"),
    "a fraction of a block": (lambda d: row(d, "networks", code="tron").update(block_time_ms=1.5), "Expected `int`"),
    "a block without time": (lambda d: row(d, "networks", code="tron").update(block_time_ms=0), ">= 1"),
    "no confirmations": (lambda d: row(d, "networks", code="tron").update(confirmations=0), ">= 1"),
    "an unknown family": (lambda d: parameters_row(d, "tron").update(family="cosmos"), "Invalid value 'cosmos'"),
    "no family": (lambda d: parameters_row(d, "tron").pop("family"), "missing required field `family`"),
    "an unknown chain of bitcoin": (lambda d: parameters_row(d, "bitcoin").update(chain="signet"), "Invalid enum"),
    "a lower-case currency": (lambda d: row(d, "fiats", code="USD").update(code="usd"), "matching regex"),
    "an upper-case network": (lambda d: row(d, "networks", code="tron").update(code="TRON"), "matching regex"),
    "a nameless coin": (lambda d: row(d, "assets", code="BTC").update(name=""), "length >= 1"),
    "too many digits": (lambda d: row(d, "fiats", code="USD").update(digits=19), "<= 18"),
    # One record against another
    "a network twice": (lambda d: d["networks"].append(row(d, "networks", code="bsc")), "bsc appears twice"),
    "a coin twice": (lambda d: d["assets"].append(row(d, "assets", code="BTC")), "BTC appears twice"),
    "a fiat twice": (lambda d: d["fiats"].append(row(d, "fiats", code="USD")), "USD appears twice"),
    "a pair twice": (lambda d: d["pairs"].append(pair_row(d, "BTC", "bitcoin")), "('BTC', 'bitcoin') appears twice"),
    "a coin that is a fiat": (
        lambda d: d["fiats"].append({"code": "BTC", "name": "Bitcoin", "digits": 2}), "BTC is both",
    ),
    "a pair of an unknown coin": (lambda d: pair_row(d, "BTC", "bitcoin").update(currency="LTC"), "LTC on bitcoin"),
    "a pair on an unknown network": (lambda d: pair_row(d, "DAI", "polygon").update(network="nowhere"), "nowhere is"),
    "a coin on no network": (
        lambda d: d.update(pairs=without(d["pairs"], pair_row(d, "AVAX", "avalanche"))), "AVAX is on no network",
    ),
    "a network without a coin": (
        lambda d: d.update(pairs=[p for p in d["pairs"] if p["network"] != "base"]), "base is unknown, or carries",
    ),
    "a network that takes fees in an unknown coin": (
        lambda d: row(d, "networks", code="base").update(gas_currency="OPX"), "base takes fees in OPX",
    ),
    "a network that takes fees in a fiat": (
        lambda d: row(d, "networks", code="base").update(gas_currency="USD"), "base takes fees in USD",
    ),
    "maturity before confirmation": (
        lambda d: row(d, "networks", code="bitcoin").update(maturity=1), "bitcoin matures before it confirms",
    ),
    "a name for a chain id": (
        lambda d: row(d, "networks", code="bsc").update(chain_identity="bsc"), "bsc: its identity is no chain id",
    ),
    "a chain id of zero": (
        lambda d: row(d, "networks", code="bsc").update(chain_identity="0"), "bsc: its identity is no chain id",
    ),
    "a chain id with a zero before": (
        lambda d: row(d, "networks", code="bsc").update(chain_identity="056"), "bsc: its identity is no chain id",
    ),
    "a network without identity": (lambda d: row(d, "networks", code="bsc").update(chain_identity=""), "length >= 1"),
    "a chain id twice": (lambda d: row(d, "networks", code="bsc").update(chain_identity="1"), "1 appears twice"),
    "a genesis twice": (
        lambda d: row(d, "networks", code="tron").update(chain_identity=GENESES["bitcoin"]), "appears twice",
    ),
    "a gas cap off EVM": (lambda d: parameters_row(d, "tron").update(gas_cap_gwei=7), "unknown field `gas_cap_gwei`"),
    "a cluster whose identity is no block's hash": (
        lambda d: row(d, "networks", code="solana").update(chain_identity="main"), "no block's hash",
    ),
    "a TON network whose identity is no hash": (
        lambda d: row(d, "networks", code="ton").update(chain_identity="main!"), "no hash in base64",
    ),
    "a TON network whose identity has another length": (
        lambda d: row(d, "networks", code="ton").update(chain_identity="AAAA"), "no hash in base64",
    ),
    "a TRON network whose identity is no block's id": (
        lambda d: row(d, "networks", code="tron").update(chain_identity="7"), "no block's id",
    ),
    "a token without its energy": (
        lambda d: parameters_row(d, "tron").update(transfer_energy={}), "USDT is not offered there, or has no figure",
    ),
    "an EVM network without a gas cap": (
        lambda d: parameters_row(d, "bsc").pop("gas_cap_gwei"), "missing required field `gas_cap_gwei`",
    ),
    "an EVM network without gas figures": (
        lambda d: parameters_row(d, "base").pop("coin_gas"), "missing required field `coin_gas`",
    ),
    "base fees off EVM": (
        lambda d: parameters_row(d, "ton").update(has_base_fee=True), "unknown field `has_base_fee`",
    ),
    "an oracle off EVM": (
        lambda d: parameters_row(d, "ton").update(data_fee_oracle="0x00"), "unknown field `data_fee_oracle`",
    ),
    "a payout of coin for less gas than a plain transfer": (
        lambda d: parameters_row(d, "bsc").update(coin_gas=30_001), "bsc: its own coin's gas, of BNB",
    ),
    "a token without a contract": (
        lambda d: pair_row(d, "USDT", "tron").update(contract=None), "USDT on tron: its own coin",
    ),
    "a contract that is misspelt": (
        lambda d: pair_row(d, "USDT", "ton").update(contract=TOKENS["USDT", "ton"][0][:-1] + "A"),
        "USDT on ton: The address is no TON address",
    ),
    "a contract of another family": (
        lambda d: pair_row(d, "USDT", "solana").update(contract=TOKENS["USDT", "tron"][0]),
        "USDT on solana: The address is one of another kind of network.",
    ),
    "two spellings of one contract": (
        lambda d: d["pairs"].append({**pair_row(d, "USDT", "ton"), "currency": "USDC",
                                     "contract": TOKENS["USDT", "ton"][0].replace("_", "/")}),
        "ton 0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe appears twice",
    ),
    "a native coin with a contract": (
        lambda d: pair_row(d, "ETH", "ethereum").update(contract="0x00"), "ETH on ethereum: its own coin",
    ),
    "two coins of one contract": (
        lambda d: pair_row(d, "USDC", "bsc").update(contract=TOKENS["USDT", "bsc"][0].lower()),
        "bsc 0x55d398326f99059ff775485246999027b3197955 appears twice",
    ),
    "gas off EVM": (lambda d: parameters_row(d, "tron").update(transfer_gas={}), "unknown field `transfer_gas`"),
    "an EVM pair without gas": (
        lambda d: parameters_row(d, "bsc")["transfer_gas"].pop("BNB"), "bsc: BNB is not offered there, or has no",
    ),
    "gas of a coin that is not there": (
        lambda d: parameters_row(d, "bsc")["transfer_gas"].update(POL=70_000), "bsc: POL is not offered there",
    ),
    "a coin that takes no gas": (lambda d: parameters_row(d, "bsc")["transfer_gas"].update(BNB=0), ">= 1"),
    "a token coarser than its coin": (
        lambda d: pair_row(d, "DAI", "polygon").update(decimals=6), "DAI on polygon: unknown, or coarser",
    ),
    "a minimum finer than the coin": (
        lambda d: pair_row(d, "USDT", "bsc").update(min_deposit="1.0000001"), "at most 6 fractional digits",
    ),
    "a minimum as a number": (lambda d: pair_row(d, "USDT", "bsc").update(min_payout=1), "Expected `str`"),
    "a minimum of zero": (lambda d: pair_row(d, "BNB", "bsc").update(min_payout="0"), ">= 1"),
    # Development
    "development matures early": (lambda d: d["development"].update(maturity=1), "development matures before"),
    "no minimums for a coin": (lambda d: d["development"]["minimums"].pop("POL"), "POL is unknown, or has no minimums"),
    "minimums for no coin": (
        lambda d: d["development"]["minimums"].update(LTC={"deposit": "1", "payout": "1"}), "LTC is unknown",
    ),
}  # fmt: skip


def read(data: Data, environment: Environment) -> Catalogue:
    return read_catalogue(json.dumps(data).encode(), environment)


@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_contradictory_catalogue_is_refused(fault: str) -> None:
    mutate, message = MUTATIONS[fault]
    data = json.loads(CATALOGUE_FILE.read_bytes())
    assert read(copy.deepcopy(data), "production").pairs

    mutate(data)

    with pytest.raises(CatalogueError) as refusal:
        read(data, "production")
    assert message in str(refusal.value)


@pytest.mark.parametrize("deposit", ["0", "-1", "0.0000001", "1e3", ""])
def test_a_bad_minimum_of_development_is_refused_there(deposit: str) -> None:
    data = json.loads(CATALOGUE_FILE.read_bytes())
    data["development"]["minimums"]["USDT"]["deposit"] = deposit

    with pytest.raises(CatalogueError):
        read(data, "development")


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"fiats": NaN}'])
def test_a_malformed_catalogue_is_refused(raw: bytes) -> None:
    with pytest.raises(CatalogueError):
        read_catalogue(raw, "production")


def test_a_new_token_needs_only_a_row() -> None:
    data = json.loads(CATALOGUE_FILE.read_bytes())
    there = {"network": "base", "contract": "0x" + "12" * 20, "decimals": 18}
    data["pairs"].append({**pair_row(data, "DAI", "polygon"), **there})
    parameters_row(data, "base")["transfer_gas"]["DAI"] = 70_000

    catalogue = read(data, "production")

    assert catalogue.networks_of("DAI") == ("ethereum", "polygon", "base")
    assert isinstance(catalogue.pair("DAI", "base"), Pair)


def test_hexadecimal_transaction_ids_are_stored_in_lower_case() -> None:
    networks = load_catalogue("production").networks
    assert stored_txid(networks["ethereum"], "0xABc") == "0xabc"
    base58 = next(network for network in networks.values() if network.family == "solana")
    assert stored_txid(base58, "5Tz") == "5Tz"
