-- What the audit has summed up already, and how long batches and verdicts are kept.

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

-- How a completed batch ended; counted from its items until then.
ALTER TABLE batches ADD COLUMN succeeded integer;
ALTER TABLE batches ADD COLUMN failed integer;
CREATE INDEX batches_over ON batches (completed_at) WHERE status = 'completed';

CREATE INDEX sanction_verdicts_over ON sanction_verdicts (checked_at);
