-- no transaction

-- What the audit compares suspense with: the deposits that wait there, past all that are done.
DROP INDEX CONCURRENTLY IF EXISTS deposits_in_suspense;

CREATE INDEX CONCURRENTLY deposits_in_suspense ON deposits (merchant_id, currency) INCLUDE (amount_units)
    WHERE status = 'confirmed' AND refund_id IS NULL;

-- And custody with: all that came, without reading its rows.
DROP INDEX CONCURRENTLY IF EXISTS deposits_in_custody;

CREATE INDEX CONCURRENTLY deposits_in_custody ON deposits (network, currency) INCLUDE (amount_units)
    WHERE status IN ('confirmed', 'credited');
