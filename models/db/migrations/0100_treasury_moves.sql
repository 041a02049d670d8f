-- What an operator carried from the cold address of one network to the hot wallet of another: it has left the custody of
-- the first, against the gateway's equity; what arrives is a top-up like any other.
CREATE TABLE treasury_moves (
    id uuid PRIMARY KEY,
    currency text NOT NULL,
    from_network text NOT NULL,
    to_network text NOT NULL CHECK (to_network <> from_network),
    -- The transaction by which it left the cold address.
    txid text NOT NULL,
    units units NOT NULL CHECK (units > 0),
    moved_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (from_network, txid, currency)
);
