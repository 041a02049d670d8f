"""Keeps deposits that only an address's balance shows: coin that a contract passed on.

Called by actors.scan.balances, actors.scan.surplus and actors.scan.record.
Known deposits and our own spends (gas that came, sweeps that took) explain a balance. The rest becomes a deposit: under
its own transaction if a trace names it, else under the address and the height at which it appeared.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple, cast
from uuid import UUID

from models.db.base import column, execute, is_true, rows, rows_as, value
from models.deposits.rows import IS_DENIED, IS_DOUBTED, BalanceProbe, Deposit, OwnerKind

PROBE: Final = "probe:"
TRACE: Final = "trace:"
# An invoice's address is due until its balance is explained up to a block of this long after its end. The clock alone
# ends nothing: a payment in time may be found after an outage.
AFTERCARE_S: Final = 7_200
# The mark of passed invoices moves this often at most.
PASSED_EVERY_S: Final = 600
_AFTERCARE: Final = f"make_interval(secs => {AFTERCARE_S})"
# No look has noted the present end of invoice i for probe b.
_IS_UNNOTED: Final = f"COALESCE(b.due_until < i.expires_at + {_AFTERCARE}, true)"
# As in the partial index.
_IS_OPEN: Final = "b.due_until IS NOT NULL AND (b.explained_until IS NULL OR b.explained_until <= b.due_until)"
_DUE_UNTIL: Final = (
    f"GREATEST(%(surplus_at)s::timestamptz, (SELECT i.expires_at + {_AFTERCARE} FROM invoices i"
    " WHERE i.id = %(owner_id)s::uuid))"
)
# Another provider explained the balance before, in a row.
_IS_SECOND: Final = "b.read_by <> EXCLUDED.read_by AND b.read_height <= EXCLUDED.read_height"
_OF_ADDRESS: Final = "d.network = %s AND d.address = %s AND d.currency = %s AND d.status <> 'reversed'"
_IS_HIDDEN: Final = f"(d.ordinal LIKE '{TRACE}%%' OR d.ordinal LIKE '{PROBE}%%')"


def ordinal(network: str, address: str, height: int) -> str:
    """Name a new deposit without a known transaction; with the empty txid the name is unique on its network.

    An earlier deposit of that height may have its name already, returned or not.
    """
    name = f"{PROBE}{address}:{height}"
    taken = set(
        column(
            "SELECT ordinal FROM deposits WHERE network = %s AND txid = '' AND (ordinal = %s OR ordinal LIKE %s)",
            (network, name, f"{name}:%"),
        )
    )
    return next(free for free in (name, *(f"{name}:{n}" for n in range(1, len(taken) + 1))) if free not in taken)


def longest_ago_first(network: str, addresses: Collection[str]) -> dict[str, str]:
    """Return the mark of the provider that was asked last about each address; '' if none was.

    The addresses are in the order in which they were probed; never probed ones come first.
    """
    return dict(
        rows(
            "SELECT a.address, COALESCE(b.read_by, '') FROM unnest(%s::text[]) WITH ORDINALITY AS a (address, place)"
            " LEFT JOIN balance_probes b ON b.network = %s AND b.address = a.address"
            " ORDER BY b.probed_at NULLS FIRST, a.place",
            (list(dict.fromkeys(addresses)), network),
        )
    )


def due_invoices(network: str, *, family: str, currency: str, limit: int) -> list[str]:
    """Return addresses of invoices that await this coin here and were not looked at yet, or not since they reopened.

    Those that end first come first, ended ones too. The mark of pass_invoices() bounds the invoices that are read.
    due_open() returns the address from its first look on.
    """
    return column(
        "SELECT p.address FROM invoices i"
        " JOIN pool_addresses p ON p.family = %(family)s AND p.ordinal = i.address_ordinal"
        " LEFT JOIN balance_probes b ON b.network = i.network AND b.address = p.address"
        " WHERE i.network = %(network)s AND i.pay_currency = %(currency)s AND i.expires_at > ("
        "   SELECT COALESCE(c.probed_until, '-infinity') FROM chain_cursors c WHERE c.network = %(network)s)"
        f" AND {_IS_UNNOTED} ORDER BY i.expires_at, i.id LIMIT %(limit)s",
        {"family": family, "network": network, "currency": currency, "limit": limit},
    )


def pass_invoices(network: str, *, family: str, currency: str) -> None:
    """Move the mark up to which each ended invoice in this coin was looked at; due_invoices() reads those after it.

    It stays AFTERCARE_S behind the clock, so that an invoice that opens while it moves is after it.
    """
    execute(
        "UPDATE chain_cursors c SET probed_until = LEAST("
        f"   app_now() - {_AFTERCARE}, (SELECT min(i.expires_at) - interval '1 microsecond' FROM invoices i"
        "   JOIN pool_addresses p ON p.family = %(family)s AND p.ordinal = i.address_ordinal"
        "   LEFT JOIN balance_probes b ON b.network = i.network AND b.address = p.address"
        "   WHERE i.network = %(network)s AND i.pay_currency = %(currency)s"
        "   AND i.expires_at > COALESCE(c.probed_until, '-infinity')"
        f"  AND i.expires_at <= app_now() - {_AFTERCARE} AND {_IS_UNNOTED}))"
        " WHERE c.network = %(network)s AND COALESCE(c.probed_until, '-infinity')"
        f"  < app_now() - make_interval(secs => {AFTERCARE_S + PASSED_EVERY_S})",
        {"family": family, "network": network, "currency": currency},
    )


def due_open(network: str, *, limit: int) -> list[str]:
    """Return addresses whose balance is not explained up to a block that is late enough, longest ago first.

    Until some time after the end of an invoice, and until a surplus is explained.
    """
    return column(
        "SELECT b.address FROM balance_probes b JOIN chain_cursors c ON c.network = b.network"
        f" WHERE b.network = %s AND {_IS_OPEN} AND COALESCE(b.read_height, -1) < c.height"
        " ORDER BY b.probed_at NULLS FIRST LIMIT %s",
        (network, limit),
    )


def due_again(network: str, *, scanned: int, further: int, limit: int) -> list[str]:
    """Return addresses with coin that was taken back, until their balance is explained some blocks beyond it.

    Its invoice may have ended long ago, and after a reorg it often returns in a later block. No transaction shows
    hidden coin; a plain payment is taken back also if hidden coin has used a part of it, and only the balance shows the
    rest.
    scanned: the cursor's height. further: the number of blocks beyond the one that had it.
    """
    return column(
        "SELECT p.address FROM (SELECT d.address, max(d.block_height) AS block_height FROM deposits d"
        f"   WHERE d.network = %s AND d.status = 'reversed' AND ({_IS_HIDDEN} OR d.ordinal = 'native')"
        "   GROUP BY d.address) p"
        " LEFT JOIN balance_probes b ON b.network = %s AND b.address = p.address"
        " WHERE COALESCE(b.height, -1) < p.block_height + %s AND COALESCE(b.read_height, -1) < %s"
        " ORDER BY b.probed_at NULLS FIRST LIMIT %s",
        (network, network, further, scanned, limit),
    )


def due_wallets(network: str, *, limit: int) -> list[str]:
    """Return addresses of wallets in slow rotation, those not looked at for longest first."""
    return column(
        "SELECT address FROM balance_probes WHERE network = %s AND owner_kind = 'wallet'"
        " ORDER BY probed_at NULLS FIRST LIMIT %s",
        (network, limit),
    )


def watch_wallet(networks: Collection[str], address: str) -> None:
    """Put a wallet's address into the rotations of networks; called inside the transaction that makes the wallet."""
    watched = [BalanceProbe(network=network, address=address, owner_kind="wallet") for network in networks]
    BalanceProbe.write_all(watched, "ON CONFLICT DO NOTHING")


