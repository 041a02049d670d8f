-- Where a top-up came to: the hot wallet, or an address of the pool that was given out to nobody.
ALTER TABLE treasury_topups ADD COLUMN address text NOT NULL DEFAULT '';
UPDATE treasury_topups t SET address = COALESCE(
    (SELECT k.address FROM coins k WHERE (k.network, k.txid) = (t.network, t.txid) AND k.vout::text = t.ordinal),
    (SELECT a.address FROM treasury_addresses a WHERE a.network = t.network AND a.role = 'hot' AND a.is_current),
    ''
);

-- unowned: at an address of nobody, so that it may be a buyer's. It is in custody, and is not the gateway's own until an
-- operator says so, which makes it adopted.
ALTER TABLE treasury_topups DROP CONSTRAINT treasury_topups_origin_check;
ALTER TABLE treasury_topups ADD CONSTRAINT treasury_topups_origin_check
    CHECK (origin IN ('transfer', 'balance', 'adopted', 'cold', 'unowned'));
-- What is booked already is among the gateway's own, and stays there.
UPDATE treasury_topups t SET origin = 'unowned' FROM treasury_addresses a
    WHERE t.status = 'pending' AND t.address <> '' AND a.network = t.network AND a.role = 'hot' AND a.is_current
    AND a.address <> t.address;
CREATE INDEX treasury_topups_unowned ON treasury_topups (network, id) WHERE origin = 'unowned';
