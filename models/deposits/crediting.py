"""Books deposits: into suspense, to the merchant, back again. Callers hold the transaction and the owner's lock.

Locks are taken in one order everywhere: the row of the maturing credit, others' shares in it, the merchant's debt,
balances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import structlog

from core.catalogue.catalogue import Catalogue, Network
from core.rates.pricing import DividedCredit, divide_credit
from models.db.after_commit import then
from models.db.base import execute, repeat_on_deadlock, rows, transaction, value
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.ledger import debts, ledger, maturity, shares
from models.ledger.ledger import (
    AVAILABLE,
    CUSTODY,
    DEBT,
    FEES,
    GATEWAY,
    HOLD,
    MATURING,
    ROUNDING,
    SUSPENSE,
    Account,
    Transfer,
)
from models.ledger.rows import MaturingCredit

log = structlog.get_logger()


def book_confirmed(deposit: Deposit, merchant_id: UUID) -> None:
    """Put a confirmed deposit into suspense until it may be credited.

    One that a reorg took and brought back after it was sent back pays what its merchant came to owe for that.
    """
    name = f"deposit:{deposit.id}:{deposit.round}:confirm"
    custody = _custody(deposit)
    if deposit.refund_units is None:
        ledger.post(name, [Transfer(custody, _suspense(deposit, merchant_id), deposit.amount_units)])
        return
    debt = Account(merchant_id, DEBT, deposit.currency)
    repaid = min(deposit.refund_units, ledger.lock_debt(merchant_id, deposit.currency))
    ledger.post(
        name,
        [
            *rounded(custody, debt, out=deposit.amount_units, into=deposit.refund_units),
            # Repaid meanwhile out of other credits.
            Transfer(debt, Account(merchant_id, AVAILABLE, deposit.currency), deposit.refund_units - repaid),
        ],
    )


def rounded(source: Account, target: Account, *, out: int, into: int) -> list[Transfer]:
    """Return the transfers that take `out` units and give `into`; the gateway's rounding account has the difference."""
    rounding = Account(GATEWAY, ROUNDING, source.currency)
    return [
        Transfer(source, target, min(out, into)),
        Transfer(source, rounding, max(0, out - into)),
        Transfer(rounding, target, max(0, into - out)),
    ]


def credit(
    catalogue: Catalogue, deposit: Deposit, merchant_id: UUID, *, fee_ppm: int, fee_fixed_due_units: int
) -> DividedCredit | None:
    """Divide a confirmed deposit and credit its merchant, less the fees; None if another process did."""
    asset = catalogue.assets[deposit.currency]
    step = 10 ** (asset.scale - asset.precision)
    split = divide_credit(
        units=deposit.amount_units, fee_ppm=fee_ppm, fee_fixed_due_units=fee_fixed_due_units, step=step
    )
    rules = deposits.credit(
        deposit.id,
        net=split.net_units,
        fee=split.fee_units,
        fee_fixed=split.fee_fixed_units,
        rounding=split.rounding_units,
    )
    if rules is None:
        return None
    network = catalogue.networks[deposit.network]
    book_credited(deposit, merchant_id, split, network, rules=rules, step=step)
    facts = {
        "deposit": str(deposit.id), "merchant": str(merchant_id), "currency": deposit.currency,
        "network": deposit.network, "txid": deposit.txid,
    }  # fmt: skip
    then(lambda: log.info("deposit.credited", **facts))
    return split


def book_credited(
    deposit: Deposit,
    merchant_id: UUID,
    split: DividedCredit,
    network: Network,
    *,
    rules: Sequence[shares.Rule] = (),
    step: int = 1,
) -> None:
    """Give a confirmed deposit to its merchant: debts first, then others' shares, which wait in hold.

    The rest goes to maturing, or to available if nothing matures. step: that of the coin's precision.
    """
    currency, suspense = deposit.currency, _suspense(deposit, merchant_id)
    # A deposit that needs as many confirmations as maturity, or more, is mature when credited.
    matures = network.maturity > max(network.confirmations, deposit.depth_min)
    kind = MATURING if matures else AVAILABLE
    repaid, kept = debts.give(merchant_id, currency, split.net_units, out_of=suspense, kind=kind)
    shared = shares.Credit(deposit.id, deposit.round, merchant_id, currency, step, matures)
    others_units = shares.put_aside(shared, rules, kept.units) if rules else 0
    own = kept._replace(units=kept.units - others_units)
    ledger.post(
        f"deposit:{deposit.id}:{deposit.round}:credit",
        [
            repaid,
            own,
            Transfer(suspense, Account(merchant_id, HOLD, currency), others_units),
            Transfer(suspense, Account(GATEWAY, FEES, currency), split.fee_units + split.fee_fixed_units),
            Transfer(suspense, Account(GATEWAY, ROUNDING, currency), split.rounding_units),
        ],
    )
    if matures:
        MaturingCredit(
            deposit_id=deposit.id,
            round=deposit.round,
            merchant_id=merchant_id,
            network=deposit.network,
            block_height=deposit.block_height,
            currency=currency,
            units=own.units,
        ).write()


