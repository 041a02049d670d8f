"""How long an audit takes when the ledger is long: `python -m bench.audit`, with `--quick` for a short ledger.

Rows are generated in a PostgreSQL of its own that forgets them: sales of many merchants, each booked as five transfers.
The first checkpoint, an audit that begins at it, and a full one are timed apart.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.embedded.leash import Leash
from cli.embedded.ports import free_port
from cli.embedded.postgres import Postgres
from models import base, checkpoint, invariants
from models.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: Final = 10_000_000
ROWS_QUICK: Final = 200_000
MERCHANTS: Final = 2_000
GOAL_S: Final = 5.0
# Rows that came since the checkpoint: far more than a minute brings.
TAIL: Final = 50_000

_ACCOUNTS: Final = """
    INSERT INTO accounts (holder, kind, currency, network)
        SELECT CASE WHEN kind IN ('custody', 'fees') THEN '00000000-0000-0000-0000-000000000000'::uuid
                ELSE ('00000000-0000-0000-0001-' || lpad(to_hex(shop), 12, '0'))::uuid END,
            kind, 'USDT', CASE WHEN kind = 'custody' THEN 'ethereum' ELSE '' END
        FROM generate_series(1, %(shops)s) AS shop, unnest(ARRAY['suspense', 'maturing', 'available']) AS kind
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'custody', 'USDT', 'ethereum'
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'fees', 'USDT', ''
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'rounding', 'USDT', ''
"""
# A sale: confirmed (5 units), credited (4 net, 1 of fees in two legs), matured.
_SALES: Final = """
    WITH shops AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY s.holder) - 1 AS number, s.id AS suspense, m.id AS maturing,
            a.id AS available
        FROM accounts s JOIN accounts m ON m.holder = s.holder AND m.kind = 'maturing'
            JOIN accounts a ON a.holder = s.holder AND a.kind = 'available' WHERE s.kind = 'suspense'
    ), common AS MATERIALIZED (
        SELECT max(id) FILTER (WHERE kind = 'custody') AS custody, max(id) FILTER (WHERE kind = 'fees') AS fees,
            max(id) FILTER (WHERE kind = 'rounding') AS rounding FROM accounts
    )
    INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)
        SELECT 'deposit:' || sale || ':0:' || what, leg, debit, credit, 'USDT', units
        FROM generate_series(%(first)s, %(last)s) AS sale JOIN shops ON shops.number = sale %% %(shops)s, common,
        LATERAL (VALUES ('confirm', 0, custody, suspense, 1000), ('credit', 0, suspense, maturing, 984),
            ('credit', 1, suspense, fees, 15), ('credit', 2, suspense, rounding, 1),
            ('mature', 0, maturing, available, 984)) AS legs (what, leg, debit, credit, units)
"""
_BALANCES: Final = """
    INSERT INTO balances (account_id, units)
        SELECT a.id, COALESCE(sum(s.units), 0) FROM accounts a
        LEFT JOIN (SELECT credit_account AS id, sum(units) AS units FROM ledger_transfers GROUP BY 1
            UNION ALL SELECT debit_account, -sum(units) FROM ledger_transfers GROUP BY 1) s ON s.id = a.id
        WHERE a.kind IN ('maturing', 'available') GROUP BY a.id
    ON CONFLICT (account_id) DO UPDATE SET units = EXCLUDED.units
"""
# The custody that nothing explains here is one top-up.
_TOPUP: Final = """
    INSERT INTO treasury_topups (id, network, txid, ordinal, currency, units, block_height, block_hash, status)
        SELECT gen_random_uuid(), 'ethereum', '', 'bench', 'USDT', sum(units), 1, '', 'booked' FROM ledger_transfers
        WHERE reference LIKE '%:confirm'
    ON CONFLICT (network, txid, ordinal) DO UPDATE SET units = EXCLUDED.units
"""


def fill(first: int, last: int) -> None:
    """Book sales first to last, and what the books say after them."""
    base.execute(_SALES, {"first": first, "last": last, "shops": MERCHANTS})  # type: ignore[arg-type]
    base.execute(_BALANCES)
    base.execute(_TOPUP)
    base.execute("ANALYZE ledger_transfers")


def timed(what: str, step: Callable[[], object]) -> float:
    """Do a step, print how long it took, and return that in seconds."""
    began = time.perf_counter()
    step()
    took_s = time.perf_counter() - began
    sys.stdout.write(f"{what:<44}{took_s:8.2f} s\n")
    sys.stdout.flush()
    return took_s


def sound(*, is_full: bool) -> None:
    """Audit, and fail where something is wrong."""
    found = invariants.audit(is_full=is_full, within_s=600)
    if found:
        raise SystemExit(f"not sound: {found}")


def measure(database_url: str, count: int) -> bool:
    """Fill a database, time the audits, and return whether the goal is met."""
    migrate(database_url)
    base.connect(database_url, statement_timeout_ms=0)
    base.execute(_ACCOUNTS, {"shops": MERCHANTS})  # type: ignore[arg-type]
    sales = count // 5
    timed(f"generating {count:,} rows", lambda: fill(1, sales))
    timed("the first checkpoint", lambda: checkpoint.advance(within_s=600))
    fill(sales + 1, sales + TAIL // 5)
    took_s = timed(f"an audit, {TAIL:,} rows after its checkpoint", lambda: sound(is_full=False))
    timed("a full audit", lambda: sound(is_full=True))
    sys.stdout.write(f"goal: an audit within {GOAL_S:.0f} s: {'met' if took_s <= GOAL_S else 'MISSED'}\n")
    return took_s <= GOAL_S


def main() -> None:
    """Run it in a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{ROWS_QUICK:,} rows instead of {ROWS:,}")
    count = ROWS_QUICK if parser.parse_args().quick else ROWS
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    folder.chmod(0o711)
    leash = Leash()
    server = Postgres(folder, port=free_port(), leash=leash, durable=False)
    try:
        server.start()
        is_met = measure(server.url, count)
    finally:
        base.close()
        server.stop()
        leash.release()
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
