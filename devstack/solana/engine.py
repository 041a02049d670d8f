"""Executes transactions in LiteSVM, and notes the accounts before and after. Used by simulator.

LiteSVM runs the real programs: system, token, Token-2022, associated accounts, memo, lookup tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from solders.account import Account
from solders.clock import Clock
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata, SimulatedTransactionInfo, TransactionMetadata

from devstack.solana.programs import Holding, decimals_of, read_holding, read_table
from devstack.solana.transactions import Loaded, Signed, lookups_of

SLOTS_PER_EPOCH: Final = 432_000
GONE: Final = Account(0, b"", Pubkey.default())
Accounts = Mapping[Pubkey, Account | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A token account among the keys of a transaction."""

    place: int
    holding: Holding
    decimals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The effect of a transaction, as its block shows it."""

    # As nodes write it; None for success.
    err: Any
    fee: int
    logs: Sequence[str] = ()
    inner: Sequence[Any] = ()
    units: int = 0
    loaded: Loaded = field(default_factory=Loaded)
    keys: tuple[Pubkey, ...] = ()
    # By the order of the keys.
    lamports_before: tuple[int, ...] = ()
    lamports_after: tuple[int, ...] = ()
    held_before: tuple[Held, ...] = ()
    held_after: tuple[Held, ...] = ()
    # The accounts that it changed, as they were.
    before: Accounts = field(default_factory=dict)


class Engine:
    """The state after the newest block."""

    def __init__(self) -> None:
        self._svm = LiteSVM().with_blockhash_check(False).with_transaction_history(0)

    def account(self, key: Pubkey) -> Account | None:
        """Return an account, None if it does not exist."""
        return self._svm.get_account(key)

    def put(self, accounts: Accounts) -> None:
        """Set accounts; None removes one."""
        for key, account in accounts.items():
            self._svm.set_account(key, account or GONE)

    def add_program(self, key: Pubkey, code: bytes) -> None:
        """Install a program."""
        self._svm.add_program(key, code)

    def rent(self, size: int) -> int:
        """Return the least balance of an account with this much data."""
        return self._svm.minimum_balance_for_rent_exemption(size)

    def move_clock(self, slot: int, time_s: int) -> None:
        """Set the slot and time that programs see."""
        epoch = slot // SLOTS_PER_EPOCH
        self._svm.set_clock(Clock(slot, 0, epoch, epoch + 1, time_s))

    def loaded(self, signed: Signed) -> Loaded | None:
        """Return the addresses that a transaction takes from tables; None if a table or a place is missing."""
        writable: list[Pubkey] = []
        readonly: list[Pubkey] = []
        for table, to_change, to_read in lookups_of(signed.message):
            account = self.account(table)
            addresses = [] if account is None else read_table(bytes(account.data))
            if max([*to_change, *to_read], default=-1) >= len(addresses):
                return None
            writable += [addresses[place] for place in to_change]
            readonly += [addresses[place] for place in to_read]
        return Loaded(writable=tuple(writable), readonly=tuple(readonly))

    def run(self, signed: Signed) -> Outcome:
        """Execute a transaction and keep its effect."""
        loaded = self.loaded(signed)
        if loaded is None:
            return Outcome(err="AddressLookupTableNotFound", fee=0)
        keys = (*signed.message.account_keys, *loaded.writable, *loaded.readonly)
        before = {key: self.account(key) for key in keys}
        result = self._svm.send_transaction(signed.transaction)
        return self._outcome(result, loaded, keys, before, {key: self.account(key) for key in keys})

    def simulate(self, signed: Signed, *, checks_signatures: bool) -> tuple[Outcome, Accounts]:
        """Execute a transaction without keeping its effect; return it, and the accounts as it would leave them."""
        loaded = self.loaded(signed)
        if loaded is None:
            return Outcome(err="AddressLookupTableNotFound", fee=0), {}
        keys = (*signed.message.account_keys, *loaded.writable, *loaded.readonly)
        before = {key: self.account(key) for key in keys}
        self._svm.with_sigverify(checks_signatures)
        try:
            result = self._svm.simulate_transaction(signed.transaction)
        finally:
            self._svm.with_sigverify(True)
        changed = dict(result.post_accounts()) if isinstance(result, SimulatedTransactionInfo) else {}
        after = before | {key: account if account.lamports else None for key, account in changed.items()}
        return self._outcome(result, loaded, keys, before, after), after

    def fee(self, signed: Signed) -> int:
        """Return the fee of a transaction, which needs no signatures for this."""
        return self.simulate(signed, checks_signatures=False)[0].fee

    def _outcome(
        self,
        result: TransactionMetadata | FailedTransactionMetadata | SimulatedTransactionInfo,
        loaded: Loaded,
        keys: tuple[Pubkey, ...],
        before: Accounts,
        after: Accounts,
    ) -> Outcome:
        meta = result if isinstance(result, TransactionMetadata) else result.meta()
        err = json.loads(result.to_json())["err"] if isinstance(result, FailedTransactionMetadata) else None
        return Outcome(
            err=err,
            fee=meta.fee(),
            logs=meta.logs(),
            inner=meta.inner_instructions(),
            units=meta.compute_units_consumed(),
            loaded=loaded,
            keys=keys,
            lamports_before=_lamports(keys, before),
            lamports_after=_lamports(keys, after),
            held_before=self._holdings(keys, before),
            held_after=self._holdings(keys, after),
            before={key: account for key, account in before.items() if account != after[key]},
        )

    def _holdings(self, keys: Sequence[Pubkey], accounts: Accounts) -> tuple[Held, ...]:
        holdings = ((place, read_holding(accounts[key])) for place, key in enumerate(keys))
        return tuple(
            Held(place=place, holding=holding, decimals=self.decimals(holding.mint))
            for place, holding in holdings
            if holding is not None
        )

    def decimals(self, mint: Pubkey) -> int:
        """Return a mint's decimals; 0 without one."""
        account = self.account(mint)
        return 0 if account is None or len(account.data) == 0 else decimals_of(account)


def unsigned(message: Any) -> VersionedTransaction:
    """Return a transaction whose signatures are missing."""
    count = message.header.num_required_signatures
    return VersionedTransaction.populate(message, [Signature.default()] * count)


def _lamports(keys: Sequence[Pubkey], accounts: Accounts) -> tuple[int, ...]:
    there = (accounts[key] for key in keys)
    return tuple(0 if account is None else account.lamports for account in there)
