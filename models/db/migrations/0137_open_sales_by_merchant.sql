-- no transaction

-- A list of what is open went past all that a merchant ever sold. What is open is few, so its index is small; a sale pays
-- for one entry, and for one less when it ends.
DROP INDEX CONCURRENTLY IF EXISTS invoices_open_by_status;

CREATE INDEX CONCURRENTLY invoices_open_by_status ON invoices (merchant_id, status, id DESC)
    WHERE status IN ('select', 'check');

-- A status that is rare for one merchant may be common for the others: taken for common there, it was looked for from the
-- newest sale of the gateway on, past all of them.
DROP STATISTICS IF EXISTS invoices_of_statuses;

CREATE STATISTICS invoices_of_statuses (mcv) ON merchant_id, status FROM invoices;
