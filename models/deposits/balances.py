"""Keeps deposits that only an address's balance shows: coin that a contract passed on.

Called by actors.scan.balances and actors.scan.intake.
Known deposits and our own spends (gas that came, sweeps that took) explain a balance. The rest becomes a deposit: under
its own transaction if a trace names it, else under the address and the height at which it appeared.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, cast

from models.db.base import column, execute, is_true, rows, value
from models.deposits.rows import BalanceProbe, Deposit, OwnerKind

PROBE: Final = "probe:"
TRACE: Final = "trace:"
# An invoice is looked at until so long after its end: a scan that is behind expires it later than the clock.
AFTERCARE_S: Final = 7_200


def ordinal(address: str, height: int) -> str:
    """Name a deposit that no transaction is known for; with the empty txid it is unique on its network."""
    return f"{PROBE}{address}:{height}"


def due_invoices(network: str, *, family: str, currency: str, limit: int) -> list[str]:
    """Return addresses of open invoices that await this coin here, those not looked at for longest first."""
    return column(
        "SELECT p.address FROM invoices i"
        " JOIN pool_addresses p ON p.family = %s AND p.ordinal = i.address_ordinal"
        " JOIN chain_cursors c ON c.network = i.network"
        " LEFT JOIN balance_probes b ON b.network = i.network AND b.address = p.address"
        " WHERE i.network = %s AND i.pay_currency = %s AND COALESCE(b.height, -1) < c.height"
        # Open ones and those that ended not long ago; the partial index on coins serves both.
        " AND i.expires_at > app_now() - make_interval(secs => %s)"
        " ORDER BY b.probed_at NULLS FIRST, i.created_at LIMIT %s",
        (family, network, currency, AFTERCARE_S, limit),
    )


def due_again(network: str, *, scanned: int, limit: int) -> list[str]:
    """Return addresses with coin that was taken back, until their balance is explained up to its block again.

    No transaction shows it, and its invoice may have ended long ago. scanned: the cursor's height.
    """
    return column(
        "SELECT p.address FROM (SELECT g.address, max(g.block_height) AS block_height FROM deposits g"
        "   WHERE g.network = %s AND g.status = 'reversed'"
        f"   AND (g.ordinal LIKE '{TRACE}%%' OR g.ordinal LIKE '{PROBE}%%')"
        "   GROUP BY g.address) p"
        " LEFT JOIN balance_probes b ON b.network = %s AND b.address = p.address"
        " WHERE COALESCE(b.height, -1) < LEAST(p.block_height, %s) ORDER BY b.probed_at NULLS FIRST LIMIT %s",
        (network, network, scanned, limit),
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


def note(network: str, address: str, *, kind: OwnerKind, height: int | None) -> None:
    """Note that an address was looked at; height: where its balance was explained, None if it was not."""
    execute(
        "INSERT INTO balance_probes AS b (network, address, owner_kind, height, probed_at)"
        " VALUES (%s, %s, %s, %s, app_now()) ON CONFLICT (network, address) DO UPDATE"
        " SET probed_at = EXCLUDED.probed_at, height = COALESCE(EXCLUDED.height, b.height)",
        (network, address, kind, height),
    )


def fall_back(network: str, height: int) -> None:
    """Take no balance for explained above a height, from where deposits are taken back; inside that transaction."""
    execute("UPDATE balance_probes SET height = %s WHERE network = %s AND height > %s", (height, network, height))


def is_older(moment: datetime, *, seconds: int) -> bool:
    """Return whether a moment is further back than this many seconds."""
    return is_true("SELECT 1 WHERE %s < app_now() - make_interval(secs => %s)", (moment, seconds))


def explained_height(network: str, address: str) -> int | None:
    """Return the newest height at which the balance was explained."""
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


def covers(found: Deposit) -> bool:
    """Return whether a transfer found late was counted before, as a part of a balance; it then gives that its name.

    A probe explains all that its address received up to its height, so such a transfer is never counted again.
    """
    known = value(
        "SELECT status FROM deposits WHERE network = %s AND txid = %s AND ordinal = %s",
        (found.network, found.txid, found.ordinal),
    )
    live = rows(
        "SELECT id, amount_units FROM deposits WHERE network = %s AND address = %s AND currency = %s"
        f" AND ordinal LIKE '{PROBE}%%' AND status <> 'reversed' AND block_height >= %s ORDER BY block_height",
        (found.network, found.address, found.currency, found.block_height),
    )
    if not live or known not in {None, "reversed"}:
        return False
    same = [deposit_id for deposit_id, units in live if units == found.amount_units]
    if same and known is None:
        execute(
            "UPDATE deposits SET txid = %s, ordinal = %s, sender = %s WHERE id = %s",
            (found.txid, found.ordinal, found.sender, same[0]),
        )
    return True
