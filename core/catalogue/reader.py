"""Reads catalogue.json strictly: any inconsistency stops the start.

Called by core.catalogue.catalogue.load_catalogue.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from core.addresses.addresses import AddressError, parse, stored_form
from core.catalogue.catalogue import Asset, Catalogue, Fiat, Network, Pair
from core.catalogue.fields import Digits, Environment, Positive
from core.money import parse_units, rescale

Row = dict[str, Any]
Record = TypeVar("Record", Fiat, Asset, Network)
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class CatalogueError(Exception):
    """The catalogue contradicts itself; the message says where."""


class _PairRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    currency: str
    network: str
    contract: str | None
    decimals: Digits
    # Coins, as decimal strings.
    min_deposit: str
    min_payout: str


class _Minimums(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deposit: str
    payout: str


class _Development(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    confirmations: Positive
    maturity: Positive
    block_time_ms: Positive
    minimums: dict[str, _Minimums]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fiats: list[Row]
    assets: list[Row]
    networks: list[Row]
    pairs: list[_PairRow]
    development: _Development


def read_catalogue(raw: bytes, environment: Environment) -> Catalogue:
    """Build the catalogue of an environment, or raise CatalogueError."""
    try:
        file = msgspec.json.decode(raw, type=_File)
        catalogue = _build(file, environment)
    except msgspec.DecodeError as error:
        raise CatalogueError(str(error)) from error
    if problem := next(_problems(catalogue, file.development), None):
        raise CatalogueError(problem)
    return catalogue


def _build(file: _File, environment: Environment) -> Catalogue:
    scales: defaultdict[str, int] = defaultdict(int)
    for row in file.pairs:
        scales[row.currency] = max(scales[row.currency], row.decimals)
    natives = {row.network: row.currency for row in file.pairs if row.contract is None}
    assets = _index((_record(Asset, row, scale=scales[row.get("code", "")]) for row in file.assets), _code)
    networks = (
        _in_environment(_record(Network, row, native=natives.get(row.get("code", ""))), file.development, environment)
        for row in file.networks
    )
    pairs = _index(
        (_pair(_minimums(row, file.development, environment), assets) for row in file.pairs),
        lambda pair: (pair.currency, pair.network),
    )
    return Catalogue(
        networks=_index(networks, _code),
        assets=assets,
        fiats=_index((_record(Fiat, row) for row in file.fiats), _code),
        pairs=pairs,
        networks_by_currency=_grouped(pairs),
        pairs_by_network=_grouped((network, pair) for (_, network), pair in pairs.items()),
    )


def _record(cls: type[Record], row: Row, **computed: object) -> Record:
    """Build a record of exactly its fields: one missing, unknown or computed twice is an error."""
    if sorted([*row, *computed]) != sorted(field.name for field in fields(cls)):
        raise CatalogueError(f"{cls.__name__} has other fields than {', '.join(row)}")
    return msgspec.convert({**row, **computed}, cls)


def _pair(row: _PairRow, assets: Mapping[str, Asset]) -> Pair:
    asset = assets.get(row.currency)
    if asset is None or row.decimals < asset.precision:
        raise CatalogueError(f"{row.currency} on {row.network}: unknown, or coarser there than its precision")

    def units(text: str) -> int:
        return rescale(parse_units(text, digits=asset.precision, error=CatalogueError), asset.precision, row.decimals)

    return msgspec.convert(
        {
            "currency": row.currency,
            "network": row.network,
            "contract": row.contract,
            "decimals": row.decimals,
            "min_deposit_units": units(row.min_deposit),
            "min_payout_units": units(row.min_payout),
        },
        Pair,
    )


def _in_environment(network: Network, development: _Development, environment: Environment) -> Network:
    if environment == "production":
        return network
    return replace(
        network,
        explorer="",
        confirmations=development.confirmations,
        maturity=development.maturity,
        block_time_ms=development.block_time_ms,
        chain_identity=network.family_parameters.DEVELOPMENT_IDENTITY or network.chain_identity,
        family_parameters=network.family_parameters.in_development(),
    )


def _minimums(row: _PairRow, development: _Development, environment: Environment) -> _PairRow:
    minimums = development.minimums.get(row.currency)
    if environment == "production" or minimums is None:
        return row
    return msgspec.structs.replace(row, min_deposit=minimums.deposit, min_payout=minimums.payout)


def _code(record: Fiat | Asset | Network) -> str:
    return record.code


def _index(items: Iterable[Item], key: Callable[[Item], Key]) -> Mapping[Key, Item]:
    index: dict[Key, Item] = {}
    for item in items:
        if index.setdefault(key(item), item) is not item:
            raise CatalogueError(f"{key(item)} appears twice")
    return MappingProxyType(index)


def _grouped(items: Iterable[tuple[str, Item]]) -> Mapping[str, tuple[Item, ...]]:
    groups: defaultdict[str, list[Item]] = defaultdict(list)
    for key, item in items:
        groups[key].append(item)
    return MappingProxyType({key: tuple(group) for key, group in groups.items()})


def _problems(catalogue: Catalogue, development: _Development) -> Iterator[str]:
    """Say what contradicts what, once every record by itself is well formed."""
    for code in catalogue.fiats.keys() & catalogue.assets.keys():
        yield f"{code} is both a fiat currency and a coin"
    for code in catalogue.assets.keys() ^ catalogue.networks_by_currency.keys():
        yield f"{code} is on no network"
    for code in catalogue.networks.keys() ^ catalogue.pairs_by_network.keys():
        yield f"{code} is unknown, or carries no coin"
    for code in catalogue.assets.keys() ^ development.minimums.keys():
        yield f"{code} is unknown, or has no minimums in development"
    if development.maturity < development.confirmations:
        yield "development matures before it confirms"
    for network in catalogue.networks.values():
        yield from _network_problems(network, catalogue)
    yield from _repeated(network.chain_identity for network in catalogue.networks.values())
    for code, pairs in catalogue.pairs_by_network.items():
        yield from _repeated(pair.contract and f"{code} {stored_form(pair.contract)}" for pair in pairs)


def _network_problems(network: Network, catalogue: Catalogue) -> Iterator[str]:
    pairs = catalogue.pairs_on(network.code)
    if network.maturity < network.confirmations:
        yield f"{network.code} matures before it confirms"
    if network.gas_currency not in catalogue.assets:
        yield f"{network.code} takes fees in {network.gas_currency}, which is unknown"
    for pair in pairs:
        if (pair.contract is None) != (pair.currency == network.gas_currency):
            yield f"{pair.currency} on {network.code}: its own coin, and no other, has no contract"
    yield from _contract_problems(network, pairs)
    currencies = frozenset(pair.currency for pair in pairs)
    for problem in network.family_parameters.problems(network.chain_identity, network.gas_currency, currencies):
        yield f"{network.code}: {problem}"


def _contract_problems(network: Network, pairs: Iterable[Pair]) -> Iterator[str]:
    for pair in pairs:
        if pair.contract is None:
            continue
        try:
            parse(network, pair.contract)
        except AddressError as refusal:
            yield f"{pair.currency} on {network.code}: {refusal}"


def _repeated(values: Iterable[object]) -> Iterator[str]:
    for value, count in Counter(value for value in values if value is not None).items():
        if count > 1:
            yield f"{value} appears twice"