def book_reversed(deposit: Deposit, merchant_id: UUID) -> None:
    """Book the reversal of a deposit: from others' shares in hold, maturing, then available; the rest becomes debt.

    The merchant bears all of it, also shares that their recipients already received. If a refund took the deposit, the
    amount that it sent or still holds and can no longer release is taken from available, and a shortfall becomes debt.
    """
    if deposit.status == "pending":
        return
    name = f"deposit:{deposit.id}:{deposit.round}:reverse"
    if deposit.refund_units is not None:
        ledger.lock_debt(merchant_id, deposit.currency)
        available, debt = (Account(merchant_id, kind, deposit.currency) for kind in (AVAILABLE, DEBT))
        legs = rounded(debt, _custody(deposit), out=deposit.refund_units, into=deposit.amount_units)
        repaid = debts.take(merchant_id, deposit.currency, deposit.refund_units)
        ledger.post(name, [*legs, Transfer(available, debt, repaid)])
        return
    suspense = _suspense(deposit, merchant_id)
    legs = _uncredit(deposit, merchant_id, suspense) if deposit.status == "credited" else []
    ledger.post(name, [*legs, Transfer(suspense, _custody(deposit), deposit.amount_units)])


def _uncredit(deposit: Deposit, merchant_id: UUID, suspense: Account) -> list[Transfer]:
    currency = deposit.currency
    hold, maturing, available = (Account(merchant_id, kind, currency) for kind in (HOLD, MATURING, AVAILABLE))
    waiting, others = _stop_maturing(deposit), shares.end(deposit.id, deposit.round)
    ledger.lock_debt(merchant_id, currency)
    _, _, spendable = ledger.lock_balances(hold, maturing, available)
    from_available = min(deposit.net_units - waiting - others, spendable)
    owed = deposit.net_units - waiting - others - from_available
    if owed:
        debts.note(merchant_id, currency)
    return [
        Transfer(hold, suspense, others),
        Transfer(maturing, suspense, waiting),
        Transfer(available, suspense, from_available),
        Transfer(Account(merchant_id, DEBT, currency), suspense, owed),
        Transfer(Account(GATEWAY, FEES, currency), suspense, deposit.fee_units + deposit.fee_fixed_units),
        Transfer(Account(GATEWAY, ROUNDING, currency), suspense, deposit.rounding_units),
    ]


def lock_maturing(deposit: Deposit) -> None:
    """Lock a deposit's maturing credit until the transaction ends. Lock it before any debt or balance."""
    sql = "SELECT 1 FROM maturing_credits WHERE deposit_id = %s AND round = %s FOR UPDATE"
    execute(sql, (deposit.id, deposit.round))


def _stop_maturing(deposit: Deposit) -> int:
    sql = "DELETE FROM maturing_credits WHERE deposit_id = %s AND round = %s RETURNING units"
    return value(sql, (deposit.id, deposit.round)) or 0


def _at_once(_deposit_id: UUID, step: Callable[[UUID, int], bool], deposit_id: UUID, life: int) -> bool:
    return repeat_on_deadlock(step, deposit_id, life)


def release_matured(network: Network, *, limit: int, run: Callable[..., bool | None] = _at_once) -> int:
    """Make credits available whose deposits are at the maturity depth; return how many.

    If the chain reports finality, they wait for that too; see models.ledger.maturity. run: runs the step of one
    deposit, so that one that fails need not delay the others.
    """
    due = rows(
        "SELECT m.deposit_id, m.round FROM maturing_credits m JOIN chain_cursors c ON c.network = m.network"
        f" WHERE m.network = %(network)s AND {maturity.condition('m')} ORDER BY m.block_height LIMIT %(limit)s",
        maturity.bounds(network) | {"network": network.code, "limit": limit},
    )
    return sum(bool(run(deposit_id, _release, deposit_id, life)) for deposit_id, life in due)


# Others' shares in it are mature with it.
_MATURE: Final = (
    "WITH mature AS (DELETE FROM maturing_credits WHERE deposit_id = %s AND round = %s RETURNING *),"
    " shared AS (UPDATE split_shares s SET is_mature = true FROM mature m"
    " WHERE s.deposit_id = m.deposit_id AND s.round = m.round)"
    f" SELECT {MaturingCredit.LIST} FROM mature AS maturing_credits"
)


def _release(deposit_id: UUID, life: int) -> bool:
    """Move one credit from maturing to available, debts first; False if another process did."""
    with transaction():
        released = MaturingCredit.rows_of(_MATURE, (deposit_id, life))
        for credit in released:
            maturing = Account(credit.merchant_id, MATURING, credit.currency)
            legs = debts.give(credit.merchant_id, credit.currency, credit.units, out_of=maturing)
            ledger.post(f"deposit:{deposit_id}:{life}:mature", legs)
    return bool(released)


def _custody(deposit: Deposit) -> Account:
    return Account(GATEWAY, CUSTODY, deposit.currency, deposit.network)


def _suspense(deposit: Deposit, merchant_id: UUID) -> Account:
    return Account(merchant_id, SUSPENSE, deposit.currency)
