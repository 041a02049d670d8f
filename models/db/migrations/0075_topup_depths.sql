-- So many confirmations a transfer to the hot wallet takes at least: a miner's reward cannot be spent before.
ALTER TABLE treasury_topups ADD COLUMN depth_min integer NOT NULL DEFAULT 0 CHECK (depth_min >= 0);
