-- The gateway's own wallets: what came in from outside, what was swept, and what the chain says about all of it.

-- Addresses of ours besides the pool: written by the signer, which alone can derive them, and by the settings (cold).
CREATE TABLE treasury_addresses (
    network text NOT NULL,
    role text NOT NULL CHECK (role IN ('hot', 'cold')),
    address text NOT NULL,
    PRIMARY KEY (network, role),
    UNIQUE (network, address)
);

-- Money that came to the hot wallet from elsewhere: the gateway's own. Booked when it is deep enough.
CREATE TABLE treasury_topups (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    ordinal text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's units.
    units units NOT NULL,
    sender text NOT NULL DEFAULT '',
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'booked', 'reversed')),
    created_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (network, txid, ordinal)
);
CREATE INDEX treasury_topups_pending ON treasury_topups (network, block_height) WHERE status = 'pending';

-- The sweep that took a deposit to the hot wallet; NULL while it lies at its own address.
ALTER TABLE deposits ADD COLUMN sweep_id uuid REFERENCES spends;
CREATE INDEX deposits_to_sweep ON deposits (network, currency, address)
    WHERE sweep_id IS NULL AND status IN ('confirmed', 'credited');

-- The last comparison of ledger and chain, by network and coin.
CREATE TABLE reconciliations (
    network text NOT NULL,
    currency text NOT NULL,
    height bigint NOT NULL,
    -- In the ledger's units; on chain and expected, of the hot wallet.
    chain_units numeric NOT NULL,
    ledger_units numeric NOT NULL,
    is_sound boolean NOT NULL,
    -- Unsound so many times in a row, so that one lagging answer freezes nothing.
    misses integer NOT NULL DEFAULT 0,
    detail text NOT NULL DEFAULT '',
    checked_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, currency)
);
