-- Heights with holes: the block upon which a kept one stands. The version before writes none, and knows networks without
-- holes alone: NULL means height - 1.
ALTER TABLE chain_blocks ADD COLUMN parent_height bigint CHECK (parent_height < height);

-- So many confirmations a deposit takes at least, whatever its network asks for: a miner's reward.
ALTER TABLE deposits ADD COLUMN depth_min integer NOT NULL DEFAULT 0 CHECK (depth_min >= 0);
