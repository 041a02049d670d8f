"""Writes every ledger row. One row is one transfer; callers hold the transaction. Used by every money step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from models.db.base import execute, is_true, rows, value
from models.ledger.rows import Balance, LedgerAccount

GATEWAY: Final = UUID(int=0)

AVAILABLE: Final = "available"
MATURING: Final = "maturing"
PAYOUT_HELD: Final = "payout_held"
HOLD: Final = "hold"
PERSONAL: Final = "personal"
# Accounts that may not go below zero: each has a balance row that a guarded UPDATE keeps.
GUARDED: Final = frozenset({AVAILABLE, MATURING, PAYOUT_HELD, HOLD, PERSONAL})

# Accounts that are sums of their transfers.
CUSTODY: Final = "custody"
SUSPENSE: Final = "suspense"
FEES: Final = "fees"
ROUNDING: Final = "rounding"
DEBT: Final = "debt"
# Network fees that merchants were charged, and gas that the chains took.
NETWORK_FEES: Final = "network_fees"
GAS: Final = "gas"
# Coin that the gateway took and gave in conversions, and coin that its operator brought in.
CONVERSION: Final = "conversion"
EQUITY: Final = "equity"
# Money at pool addresses without an owner: it may be a buyer's.
UNOWNED: Final = "unowned"


# The units that left an account less those that came to it.
OWED: Final = (
    "(SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t WHERE t.debit_account = a.id)"
    " - (SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t WHERE t.credit_account = a.id)"
)


# The ledger as the accounts between which it moved something: from the audit's sums, and from the rows since.
MOVES: Final = """(
    SELECT debit_account, credit_account, currency, units FROM audit_sums
    UNION ALL
    SELECT debit_account, credit_account, currency, units FROM ledger_transfers
        WHERE id > (SELECT through_id FROM audit_checkpoint)
)"""


# The rows of accounts that are named by four columns of values; `place` is where among them, from 1 on.
_WANTED: Final = (
    " JOIN unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) WITH ORDINALITY"
    " AS wanted (holder, kind, currency, network, place) USING (holder, kind, currency, network)"
)


class InsufficientFundsError(Exception):
    """A guarded account holds less than a transfer takes. Nothing may be committed after it."""

    def __init__(self, account: Account) -> None:
        super().__init__(f"{account.kind} of {account.holder} holds too little {account.currency}")
        self.account = account


class Account(NamedTuple):
    """Names an account: whose, which kind, which coin, and for custody on which network."""

    holder: UUID
    kind: str
    currency: str
    network: str = ""


class Transfer(NamedTuple):
    """Moves units (ledger scale) from the debit account to the credit account."""

    debit: Account
    credit: Account
    units: int


def post(reference: str, transfers: Sequence[Transfer]) -> None:
    """Book transfers under a reference that is used once. Zero amounts are left out.

    Raises InsufficientFundsError where a guarded account would go below zero, and a unique violation where the
    reference was booked before. Deltas are netted by account and rows are locked in id order, so that two steps
    over the same accounts cannot wait for each other.
    """
    post_all([(reference, transfers)])


def post_all(entries: Sequence[tuple[str, Sequence[Transfer]]]) -> None:
    """Post many references at once, as post() does one: either all are booked or none is."""
    booked = [(reference, *row) for reference, transfers in entries for row in _legs(transfers)]
    if not booked:
        return
    legs = [transfer for _, _, transfer in booked]
    ids = _account_ids(sorted({account for t in legs for account in (t.debit, t.credit)}))
    _apply_deltas(legs, ids)
    execute(
        "INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)"
        " SELECT * FROM unnest(%s::text[], %s::smallint[], %s::bigint[], %s::bigint[], %s::text[], %s::numeric[])",
        _columns(
            [(reference, leg, ids[t.debit], ids[t.credit], t.debit.currency, t.units) for reference, leg, t in booked]
        ),
    )


def _legs(transfers: Sequence[Transfer]) -> list[tuple[int, Transfer]]:
    """Number the transfers of a reference that move anything. Raises ValueError."""
    if any(type(t.units) is not int or t.units < 0 for t in transfers):
        raise ValueError("units are whole and not negative")
    legs = [t for t in transfers if t.units != 0]
    if any(t.debit.currency != t.credit.currency for t in legs):
        raise ValueError("a transfer has one currency")
    return list(enumerate(legs))


def _account_ids(accounts: Sequence[Account]) -> dict[Account, int]:
    """Find accounts by name and open those that are new."""
    ids = _find(accounts)
    missing = [account for account in accounts if account not in ids]
    if missing:
        LedgerAccount.write_all([LedgerAccount(**account._asdict()) for account in missing], "ON CONFLICT DO NOTHING")
        ids |= _find(missing)
    return ids


def _find(accounts: Sequence[Account]) -> dict[Account, int]:
    pairs = rows(f"SELECT wanted.place, a.id FROM accounts a {_WANTED}", _columns(accounts))
    return {accounts[place - 1]: account_id for place, account_id in pairs}


def _columns(table: Sequence[tuple[object, ...]]) -> tuple[list[object], ...]:
    return tuple(list(column) for column in zip(*table, strict=True))


def _apply_deltas(transfers: Sequence[Transfer], ids: dict[Account, int]) -> None:
    deltas: defaultdict[Account, int] = defaultdict(int)
    for transfer in transfers:
        deltas[transfer.debit] -= transfer.units
        deltas[transfer.credit] += transfer.units
    guarded = sorted((ids[account], account) for account in deltas if account.kind in GUARDED)
    for account_id, account in guarded:
        delta = deltas[account]
        if delta > 0:
            Balance(account_id=account_id, units=delta).write(
                "ON CONFLICT (account_id) DO UPDATE SET units = b.units + EXCLUDED.units"
            )
        elif delta < 0 and not execute(
            "UPDATE balances SET units = units - %s WHERE account_id = %s AND units >= %s",
            (-delta, account_id, -delta),
        ):
            raise InsufficientFundsError(account)


def balance(account: Account) -> int:
    """Return a guarded account's units; 0 if it was never used."""
    units = value(
        "SELECT b.units FROM balances b JOIN accounts a ON a.id = b.account_id"
        " WHERE (a.holder, a.kind, a.currency, a.network) = (%s, %s, %s, %s)",
        account,
    )
    return units or 0


