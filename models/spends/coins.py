"""Keeps our coins in families that spend coins: which blocks made and spent them, and which are free.

models.spends.held_coins gives them to spends.
A coin is free while no spend holds it and no block spends it. The scan records coins in the transaction that records
their block, and a reorg undoes that. Several coins are locked in order of txid and vout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from models.db.base import execute, rows, rows_as
from models.db.table import BY_DATABASE, Big, Table, Units

Outpoint = tuple[str, int]

# Joins the deposit or top-up of a coin k.
_OF: Final = "(network, txid, ordinal) = (k.network, k.txid, k.vout::text)"
# Waits for confirmations or a second opinion: the transfer may be invented, or its sender may take it back.
_IS_DOUBTED: Final = (
    f"(EXISTS (SELECT 1 FROM deposits WHERE {_OF} AND status = 'pending')"
    f" OR EXISTS (SELECT 1 FROM treasury_topups WHERE {_OF} AND doubted_for IS NOT NULL AND agreed_at IS NULL))"
)
_IS_OURS: Final = "EXISTS (SELECT 1 FROM spend_attempts a WHERE (a.network, a.txid) = (k.network, k.txid))"

# Of a coin k, joined with its network's chain_cursors c.
DEPTH: Final = "c.height - k.created_height + 1"
IS_FREE: Final = "k.held_by IS NULL AND k.spent_by_txid IS NULL AND k.created_height IS NOT NULL"
# The coins that may be spent, of a network and a currency, from a depth on.
_MAY_BE_SPENT_OF: Final = (
    f"k.network = {{network}} AND k.currency = {{currency}} AND {IS_FREE} AND {DEPTH} >= GREATEST(k.depth_min, 1)"
    f" AND ({_IS_OURS} OR {DEPTH} >= {{depth}} AND NOT {_IS_DOUBTED})"
)
_MAY_BE_SPENT: Final = _MAY_BE_SPENT_OF.format(network="%s", currency="%s", depth="%s")
# The value of all coins that free() may return, in token units, by currency and network.
FREE_UNITS: Final = (
    "SELECT f.currency, f.network, f.decimals, (SELECT COALESCE(sum(k.units), 0) FROM coins k"
    "   JOIN chain_cursors c ON c.network = k.network"
    f"   WHERE {_MAY_BE_SPENT_OF.format(network='f.network', currency='f.currency', depth='f.depth')}) AS units"
    " FROM unnest(%(coin_networks)s::text[], %(coin_currencies)s::text[], %(coin_decimals)s::integer[],"
    "   %(coin_depths)s::integer[]) f (network, currency, decimals, depth)"
)
# Of the coins that may be spent, the most valuable first, up to a limit.
_CHOICE: Final = f"{_MAY_BE_SPENT} ORDER BY k.units DESC, k.txid, k.vout LIMIT %s"
_ABOVE: Final = "k.network = %s AND (k.created_height > c.height OR k.spent_height > c.height)"
# Coins k unspent after a block. Later spends are found by their blocks, so that the cost does not grow with all spent
# coins.
_UNSPENT: Final = (
    "(SELECT * FROM coins WHERE network = %s AND currency = %s AND spent_by_txid IS NULL AND created_height <= %s"
    " UNION ALL SELECT * FROM coins WHERE network = %s AND currency = %s AND spent_height > %s) k"
)
# A block names thousands: two texts are read in a fraction of the time that as many constants take.
NAMED: Final = (
    "(k.txid, k.vout) IN (SELECT * FROM unnest(string_to_array(%s, ','), string_to_array(%s, ',')::bigint[]))"
)


# A page of a network's coins that no block spends, after a given one: by the height of their block, those in no block
# last.
_PORTION: Final = (
    "SELECT * FROM (SELECT created_height AS height, txid, vout FROM coins WHERE network = %(network)s"
    "   AND currency = %(currency)s AND spent_by_txid IS NULL"
    "   AND (created_height, txid, vout) > (%(height)s, %(txid)s, %(vout)s)"
    "   ORDER BY created_height, txid, vout LIMIT %(limit)s) standing"
    " UNION ALL SELECT * FROM (SELECT %(nowhere)s::bigint AS height, txid, vout FROM coins WHERE network = %(network)s"
    "   AND currency = %(currency)s AND spent_by_txid IS NULL AND created_height IS NULL"
    "   AND (%(nowhere)s::bigint, txid, vout) > (%(height)s, %(txid)s, %(vout)s)"
    "   ORDER BY txid, vout LIMIT %(limit)s) gone"
    " ORDER BY height, txid, vout LIMIT %(limit)s"
)
# Above all heights.
_NOWHERE: Final = 2**62
PORTION: Final = 10_000


class CoinRow(Table, table="coins k"):
    """One of our coins. Units are the network's token units; the address is in the stored form."""

    network: str
    txid: str
    vout: Big
    address: str
    currency: str
    units: Units
    # The least number of confirmations before it may be spent.
    depth_min: int = 0
    # None while a reorg has taken the transaction that made it out of its block.
    created_height: Big | None
    created_hash: str | None
    held_by: UUID | None = BY_DATABASE
    # The first of its holder's attempts that claims it; earlier ones do without.
    held_number: int = BY_DATABASE
    spent_by_txid: str | None = BY_DATABASE
    spent_height: Big | None = BY_DATABASE
    spent_hash: str | None = BY_DATABASE


