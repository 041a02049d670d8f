-- A database that lost its last commits: which database a network's signer worked with, why it may not sign now, and
-- what left our addresses without any row of ours.

-- The database that a network was last signed from. A dump that was restored has another system identifier, a recovery
-- to a point in time and a promoted standby have another timeline. 'pool:' and a family: for which its addresses are.
CREATE TABLE database_marks (
    network text PRIMARY KEY,
    system_identifier text NOT NULL,
    timeline text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT app_now()
);

-- How often the signer has looked after this database: the count stands in Redis too, and tells there of an older
-- state.
CREATE TABLE database_looks (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    looks bigint NOT NULL DEFAULT 0
);
INSERT INTO database_looks DEFAULT VALUES;

-- While a network's row is here nothing is signed for it.
CREATE TABLE signing_stops (
    network text PRIMARY KEY,
    reason text NOT NULL,
    -- Whose slots the chain tells more of than we do; '' where it is something else.
    sender text NOT NULL DEFAULT '',
    -- Whether the scan has stood at the head since.
    is_caught_up boolean NOT NULL DEFAULT false,
    stopped_at timestamptz NOT NULL DEFAULT app_now()
);

-- Transactions signed with one of our keys that no row of spend_attempts knows, with all that makes one; of every
-- family alike, with all its outputs and what it claims.
CREATE TABLE unknown_spends (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    sender text NOT NULL,
    -- NULL is the hot wallet's key.
    key_ordinal bigint,
    -- Only senders who count have slots.
    slot bigint,
    recipient text NOT NULL,
    currency text NOT NULL,
    -- NULL moves the gas coin.
    contract text,
    decimals integer NOT NULL,
    token_units units NOT NULL,
    -- Whether it is a transfer and nothing else; a call of a contract may have moved anything.
    is_transfer boolean NOT NULL,
    raw bytea NOT NULL,
    is_success boolean NOT NULL,
    -- What the chain took, in base units of the gas coin.
    chain_fee_units units NOT NULL,
    -- NULL while a reorg has taken it out of its block.
    block_height bigint,
    block_hash text,
    -- open: nobody knows what it was for; matched: what a row of ours asks for; order: an operator named the order;
    -- written_off: an operator took the loss; gone: its slot was used by another transaction.
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'matched', 'order', 'written_off', 'gone')),
    spend_id uuid REFERENCES spends,
    settled_by text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    settled_at timestamptz,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    -- As of an attempt.
    ceiling_units units NOT NULL,
    terms jsonb NOT NULL,
    -- [{"recipient", "units", "has_effect", "payout_id"}], change left out; payout_id is an operator's word. Empty:
    -- recipient and token_units are the one output. Of several, recipient is ''.
    outputs jsonb NOT NULL DEFAULT '[]',
    -- [[txid, vout]] of our coins that it spends, where the claim is coins.
    spends jsonb NOT NULL DEFAULT '[]',
    -- The end of its window, where the claim is one.
    expires_at timestamptz,
    expires_height bigint,
    -- By what the transfers of a transaction that no row knew are known, as of an attempt: it becomes one. '' for its
    -- id.
    mark text NOT NULL DEFAULT '',
    UNIQUE (network, txid)
);
CREATE INDEX unknown_spends_open ON unknown_spends (network, block_height) WHERE status = 'open';
CREATE INDEX unknown_spends_by_slot ON unknown_spends (network, sender, slot);

-- Transactions that took from our addresses though no row of ours knows them, of families whose transactions are told
-- by no counter. One that stands in a block stops the signing of its network until a row knows it.
CREATE TABLE stranger_spends (
    network text NOT NULL,
    txid text NOT NULL,
    -- NULL while a reorg has taken it.
    block_height bigint,
    block_hash text,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    -- Who sent it, '' where the chain names nobody.
    sender text NOT NULL DEFAULT '',
    PRIMARY KEY (network, txid),
    CHECK (num_nulls(block_height, block_hash) IN (0, 2))
);
CREATE INDEX stranger_spends_by_block ON stranger_spends (network, block_height) WHERE block_height IS NOT NULL;
