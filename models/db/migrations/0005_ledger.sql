-- The ledger, debts, and what the audit has summed up.

CREATE TABLE accounts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- A merchant's or owner's id, or the all-zero uuid for the gateway itself.
    holder uuid NOT NULL,
    kind text NOT NULL CHECK (
        kind IN (
            'available', 'maturing', 'payout_held', 'hold', 'personal', 'custody', 'suspense', 'fees', 'rounding',
            'debt', 'network_fees', 'gas', 'conversion', 'equity', 'unowned'
        )
    ),
    currency text NOT NULL,
    -- Custody is kept per network; elsewhere ''.
    network text NOT NULL DEFAULT '',
    UNIQUE (holder, kind, currency, network)
);

-- Only for accounts that may not go below zero; every other sum is read from the transfers.
CREATE TABLE balances (
    account_id bigint PRIMARY KEY REFERENCES accounts,
    units units NOT NULL DEFAULT 0
);

-- One row is one transfer, so an unbalanced entry cannot be written. Asset accounts (custody) are debited when they
-- grow.
CREATE TABLE ledger_transfers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What this books, e.g. 'deposit:<id>:1:credit'; with leg, unique: nothing is booked twice.
    reference text NOT NULL,
    leg smallint NOT NULL,
    debit_account bigint NOT NULL REFERENCES accounts,
    credit_account bigint NOT NULL REFERENCES accounts,
    currency text NOT NULL,
    units units NOT NULL CHECK (units > 0),
    booked_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (reference, leg),
    CHECK (debit_account <> credit_account)
);
CREATE INDEX ledger_transfers_debit ON ledger_transfers (debit_account);
CREATE INDEX ledger_transfers_credit ON ledger_transfers (credit_account);
CREATE TRIGGER ledger_transfers_append_only BEFORE UPDATE OR DELETE ON ledger_transfers
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_transfers_no_truncate BEFORE TRUNCATE ON ledger_transfers
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Who owes the gateway in a coin since a reorg took what he had spent. Written where a debt arises, deleted once it is
-- repaid; until then his payouts that are not signed are cancelled, as many as the debt needs.
CREATE TABLE debtors (
    merchant_id uuid NOT NULL REFERENCES merchants (id),
    currency text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    looked_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (merchant_id, currency)
);
CREATE INDEX debtors_turn ON debtors (looked_at, merchant_id);

-- Up to which row of the ledger, in the order of ids, the sums below go; and when the books were last found right.
CREATE TABLE audit_checkpoint (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    through_id bigint NOT NULL DEFAULT 0,
    passed_at timestamptz,
    -- The last time that the ledger itself was read anew, and agreed with the sums.
    full_passed_at timestamptz
);
INSERT INTO audit_checkpoint DEFAULT VALUES;

-- The ledger's rows up to there by the accounts between which they moved. Written by the audit alone; they stay true,
-- since no row of the ledger is ever changed.
CREATE TABLE audit_sums (
    debit_account bigint NOT NULL,
    credit_account bigint NOT NULL,
    currency text NOT NULL,
    transfers bigint NOT NULL,
    units numeric NOT NULL,
    PRIMARY KEY (debit_account, credit_account, currency)
);