def note(
    network: str,
    address: str,
    *,
    kind: OwnerKind,
    owner_id: UUID | None = None,
    surplus_at: datetime | None = None,
) -> None:
    """Note that an address was looked at, although no provider was asked or one failed.

    It is due until AFTERCARE_S after the end of its invoice. surplus_at: the time of a block after which the balance
    had a surplus; it is due until the balance is explained up to a later block.
    """
    execute(
        "INSERT INTO balance_probes AS b (network, address, owner_kind, probed_at, due_until)"
        f" VALUES (%(network)s, %(address)s, %(kind)s, app_now(), {_DUE_UNTIL})"
        " ON CONFLICT (network, address) DO UPDATE SET probed_at = EXCLUDED.probed_at,"
        " due_until = GREATEST(b.due_until, EXCLUDED.due_until)",
        {"network": network, "address": address, "kind": kind, "owner_id": owner_id, "surplus_at": surplus_at},
    )


def note_reading(
    network: str,
    address: str,
    *,
    kind: OwnerKind,
    height: int | None,
    block_time: datetime | None = None,
    read_by: str = "",
    owner_id: UUID | None = None,
    surplus_at: datetime | None = None,
) -> None:
    """Note a provider's reading of a balance; height: where deposits explained it, None if they did not.

    The balance counts as explained up to the lower height of two readings in a row by different providers.
    block_time: of the block at the height. read_by: the provider's mark; '' if it needs no other. owner_id, surplus_at:
    as with note().
    """
    execute(
        "INSERT INTO balance_probes AS b (network, address, owner_kind, height, explained_until, read_by, read_height,"
        "  read_until, probed_at, due_until)"
        " VALUES (%(network)s, %(address)s, %(kind)s, CASE WHEN %(read_by)s = '' THEN %(height)s::bigint END,"
        "  CASE WHEN %(read_by)s = '' THEN %(block_time)s::timestamptz END, %(read_by)s, %(height)s, %(block_time)s,"
        f" app_now(), {_DUE_UNTIL})"
        " ON CONFLICT (network, address) DO UPDATE SET probed_at = EXCLUDED.probed_at, read_by = EXCLUDED.read_by,"
        " read_height = EXCLUDED.read_height, read_until = EXCLUDED.read_until,"
        " due_until = GREATEST(b.due_until, EXCLUDED.due_until),"
        f" height = GREATEST(b.height, EXCLUDED.height, CASE WHEN {_IS_SECOND} THEN b.read_height END),"
        " explained_until = GREATEST(b.explained_until, EXCLUDED.explained_until,"
        f"   CASE WHEN {_IS_SECOND} THEN b.read_until END)",
        {
            "network": network, "address": address, "kind": kind, "height": height, "block_time": block_time,
            "read_by": read_by, "owner_id": owner_id, "surplus_at": surplus_at,
        },
    )  # fmt: skip


