-- The confirmations that the deposit at deposit_height takes at least, whatever its network asks for: a block reward
-- takes 100. Null before it was settled by this version.
ALTER TABLE invoices ADD COLUMN deposit_depth_min integer;
