-- no transaction

-- A link's payments, newest first, and those of them that wait for their buyers. No other invoice pays for either. By the
-- moment, which orders no other index: by the id, a planner would walk back through everybody's.
DROP INDEX CONCURRENTLY IF EXISTS invoices_of_link;

CREATE INDEX CONCURRENTLY invoices_of_link ON invoices (link_id, created_at DESC, id DESC)
    WHERE link_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS invoices_unpaid_of_link;

CREATE INDEX CONCURRENTLY invoices_unpaid_of_link ON invoices (link_id)
    WHERE link_id IS NOT NULL AND status IN ('select', 'check');
