-- A static wallet's address is the same on all networks of its family, and what comes over any of them is credited.

-- The version before still calls it a stray and would hold it for ever.
CREATE FUNCTION deposit_to_wallet_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.stray_reason := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER deposits_to_wallets_count BEFORE INSERT ON deposits
    FOR EACH ROW WHEN (NEW.owner_kind = 'wallet' AND NEW.stray_reason IS NOT NULL)
    EXECUTE FUNCTION deposit_to_wallet_counts();

-- What was held until now is credited by the next ring.
UPDATE wallets w SET is_credit_due = true WHERE blocked_at IS NULL AND id IN (
    SELECT d.owner_id FROM deposits d WHERE d.owner_kind = 'wallet' AND d.stray_reason IS NOT NULL
        AND d.status = 'confirmed' AND d.refund_id IS NULL);
UPDATE deposits SET stray_reason = NULL WHERE owner_kind = 'wallet' AND stray_reason IS NOT NULL;

-- Coin that a contract passes on shows in balances alone: they are read on every network that is scanned.
INSERT INTO balance_probes (network, address, owner_kind)
    SELECT c.network, w.address, 'wallet' FROM wallets w CROSS JOIN chain_cursors c ON CONFLICT DO NOTHING;
