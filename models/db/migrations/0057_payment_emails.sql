-- E-mails of payments: the receipt, which a payment has once, and what its merchant asks to have sent.

ALTER TABLE emails DROP CONSTRAINT emails_kind_check;
ALTER TABLE emails ADD CONSTRAINT emails_kind_check CHECK (kind IN ('cheque', 'receipt', 'payment'));

-- How many were asked for lately is counted for each payment.
CREATE INDEX emails_of_payment ON emails (object_id, created_at) WHERE kind = 'payment';

-- When the receipt was written. Not told from the e-mails, which are forgotten.
ALTER TABLE invoices ADD COLUMN receipt_at timestamptz;
