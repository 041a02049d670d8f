"""Counts the amounts that the signer lets leave, in its own schema, which no other process writes.

Used by actors.signer.limits.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from models.db import locks
from models.db.base import execute, one, rows, value
from models.db.locks import LockSeed
from models.db.table import BY_DATABASE, Big, Table


class CountedPayout(Table, table="signer.counted"):
    """A payout that the signer counted against its limits, by the output that pays it."""

    spend_id: UUID
    place: int = 0
    merchant_id: UUID
    network: str
    hour: datetime
    usd_cents: Big
    # The gateway's addition to the network fee that was charged for it.
    carried_cents: Big = 0
    is_given_back: bool = BY_DATABASE


class SpentHour(Table, table="signer.spent s"):
    """The amount that the signer let leave a network in an hour."""

    network: str
    hour: datetime
    usd_cents: Big


def lock() -> None:
    """Lock the counts until the caller's transaction ends, since a limit covers all networks together."""
    locks.wait_turn("signer.spent", seed=LockSeed.SIGNER_LIMITS)


class Spent(NamedTuple):
    """US cents that left in the current hour, and in the last 24 hours including it."""

    hour: int
    day: int


def spent() -> Spent:
    """Return the amounts that left, to all recipients together."""
    return _sums("signer.spent WHERE true", ())


def spent_by(merchant_id: UUID) -> Spent:
    """Return the amounts that left for one merchant."""
    return _sums("signer.counted WHERE merchant_id = %s AND NOT is_given_back", (merchant_id,))


def carried_for(merchant_id: UUID) -> int:
    """Return the US cents of network fees that the gateway added for a merchant in the last 24 hours.

    Outputs given back count too, since the network also took its fee for a failed payout.
    """
    cents: int = value(
        "SELECT COALESCE(sum(carried_cents), 0)::bigint FROM signer.counted WHERE merchant_id = %s"
        " AND hour > date_trunc('hour', app_now()) - interval '24 hours'",
        (merchant_id,),
    )
    return cents


def _sums(source: str, params: tuple[object, ...]) -> Spent:
    ((hour, day),) = rows(
        "SELECT COALESCE(sum(usd_cents) FILTER (WHERE hour > date_trunc('hour', app_now()) - interval '1 hour'),"
        f" 0)::bigint, COALESCE(sum(usd_cents), 0)::bigint FROM {source}"
        " AND hour > date_trunc('hour', app_now()) - interval '24 hours'",
        params,
    )
    return Spent(hour, day)


def add(
    spend_id: UUID, *, place: int = 0, merchant_id: UUID, network: str, usd_cents: int, carried_cents: int = 0
) -> None:
    """Count the amount of a spend's output, in the caller's transaction."""
    hour: datetime = value("SELECT date_trunc('hour', app_now())")
    CountedPayout(
        spend_id=spend_id,
        place=place,
        merchant_id=merchant_id,
        network=network,
        hour=hour,
        usd_cents=usd_cents,
        carried_cents=carried_cents,
    ).write()
    SpentHour(network=network, hour=hour, usd_cents=usd_cents).write(
        "ON CONFLICT (network, hour) DO UPDATE SET usd_cents = s.usd_cents + EXCLUDED.usd_cents"
    )


def give_back(spend_id: UUID, place: int = 0) -> None:
    """Subtract an output without effect from the hour in which it was counted; safe to run twice."""
    given = one(
        "UPDATE signer.counted SET is_given_back = true WHERE spend_id = %s AND place = %s AND NOT is_given_back"
        " RETURNING usd_cents, network, hour",
        (spend_id, place),
    )
    if given is not None:
        execute("UPDATE signer.spent SET usd_cents = usd_cents - %s WHERE network = %s AND hour = %s", given)
