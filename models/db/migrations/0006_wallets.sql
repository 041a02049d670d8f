-- Static wallets: permanent addresses whose deposits are credited as they confirm.

CREATE TABLE wallets (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    -- '' where the merchant gave none; NULLs would not be equal, and there must be one such wallet.
    order_id text NOT NULL,
    address_ordinal bigint NOT NULL,
    -- As the pool stores it, in the one spelling by which it is found.
    address text NOT NULL UNIQUE,
    -- The merchant's terms of the day on which the wallet was made.
    fee_ppm integer NOT NULL CHECK (fee_ppm BETWEEN 0 AND 1000000),
    blocked_at timestamptz,
    -- It was unblocked, and deposits that it held back are still to be credited.
    is_credit_due boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (merchant_id, currency, network, order_id),
    CHECK (NOT (is_credit_due AND blocked_at IS NOT NULL))
);
CREATE INDEX wallets_credit_due ON wallets (id) WHERE is_credit_due;

-- A wallet gathers deposits for years: what is open is found without looking at what is done, and info reads a page.
CREATE INDEX deposits_of_wallets_pending ON deposits (owner_id) WHERE owner_kind = 'wallet' AND status = 'pending';
CREATE INDEX deposits_of_wallets_held ON deposits (owner_id, seen_at, id)
    WHERE owner_kind = 'wallet' AND status = 'confirmed' AND stray_reason IS NULL;
CREATE INDEX deposits_by_owner_newest ON deposits (owner_id, seen_at DESC, id DESC);
DROP INDEX deposits_by_owner;

-- wallet.paid was written for this very deposit. A reorg that includes the transaction again must not repeat it.
ALTER TABLE deposits ADD COLUMN is_announced boolean NOT NULL DEFAULT false;