def lock_balances(*accounts: Account) -> list[int]:
    """Lock guarded accounts' rows, in the order that post() takes, until the transaction ends; return their units."""
    pairs = rows(
        f"SELECT wanted.place, b.units FROM balances b JOIN accounts a ON a.id = b.account_id {_WANTED}"
        " ORDER BY a.id FOR UPDATE OF b",
        _columns(accounts),
    )
    units = dict(pairs)
    return [units.get(place, 0) for place in range(1, len(accounts) + 1)]


def lock_debt(holder: UUID, currency: str) -> int:
    """Lock what a merchant owes in a coin after reversals and return it: debits less credits.

    Lock it before any balance. A merchant without debts gets the account too: there must be something to lock.
    """
    account_id = lock_account(Account(holder, DEBT, currency))
    return int(value(f"SELECT {OWED} FROM accounts a WHERE a.id = %s", (account_id,)))


def lock_account(account: Account) -> int:
    """Lock an account until the transaction ends, opening it if it is new, and return its id.

    For accounts that are sums, which no balance row guards. Lock it before any balance.
    """
    account_id = _account_ids([account])[account]
    # Not FOR UPDATE, which would wait for everybody who books on the account and holds it by its foreign key.
    execute("SELECT 1 FROM accounts WHERE id = %s FOR NO KEY UPDATE", (account_id,))
    return account_id


def credited(accounts: Sequence[Account]) -> int:
    """Return what accounts that are sums hold together: credits less debits."""
    return int(
        value(
            f"WITH own AS MATERIALIZED (SELECT id FROM accounts a {_WANTED}) SELECT COALESCE(sum("
            " CASE WHEN m.credit_account IN (SELECT id FROM own) THEN m.units ELSE 0 END"
            f" - CASE WHEN m.debit_account IN (SELECT id FROM own) THEN m.units ELSE 0 END), 0) FROM {MOVES} m",
            _columns(accounts),
        )
    )


def debt(holder: UUID, currency: str) -> int:
    """Return what a merchant owes in a coin, as far as it is committed; nothing waits for it, nor does it hold."""
    units = value(
        f"SELECT {OWED} FROM accounts a WHERE (a.holder, a.kind, a.currency, a.network) = (%s, %s, %s, '')",
        (holder, DEBT, currency),
    )
    return units or 0


def has_debt(holder: UUID) -> bool:
    """Return whether a merchant owes in any coin, as far as that is committed; it takes no lock."""
    return is_true(
        f"SELECT 1 FROM accounts a WHERE a.holder = %s AND a.kind = %s AND {OWED} > 0 LIMIT 1", (holder, DEBT)
    )


def holdings(holder: UUID) -> dict[str, dict[str, int]]:
    """Return a holder's guarded balances and debt, all of one moment: {currency: {kind: units}}."""
    by_currency: dict[str, dict[str, int]] = {}
    for kind, currency, units in rows(
        "SELECT a.kind, a.currency, b.units FROM accounts a JOIN balances b ON b.account_id = a.id WHERE a.holder = %s"
        f" UNION ALL SELECT a.kind, a.currency, {OWED} FROM accounts a WHERE a.holder = %s AND a.kind = %s",
        (holder, holder, DEBT),
    ):
        by_currency.setdefault(currency, {})[kind] = units
    return by_currency