def note_rereading(network: str, address: str, *, kind: OwnerKind, read_by: str) -> None:
    """Note the mark of the provider that read a block again for an address; another one is asked next."""
    execute(
        "INSERT INTO balance_probes (network, address, owner_kind, reread_by) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (network, address) DO UPDATE SET reread_by = EXCLUDED.reread_by",
        (network, address, kind, read_by),
    )


def reread_by(network: str, address: str) -> str:
    """Return the mark of the provider that read a block again for an address last; '' if none did."""
    sql = "SELECT reread_by FROM balance_probes WHERE network = %s AND address = %s"
    return cast("str", value(sql, (network, address)) or "")


def rise(network: str, address: str, *, kind: OwnerKind, height: int) -> None:
    """Take an address's balance for explained at least up to a height."""
    execute(
        "INSERT INTO balance_probes AS b (network, address, owner_kind, height) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (network, address) DO UPDATE SET height = GREATEST(b.height, EXCLUDED.height)",
        (network, address, kind, height),
    )


def fall_back(network: str, height: int, *, address: str | None = None) -> None:
    """Take no balance for explained above a height, from where deposits are taken back; inside that transaction.

    The time of that block is unknown here, so that an invoice's address is due until two further readings.
    address: that of the deposit; None for all addresses of the network.
    """
    execute(
        "UPDATE balance_probes SET height = CASE WHEN height > %(to)s THEN %(to)s ELSE height END,"
        " explained_until = CASE WHEN height > %(to)s THEN NULL ELSE explained_until END,"
        " read_height = CASE WHEN read_height > %(to)s THEN %(to)s ELSE read_height END,"
        " read_until = CASE WHEN read_height > %(to)s THEN NULL ELSE read_until END"
        " WHERE network = %(network)s AND (%(address)s::text IS NULL OR address = %(address)s)"
        " AND GREATEST(height, read_height) > %(to)s",
        {"network": network, "to": height, "address": address},
    )


