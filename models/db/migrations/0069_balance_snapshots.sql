-- What our places held at a block that the scan had not come to when the chain told it, of networks whose nodes tell
-- balances of their newest block alone. One snapshot a network; units are the network's token units. The version before
-- neither writes nor reads it.
CREATE TABLE balance_snapshots (
    network text NOT NULL,
    place text NOT NULL CHECK (place IN ('hot', 'deposits', 'cold')),
    currency text NOT NULL,
    address text NOT NULL,
    units units NOT NULL,
    height bigint NOT NULL,
    block_hash text NOT NULL,
    witnesses integer NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, place, currency, address)
);
