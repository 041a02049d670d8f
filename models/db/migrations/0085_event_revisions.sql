-- The number of the payment's newest event, and whether money confirmed since then that no event has announced.
-- Null before the first: create_invoice inserts every column that the caller's version does not name as null.
ALTER TABLE invoices ADD COLUMN revision integer;
ALTER TABLE invoices ADD COLUMN is_growth_due boolean;
