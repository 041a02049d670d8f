-- no transaction
-- When a coin that a network's payouts lack was last logged.
CREATE TABLE IF NOT EXISTS liquidity_alarms (
    network text NOT NULL,
    currency text NOT NULL,
    logged_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, currency)
);
-- The few approved refunds, to say of them that what they send back is not mature.
DROP INDEX CONCURRENTLY IF EXISTS payouts_of_refunds;
CREATE INDEX CONCURRENTLY payouts_of_refunds ON payouts (network)
    WHERE status = 'approved' AND (kind = 'refund' OR funded_from = 'suspense');
