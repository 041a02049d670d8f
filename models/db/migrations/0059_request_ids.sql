-- The call that made an invoice or a wallet is named by its events, as payouts' have it. NULL, as the version before
-- leaves it on invoices: not known.
ALTER TABLE invoices ADD COLUMN request_id text;
ALTER TABLE wallets ADD COLUMN request_id text;
