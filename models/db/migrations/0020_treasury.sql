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
    -- transfer: somebody's, the gateway's own from then on; balance: as that, but only the balance shows it; adopted:
    -- an operator said so; cold: back from the cold address, so that custody has held it all the time; unowned: at an
    -- address of nobody, so that it may be a buyer's: it is in custody, and is not the gateway's own until an operator
    -- says so, which makes it adopted.
    origin text NOT NULL DEFAULT 'transfer' CHECK (origin IN ('transfer', 'balance', 'adopted', 'cold', 'unowned')),
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'booked', 'reversed')),
    -- Counts the lives: a reorg may take it, and bring it back.
    round integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    -- What came to the hot wallet and one provider alone is not believed for: it is booked once agreed_at is set.
    -- doubted_for: as in deposit_quorums; NULL: no second opinion is needed. Of the present life alone.
    doubted_for text CHECK (doubted_for IN ('amount', 'unpriced', 'hourly', 'missing')),
    agreed_at timestamptz,
    asked_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT app_now(),
    -- What stood in the way last.
    problem text NOT NULL DEFAULT '',
    -- So many confirmations a transfer to the hot wallet takes at least: a miner's reward cannot be spent before.
    depth_min integer NOT NULL DEFAULT 0 CHECK (depth_min >= 0),
    -- Where a top-up came to: the hot wallet, or an address of the pool that was given out to nobody.
    address text NOT NULL DEFAULT '',
    -- Of what came back from a cold address: what the books had there, so that custody held it all the time; and what
    -- is beyond that, so that an operator brought it, which is booked like any other top-up. Both are decided when it
    -- is booked.
    known_units units NOT NULL DEFAULT 0,
    excess_units units NOT NULL DEFAULT 0,
    UNIQUE (network, txid, ordinal)
);
CREATE INDEX treasury_topups_pending ON treasury_topups (network, block_height) WHERE status = 'pending';
CREATE INDEX treasury_topups_by_height ON treasury_topups (network, block_height) WHERE status <> 'reversed';
CREATE INDEX treasury_topups_doubted ON treasury_topups (network, next_attempt_at)
    WHERE status = 'pending' AND doubted_for IS NOT NULL AND agreed_at IS NULL;
CREATE INDEX treasury_topups_unowned ON treasury_topups (network, id) WHERE origin = 'unowned';

-- Gas coin that a chain took from addresses of ours in transactions that no spend of theirs began: rent, and gas for
-- receiving. A reorg takes a row with its block.
CREATE TABLE charges (
    network text NOT NULL,
    txid text NOT NULL,
    address text NOT NULL,
    currency text NOT NULL,
    decimals integer NOT NULL,
    -- In the network's own token units; less than nothing where the address gained.
    units numeric NOT NULL CHECK (scale(units) = 0 AND units <> 0 AND abs(units) < 1e78),
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    -- doubted: one of two readings of the block alone shows it, and providers are asked. denied: they lack it. Both
    -- count nowhere.
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'booked', 'doubted', 'denied')),
    -- In the ledger's units.
    booked_units numeric NOT NULL DEFAULT 0 CHECK (scale(booked_units) = 0 AND abs(booked_units) < 1e78),
    -- When two providers had shown it; later readings no longer doubt it.
    agreed_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT app_now(),
    problem text NOT NULL DEFAULT '',
    PRIMARY KEY (network, txid, address),
    CHECK (status = 'booked' OR booked_units = 0)
);
CREATE INDEX charges_by_address ON charges (network, address, block_height) INCLUDE (currency, decimals, units, status);
CREATE INDEX charges_by_height ON charges (network, block_height);
CREATE INDEX charges_pending ON charges (network, block_height) WHERE status = 'pending';
CREATE INDEX charges_doubted ON charges (network, next_attempt_at) WHERE status = 'doubted';

-- How far the walk over unswept addresses has come, by network and walker; '' at its beginning. gas: what is left of
-- the gas that deposit addresses were given is swept where that is worth its fee.
CREATE TABLE treasury_walks (
    network text NOT NULL,
    walker text NOT NULL CHECK (walker IN ('sweep', 'reconcile', 'gas')),
    currency text NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (network, walker)
);

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
    -- Of the hot wallet: the spends that the rows show in no block, and that were in none up to this height. Their
    -- money was not part of the balance yet.
    waiting_ids uuid[],
    PRIMARY KEY (network, currency, place)
);

-- What an operator gave up for lost, against the gateway's equity.
CREATE TABLE treasury_writeoffs (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's units: all of it, and what of it no transaction explains, which is booked at once. The rest is
    -- booked as its transactions are buried.
    units units NOT NULL,
    unexplained_units units NOT NULL CHECK (unexplained_units <= units),
    reason text NOT NULL,
    written_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE INDEX treasury_writeoffs_by_network ON treasury_writeoffs (network, currency);

-- What an operator carried from the cold address of one network to the hot wallet of another: it has left the custody
-- of the first, against the gateway's equity; what arrives is a top-up like any other.
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
