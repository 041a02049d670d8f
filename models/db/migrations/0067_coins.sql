-- The coins of families whose claim is coins: what a transaction made for one of our addresses, change of our own
-- included, until another spends it. None is ever deleted.
CREATE TABLE coins (
    network text NOT NULL,
    txid text NOT NULL,
    vout bigint NOT NULL CHECK (vout >= 0),
    address text NOT NULL,
    currency text NOT NULL,
    -- In the network's token units.
    units units NOT NULL CHECK (units > 0),
    -- So many confirmations it takes at least until it may be spent.
    depth_min integer NOT NULL DEFAULT 0 CHECK (depth_min >= 0),
    -- The block that made it; NULL while a reorg has taken it.
    created_height bigint,
    created_hash text,
    -- The spend that has it as its claim: a coin has one at most.
    held_by uuid REFERENCES spends,
    -- What spent it, and the block in which that stands.
    spent_by_txid text,
    spent_height bigint,
    spent_hash text,
    PRIMARY KEY (network, txid, vout),
    CHECK (num_nulls(created_height, created_hash) IN (0, 2)),
    CHECK (num_nulls(spent_by_txid, spent_height, spent_hash) IN (0, 3))
);
CREATE INDEX coins_free ON coins (network, currency, created_height)
    WHERE held_by IS NULL AND spent_by_txid IS NULL AND created_height IS NOT NULL;
CREATE INDEX coins_held ON coins (held_by) WHERE held_by IS NOT NULL;
CREATE INDEX coins_by_block ON coins (network, created_height);
CREATE INDEX coins_by_spending ON coins (network, spent_height) WHERE spent_height IS NOT NULL;
CREATE INDEX coins_by_spender ON coins (network, spent_by_txid) WHERE spent_by_txid IS NOT NULL;

-- Transactions that took from our addresses though no row of ours knows them, of families whose transactions are told by
-- no counter. One that stands in a block stops the signing of its network until a row knows it.
CREATE TABLE stranger_spends (
    network text NOT NULL,
    txid text NOT NULL,
    -- NULL while a reorg has taken it.
    block_height bigint,
    block_hash text,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, txid),
    CHECK (num_nulls(block_height, block_hash) IN (0, 2))
);