def is_older(moment: datetime, *, seconds: int) -> bool:
    """Return whether a moment is further back than this many seconds."""
    return is_true("SELECT 1 WHERE %s < app_now() - make_interval(secs => %s)", (moment, seconds))


def explained_height(network: str, address: str) -> int | None:
    """Return the newest height up to which the balance was explained."""
    sql = "SELECT height FROM balance_probes WHERE network = %s AND address = %s"
    return cast("int | None", value(sql, (network, address)))


def deposited_units(network: str, address: str, currency: str, *, height: int, only_confirmed: bool = False) -> int:
    """Return what deposits that are recorded brought to an address up to a height, swept since or not."""
    return int(
        value(
            "SELECT COALESCE(sum(amount_units), 0) FROM deposits WHERE network = %s AND address = %s AND currency = %s"
            " AND status <> 'reversed' AND (status <> 'pending' OR NOT %s) AND block_height <= %s",
            (network, address, currency, only_confirmed, height),
        )
    )


def is_hidden(asked: Deposit) -> bool:
    """Return True if only a trace or the balance shows a deposit."""
    return asked.ordinal.startswith((PROBE, TRACE))


def is_later(asked: Deposit) -> bool:
    """Return True if a deposit was recorded after a hidden one that counts, in a block up to that one's.

    The hidden deposit was compared with a balance that had the other's coin, before that one was known.
    """
    return is_true(
        f"SELECT 1 FROM deposits d WHERE {_OF_ADDRESS} AND {_IS_HIDDEN} AND NOT {IS_DOUBTED}"
        " AND d.detected_at <= %s AND d.block_height >= %s LIMIT 1",
        (asked.network, asked.address, asked.currency, asked.detected_at, asked.block_height),
    )


class Counted(NamedTuple):
    """The other deposits that share a balance with a deposit; units are the ledger's.

    waiting_units: payments that wait for witnesses. certain_units: all others.
    """

    certain_units: int
    waiting_units: int


def counted(asked: Deposit, *, height: int) -> Counted:
    """Return the sums of the other deposits that share a balance after a block with a deposit.

    A hidden one that waits for witnesses does not count yet; the others count wherever they are, since the block of a
    hidden deposit is one provider's word. A payment that waits holds up hidden coin, whether or not a provider shows
    it, since nodes forget transactions; it holds up no other payment.
    """
    (sums,) = rows(
        f"SELECT COALESCE(sum(d.amount_units) FILTER (WHERE NOT {IS_DOUBTED}), 0)::numeric,"
        f" COALESCE(sum(d.amount_units) FILTER (WHERE {IS_DOUBTED} AND NOT {_IS_HIDDEN} AND %s), 0)::numeric"
        f" FROM deposits d WHERE {_OF_ADDRESS} AND d.id <> %s AND ({_IS_HIDDEN} OR d.block_height <= %s)",
        (is_hidden(asked), asked.network, asked.address, asked.currency, asked.id, height),
    )
    return Counted(*map(int, sums))


def covers(deposit: Deposit, *, is_witnessed: bool) -> bool:
    """Return True if a transfer found late was counted before, as part of a balance.

    A deposit of its sum gets its name and block. One that is not confirmed yet, or was taken back, begins a new life
    there once the transfer is recorded. Call inside the transaction that does so.
    is_witnessed: providers are asked whether the balance covers the transfer too, so that none counts as covered.
    Otherwise a probe explains all that its address received up to its height.
    """
    known = _status_of(deposit)
    if known not in {None, "reversed"}:
        return False
    _hand_over(deposit)
    hidden = rows(
        "SELECT id, amount_units, status FROM deposits d WHERE network = %s AND address = %s AND currency = %s"
        f" AND ordinal LIKE '{PROBE}%%' AND block_height >= %s AND (status = 'reversed' OR NOT (%s OR {IS_DOUBTED}))"
        " ORDER BY block_height, id",
        (deposit.network, deposit.address, deposit.currency, deposit.block_height, is_witnessed),
    )
    live = [deposit_id for deposit_id, _, status in hidden if status != "reversed"]
    # One that was taken back is the same money: its shares and refunds stay its own.
    own = [
        deposit_id
        for deposit_id, units, status in hidden
        if units == deposit.amount_units and (status != "reversed" or not live)
    ]
    if own and known is None:
        return _rename(own[0], deposit)
    return bool(live)


