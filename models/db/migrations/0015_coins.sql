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
    -- A dearer attempt of a spend may claim coins besides those of the attempts before it: from which one on a coin is
    -- claimed. What all of them claim has number 0, and that alone tells, when somebody else spends it, that none of
    -- them can be included any more.
    held_number integer NOT NULL DEFAULT 0 CHECK (held_number >= 0),
    PRIMARY KEY (network, txid, vout),
    CHECK (num_nulls(created_height, created_hash) IN (0, 2)),
    CHECK (num_nulls(spent_by_txid, spent_height, spent_hash) IN (0, 3))
);
CREATE INDEX coins_held ON coins (held_by) WHERE held_by IS NOT NULL;
CREATE INDEX coins_by_block ON coins (network, created_height);
CREATE INDEX coins_by_spending ON coins (network, spent_height) WHERE spent_height IS NOT NULL;
CREATE INDEX coins_by_spender ON coins (network, spent_by_txid) WHERE spent_by_txid IS NOT NULL;
CREATE INDEX coins_unspent ON coins (network, currency, created_height) WHERE spent_by_txid IS NULL;
-- What pays is chosen among the most valuable coins: whoever sends us many small ones keeps no payout from its coin.
CREATE INDEX coins_by_worth ON coins (network, currency, units DESC, txid, vout)
    WHERE held_by IS NULL AND spent_by_txid IS NULL AND created_height IS NOT NULL;
