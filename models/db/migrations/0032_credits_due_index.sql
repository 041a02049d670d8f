-- no transaction

DROP INDEX CONCURRENTLY IF EXISTS invoices_credit_due;

CREATE INDEX CONCURRENTLY invoices_credit_due ON invoices (id) WHERE is_credit_due;
