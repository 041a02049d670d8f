-- A merchant's own platform fee; NULL: the gateway's settings say it. fee_ppm and fee_fixed_usd_cents are what the
-- version before reads; nothing writes them any more.
ALTER TABLE merchants
    ADD COLUMN own_fee_ppm integer CHECK (own_fee_ppm BETWEEN 0 AND 1000000),
    ADD COLUMN own_fee_fixed_usd_cents integer CHECK (own_fee_fixed_usd_cents >= 0);
UPDATE merchants SET own_fee_ppm = NULLIF(fee_ppm, 15000), own_fee_fixed_usd_cents = NULLIF(fee_fixed_usd_cents, 30)
    WHERE (fee_ppm, fee_fixed_usd_cents) <> (15000, 30);
