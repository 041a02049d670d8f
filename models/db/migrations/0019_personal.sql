-- Transfers from a merchant's balance to its owner's personal wallet, which all the owner's merchants share.
CREATE TABLE personal_transfers (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    owner_id uuid NOT NULL REFERENCES owners,
    order_id text,
    currency text NOT NULL,
    units units NOT NULL CHECK (units > 0),
    -- The personal balance right after it, as it was answered.
    balance_units units NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now())
);
CREATE UNIQUE INDEX personal_transfers_by_order ON personal_transfers (merchant_id, order_id)
    WHERE order_id IS NOT NULL;