class TakenBack(NamedTuple):
    """A deposit without a transaction in view that a reorg, a rewind or a denial took back; units are the ledger's.

    is_paid_out: part of it went to recipients of shares, or all of it to a refund. is_denied: providers denied it.
    """

    id: UUID
    txid: str
    ordinal: str
    sender: str
    units: int
    depth_min: int
    block_height: int
    block_hash: str
    is_paid_out: bool
    is_denied: bool


def taken_back(network: str, address: str, currency: str, owner_id: UUID) -> list[TakenBack]:
    """Return an owner's deposits at an address that were taken back and only a trace or the balance shows.

    Oldest first. Coin that comes back belongs to those that were paid out.
    """
    return rows_as(
        TakenBack,
        "SELECT d.id, d.txid, d.ordinal, d.sender, d.amount_units AS units, d.depth_min, d.block_height, d.block_hash,"
        " d.refund_id IS NOT NULL"
        "   OR EXISTS (SELECT 1 FROM split_shares s WHERE s.deposit_id = d.id AND s.released_units > 0) AS is_paid_out,"
        f" {IS_DENIED} AS is_denied"
        " FROM deposits d WHERE d.network = %s AND d.address = %s AND d.currency = %s AND d.owner_id = %s"
        f" AND d.status = 'reversed' AND {_IS_HIDDEN}"
        " ORDER BY d.detected_at, d.id",
        (network, address, currency, owner_id),
    )


def name_again(deposit: Deposit) -> None:
    """Give a deposit of taken_back() of this sum the name of its transfer, unless that has a deposit.

    One that was paid out comes first, then the oldest. Call inside the transaction that records the transfer.
    """
    if _status_of(deposit) is not None:
        return
    returned = taken_back(deposit.network, deposit.address, deposit.currency, deposit.owner_id)
    for each in sorted(returned, key=lambda each: not each.is_paid_out):
        if each.units == deposit.amount_units:
            _rename(each.id, deposit)
            return


def _hand_over(deposit: Deposit) -> None:
    """Give the name of a payment that providers denied to the deposit that was paid out of its coin.

    Both were taken back, and the payment returns: it is the deposit whose shares and refunds were paid.
    """
    returned = taken_back(deposit.network, deposit.address, deposit.currency, deposit.owner_id)
    paid_out = [each for each in returned if each.is_paid_out]
    key = (deposit.network, deposit.txid, deposit.ordinal)
    if not paid_out or not is_true(
        f"SELECT 1 FROM deposits d WHERE d.network = %s AND d.txid = %s AND d.ordinal = %s AND {IS_DENIED}", key
    ):
        return
    free = ordinal(deposit.network, deposit.address, deposit.block_height)
    execute(
        "UPDATE deposits SET txid = '', ordinal = %s WHERE network = %s AND txid = %s AND ordinal = %s", (free, *key)
    )
    _rename(min(paid_out, key=lambda each: each.units != deposit.amount_units).id, deposit)


def _status_of(deposit: Deposit) -> str | None:
    """Return the status of the deposit with this one's name; None without one."""
    sql = "SELECT status FROM deposits WHERE network = %s AND txid = %s AND ordinal = %s"
    return cast("str | None", value(sql, (deposit.network, deposit.txid, deposit.ordinal)))


def _rename(deposit_id: UUID, deposit: Deposit) -> bool:
    """Give a deposit the name and block of a transfer; return True if it is booked, and goes on in that block.

    Otherwise its life ends, and the next one begins when the transfer is recorded.
    """
    status = value(
        "UPDATE deposits SET txid = %s, ordinal = %s, sender = %s, block_height = %s, block_hash = %s,"
        " status = CASE status WHEN 'pending' THEN 'reversed' ELSE status END WHERE id = %s RETURNING status",
        (
            deposit.txid, deposit.ordinal, deposit.sender, deposit.block_height, deposit.block_hash, deposit_id,
        ),
    )  # fmt: skip
    return bool(status != "reversed")
