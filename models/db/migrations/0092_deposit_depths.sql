-- The confirmations that the deposit at deposit_height takes at least, whatever its network asks for: a block reward
-- takes 100. Null before it was settled by this version.
ALTER TABLE invoices ADD COLUMN deposit_depth_min integer;

-- Of small deposits to wallets on networks of coins the code says by itself that they do not count.
DROP TRIGGER deposits_to_wallets_count ON deposits;
CREATE TRIGGER deposits_to_wallets_count BEFORE INSERT ON deposits
    FOR EACH ROW WHEN (NEW.owner_kind = 'wallet' AND NEW.stray_reason <> 'dust')
    EXECUTE FUNCTION deposit_to_wallet_counts();
