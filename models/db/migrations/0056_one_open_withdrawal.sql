-- no transaction

-- A rule has one open payout at most, whoever runs twice.
DROP INDEX CONCURRENTLY IF EXISTS payouts_open_withdrawal;

CREATE UNIQUE INDEX CONCURRENTLY payouts_open_withdrawal ON payouts (merchant_id, currency)
    WHERE kind = 'autowithdraw' AND status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent');

ALTER TABLE payouts VALIDATE CONSTRAINT payouts_kind_check;

ALTER TABLE payouts VALIDATE CONSTRAINT payouts_made_by_a_rule;
