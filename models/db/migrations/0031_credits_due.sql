-- A decided invoice credits its deposits in pages; this says that some are left. NULL, as create_invoice() leaves it: no.
ALTER TABLE invoices ADD COLUMN is_credit_due boolean;
