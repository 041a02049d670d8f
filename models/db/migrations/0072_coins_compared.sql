-- Where money lies in coins, a kept snapshot tells what was left of those that a scanned block left unspent: of which
-- block. The version before neither writes nor reads it, and serves no such network.
ALTER TABLE balance_snapshots ADD COLUMN asked_height bigint;
ALTER TABLE balance_snapshots ADD COLUMN asked_hash text;
CREATE INDEX coins_unspent ON coins (network, currency, created_height) WHERE spent_by_txid IS NULL;
