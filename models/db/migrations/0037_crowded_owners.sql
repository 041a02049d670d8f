-- no transaction

-- What is open of a crowded invoice or wallet, in the order in which it is worked off, past all that is done.
DROP INDEX CONCURRENTLY IF EXISTS deposits_of_owner_pending;

CREATE INDEX CONCURRENTLY deposits_of_owner_pending ON deposits (owner_id, seen_at, id) WHERE status = 'pending';

DROP INDEX CONCURRENTLY IF EXISTS deposits_of_owner_held;

CREATE INDEX CONCURRENTLY deposits_of_owner_held ON deposits (owner_id, seen_at, id)
    WHERE status = 'confirmed' AND stray_reason IS NULL AND refund_id IS NULL;

-- They serve wallets too.
DROP INDEX CONCURRENTLY IF EXISTS deposits_of_wallets_pending;

DROP INDEX CONCURRENTLY IF EXISTS deposits_of_wallets_held;