class FreeCoin(NamedTuple):
    """A coin that may be spent now, with the ordinal of its key; None is the hot wallet's."""

    txid: str
    vout: int
    units: int
    address: str
    key_ordinal: int | None
    depth: int


class Worth(NamedTuple):
    """The value of coins in token units: of all, and of those that are not doubted."""

    units: int
    firm_units: int


class Heap(NamedTuple):
    """The number of coins in one state and their value, in token units."""

    currency: str
    is_held: bool
    coins: int
    units: int


class Spending(NamedTuple):
    """One of our coins that a block spends."""

    txid: str
    vout: int
    by_txid: str


def split(outpoints: Collection[Outpoint]) -> tuple[str, str]:
    """Return the two texts that NAMED takes."""
    return ",".join(txid for txid, _ in outpoints), ",".join(str(vout) for _, vout in outpoints)


def ours(network: str, outpoints: Collection[Outpoint]) -> set[Outpoint]:
    """Return the outpoints that are our coins, spent or not."""
    if not outpoints:
        return set()
    pairs = rows(
        "SELECT k.txid, k.vout"
        " FROM unnest(string_to_array(%s, ','), string_to_array(%s, ',')::bigint[]) AS s (txid, vout)"
        " CROSS JOIN LATERAL (SELECT c.txid, c.vout FROM coins c"
        " WHERE c.network = %s AND c.txid = s.txid AND c.vout = s.vout LIMIT 1) k",
        # In the index's order one page of it serves several.
        (*split(sorted(outpoints)), network),
    )
    return {(txid, vout) for txid, vout in pairs}


def note(network: str, made: Sequence[CoinRow], spent: Collection[Spending], *, height: int, block_hash: str) -> int:
    """Record our coins that a block made and spent; return the number of new ones of both.

    Safe to run twice. Call inside the transaction that records the block.
    """
    lock(network, {(coin.txid, coin.vout) for coin in made} | {(coin.txid, coin.vout) for coin in spent})
    new = CoinRow.write_all(
        made,
        "ON CONFLICT (network, txid, vout) DO UPDATE SET address = EXCLUDED.address, currency = EXCLUDED.currency,"
        " units = EXCLUDED.units, depth_min = EXCLUDED.depth_min, created_height = EXCLUDED.created_height,"
        " created_hash = EXCLUDED.created_hash WHERE k.created_height IS NULL",
    )
    if not spent:
        return new
    txids, vouts, by = zip(*sorted(spent), strict=True)
    return new + execute(
        "UPDATE coins k SET spent_by_txid = s.by_txid, spent_height = %s, spent_hash = %s"
        " FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS s (txid, vout, by_txid)"
        " WHERE (k.network, k.txid, k.vout) = (%s, s.txid, s.vout) AND k.spent_by_txid IS NULL",
        (height, block_hash, list(txids), list(vouts), list(by), network),
    )


def lock(network: str, outpoints: Collection[Outpoint]) -> None:
    """Lock coins against other writers until the transaction ends."""
    rows(
        f"SELECT 1 FROM coins k WHERE k.network = %s AND {NAMED} ORDER BY k.txid, k.vout FOR UPDATE OF k",
        (network, *split(outpoints)),
    )


