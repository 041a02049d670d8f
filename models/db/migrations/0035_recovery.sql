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

-- Transactions signed with one of our keys that no row of spend_attempts knows, with all that makes one.
CREATE TABLE unknown_spends (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    sender text NOT NULL,
    -- NULL is the hot wallet's key.
    key_ordinal bigint,
    slot bigint NOT NULL,
    recipient text NOT NULL,
    currency text NOT NULL,
    -- NULL moves the gas coin.
    contract text,
    decimals integer NOT NULL,
    token_units units NOT NULL,
    -- Whether it is a transfer and nothing else; a call of a contract may have moved anything.
    is_transfer boolean NOT NULL,
    raw bytea NOT NULL,
    gas_limit bigint NOT NULL,
    price_units units NOT NULL,
    tip_units units NOT NULL,
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
    UNIQUE (network, txid)
);
CREATE INDEX unknown_spends_open ON unknown_spends (network, block_height) WHERE status = 'open';
CREATE INDEX unknown_spends_by_slot ON unknown_spends (network, sender, slot);

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

-- lost: what an operator wrote off.
ALTER TABLE spends DROP CONSTRAINT spends_purpose_check;
ALTER TABLE spends ADD CONSTRAINT spends_purpose_check
    CHECK (purpose IN ('payout', 'gas', 'sweep', 'cold', 'filler', 'lost'));
