-- The gateway's own wallets: what came in from outside, what was swept, and what the chain says about all of it.

-- Addresses of ours besides the pool: written by the signer, which alone can derive them, and from the settings (cold).
-- What was ours once stays: money may still come back from a cold address that was replaced.
CREATE TABLE treasury_addresses (
    network text NOT NULL,
    role text NOT NULL CHECK (role IN ('hot', 'cold')),
    address text NOT NULL,
    is_current boolean NOT NULL DEFAULT true,
    PRIMARY KEY (network, address)
);
CREATE UNIQUE INDEX treasury_addresses_current ON treasury_addresses (network, role) WHERE is_current;

-- Money that came to the hot wallet other than by a sweep. Booked when it is deep enough.
CREATE TABLE treasury_topups (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    -- '' where no transaction is known for it.
    txid text NOT NULL,
    ordinal text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's units.
    units units NOT NULL,
    sender text NOT NULL DEFAULT '',
    -- transfer: somebody's, the gateway's own from then on; balance: as that, but only the balance shows it; adopted: an
    -- operator said so; cold: back from the cold address, so that custody has held it all the time.
    origin text NOT NULL DEFAULT 'transfer' CHECK (origin IN ('transfer', 'balance', 'adopted', 'cold')),
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'booked', 'reversed')),
    -- Counts the lives: a reorg may take it, and bring it back.
    round integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (network, txid, ordinal)
);
CREATE INDEX treasury_topups_pending ON treasury_topups (network, block_height) WHERE status = 'pending';
CREATE INDEX treasury_topups_by_height ON treasury_topups (network, block_height) WHERE status <> 'reversed';

-- The sweep that took a deposit to the hot wallet; NULL while it lies at its own address. It is written before the
-- spend, in one transaction.
ALTER TABLE deposits ADD COLUMN sweep_id uuid REFERENCES spends DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX deposits_to_sweep ON deposits (network, currency, address)
    WHERE sweep_id IS NULL AND status IN ('confirmed', 'credited');
CREATE INDEX deposits_of_sweep ON deposits (sweep_id) WHERE sweep_id IS NOT NULL;

-- How far the walk over unswept addresses has come, by network and walker; '' at its beginning.
CREATE TABLE treasury_walks (
    network text NOT NULL,
    walker text NOT NULL CHECK (walker IN ('sweep', 'reconcile')),
    currency text NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (network, walker)
);

-- Gas that was sent to an address explains a part of its balance. balance_probes.swept_units is no longer used: what
-- left an address is in spends, by height.
CREATE INDEX spends_of_gas ON spends (network, recipient) WHERE purpose = 'gas';
CREATE INDEX spends_by_sender ON spends (network, sender, mined_height) WHERE mined_height IS NOT NULL;

-- The last comparison of rows and chain, by network, coin and place.
CREATE TABLE reconciliations (
    network text NOT NULL,
    currency text NOT NULL,
    -- hot: the hot wallet to the last unit; deposits: addresses with unswept deposits hold at least these;
    -- cold: the cold address holds at least what was sent there. Nothing is frozen for the last one.
    place text NOT NULL CHECK (place IN ('hot', 'deposits', 'cold')),
    height bigint NOT NULL,
    -- In the ledger's units.
    chain_units numeric NOT NULL,
    expected_units numeric NOT NULL,
    is_sound boolean NOT NULL,
    -- Unsound so many times in a row, at rising heights, so that one lagging answer freezes nothing.
    misses integer NOT NULL DEFAULT 0,
    -- The address that was found short, to be looked at again.
    address text NOT NULL DEFAULT '',
    detail text NOT NULL DEFAULT '',
    checked_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, currency, place)
);