def take_back(network: str) -> int:
    """Undo what blocks above the cursor made and spent; call in the transaction that moves the cursor back.

    A held coin stays held: usually the same transaction makes it again in another block.
    """
    rows(
        f"SELECT 1 FROM coins k JOIN chain_cursors c ON c.network = k.network WHERE {_ABOVE}"
        " ORDER BY k.txid, k.vout FOR UPDATE OF k",
        (network,),
    )
    return execute(
        "UPDATE coins k SET (created_height, created_hash)"
        " = (SELECT k.created_height, k.created_hash WHERE k.created_height <= c.height),"
        " (spent_by_txid, spent_height, spent_hash)"
        " = (SELECT k.spent_by_txid, k.spent_height, k.spent_hash WHERE k.spent_height <= c.height)"
        f" FROM chain_cursors c WHERE c.network = k.network AND {_ABOVE}",
        (network,),
    )


def free(network: str, family: str, currency: str, *, limit: int, depth: int = 1) -> list[FreeCoin]:
    """Return coins that may be spent, the most valuable first: free, deep enough, and not doubted.

    depth: the confirmations that coins from others need. Our own change may be spent from its first block on.
    """
    return rows_as(
        FreeCoin,
        f"SELECT k.txid, k.vout, k.units, k.address, p.ordinal AS key_ordinal, {DEPTH} AS depth"
        " FROM coins k JOIN chain_cursors c ON c.network = k.network"
        " LEFT JOIN pool_addresses p ON p.family = %s AND p.address = k.address"
        f" WHERE {_CHOICE}",
        (family, network, currency, depth, limit),
    )


def free_outpoints(network: str, currency: str, *, limit: int, depth: int = 1) -> list[Outpoint]:
    """Return the outpoints of the coins that free() returns, at a third of its cost."""
    return rows(
        f"SELECT k.txid, k.vout FROM coins k JOIN chain_cursors c ON c.network = k.network WHERE {_CHOICE}",
        (network, currency, depth, limit),
    )


def unspent(network: str, currency: str) -> Iterator[list[Outpoint]]:
    """Yield pages of the coins that no block spends, with held ones and those that a reorg took."""
    height, txid, vout = -1, "", -1
    while portion := rows(
        _PORTION,
        {
            "network": network, "currency": currency, "height": height, "txid": txid, "vout": vout,
            "nowhere": _NOWHERE, "limit": PORTION,
        },
    ):  # fmt: skip
        yield [(txid, vout) for _, txid, vout in portion]
        height, txid, vout = portion[-1]


def unspent_at(network: str, currency: str, *, height: int) -> dict[str, list[Outpoint]]:
    """Return the coins that blocks up to a height made and none of these spent, by address."""
    by_address: dict[str, list[Outpoint]] = {}
    for address, txid, vout in rows(
        f"SELECT k.address, k.txid, k.vout FROM {_UNSPENT} WHERE k.created_height <= %s ORDER BY 1, 2, 3",
        (*(network, currency, height) * 2, height),
    ):
        by_address.setdefault(address, []).append((txid, vout))
    return by_address


def worth_at(network: str, currency: str, *, height: int, made_by: int) -> Worth:
    """Return the value of the coins unspent after a block that blocks up to `made_by` made."""
    (worth,) = rows_as(
        Worth,
        "SELECT COALESCE(sum(k.units), 0) AS units,"
        f" COALESCE(sum(k.units) FILTER (WHERE {_IS_OURS} OR NOT {_IS_DOUBTED}), 0) AS firm_units"
        f" FROM {_UNSPENT} WHERE k.created_height <= LEAST(%s, %s)",
        (*(network, currency, height) * 2, made_by, height),
    )
    return worth


def heaps(network: str) -> list[Heap]:
    """Return the number and value of unspent coins in blocks, free and held apart, by currency."""
    return rows_as(
        Heap,
        "SELECT currency, held_by IS NOT NULL AS is_held, count(*) AS coins, sum(units) AS units FROM coins"
        " WHERE network = %s AND spent_by_txid IS NULL AND created_height IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
        (network,),
    )
