-- no transaction
-- What is due is read network by network, so that invoices that wait for a scan which does not move are in nobody's way.

DROP INDEX CONCURRENTLY IF EXISTS invoices_to_end;

CREATE INDEX CONCURRENTLY invoices_to_end ON invoices (COALESCE(network, ''), expires_at)
    WHERE status IN ('select', 'check');

DROP INDEX CONCURRENTLY IF EXISTS invoices_to_expire;
