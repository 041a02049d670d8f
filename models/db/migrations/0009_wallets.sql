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
    -- The X-Request-Id of the call that created it, which its events name.
    request_id text NOT NULL,
    UNIQUE (merchant_id, currency, network, order_id),
    CHECK (NOT (is_credit_due AND blocked_at IS NOT NULL))
);
CREATE INDEX wallets_credit_due ON wallets (id) WHERE is_credit_due;
