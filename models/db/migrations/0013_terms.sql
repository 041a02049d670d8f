-- What merchants decide about how they are paid. Every change counts merchants.terms_version up in its transaction.

-- No row of a merchant: every method.
CREATE TABLE accepted_methods (
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    PRIMARY KEY (merchant_id, currency, network)
);

-- Positive lowers the price, negative raises it; none is no row.
CREATE TABLE discounts (
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    discount_ppm integer NOT NULL CHECK (discount_ppm BETWEEN -990000 AND 990000 AND discount_ppm <> 0),
    PRIMARY KEY (merchant_id, currency, network)
);

-- accuracy_ppm outlives being switched off.
ALTER TABLE merchants ADD COLUMN accuracy_enabled boolean NOT NULL DEFAULT false;
UPDATE merchants SET accuracy_enabled = true WHERE accuracy_ppm >= 10000;
ALTER TABLE merchants ADD CONSTRAINT merchants_accuracy_in_force
    CHECK (NOT accuracy_enabled OR (accuracy_ppm IS NOT NULL AND accuracy_ppm >= 10000));
