-- What a merchant wants to have sent to himself as soon as enough of a coin is available.
CREATE TABLE withdrawal_rules (
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    -- In the stored form of its family.
    address text NOT NULL,
    -- In the ledger's units.
    threshold_units units NOT NULL CHECK (threshold_units > 0),
    is_enabled boolean NOT NULL,
    -- The principal that named the address: what the rule pays out is made in its name.
    set_by text NOT NULL,
    -- The last payout that it made, until its end was looked at; and how many in a row ended unpaid.
    payout_id uuid REFERENCES payouts,
    failures integer NOT NULL DEFAULT 0,
    -- Not looked at before this, and why.
    due_at timestamptz NOT NULL DEFAULT app_now(),
    wait_reason text NOT NULL DEFAULT '',
    -- Whether the rule waits for a second principal, and which one agreed to it.
    is_pending boolean NOT NULL DEFAULT false,
    cosigned_by text NOT NULL DEFAULT '',
    PRIMARY KEY (merchant_id, currency),
    CHECK (cosigned_by = '' OR cosigned_by <> set_by)
);
CREATE INDEX withdrawal_rules_waiting ON withdrawal_rules (wait_reason) WHERE wait_reason <> '';

-- Where the walk round the rules stands.
CREATE TABLE withdrawal_walk (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    merchant_id uuid NOT NULL,
    currency text NOT NULL
);
INSERT INTO withdrawal_walk (merchant_id, currency) VALUES ('00000000-0000-0000-0000-000000000000', '');
