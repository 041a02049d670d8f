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
    stopped_at timestamptz NOT NULL DEFAULT app_now(),
    -- Where windows are counted in blocks: the count of the first head that the scan reached after the stop.
    counted_from bigint
);

-- Departures without a row of spend_attempts when the scan met them, with all that makes an attempt; of every family
-- alike. One in a block stops the signing of its network until it is adopted.
CREATE TABLE unexplained_departures (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    -- What only one transaction can claim, by its family: its sender's slot, coins, or its own window.
    claim text NOT NULL CHECK (claim IN ('counter', 'coins', 'window')),
    -- '' where the chain names none.
    sender text NOT NULL,
    -- NULL while a reorg has taken it out of its block, and once it is dismissed.
    block_height bigint,
    block_hash text,
    -- unread: no node has shown yet what it moved in its block; unexplained: read, and not settled; adopted: the spend
    -- of our rows, or of the order that an operator named; written_off: an operator took the loss; dismissed: it is in
    -- no block, and no node shows it or none can include it. The scan reopens a dismissed one if it finds it in a block.
    status text NOT NULL DEFAULT 'unexplained' CHECK (
        status IN ('unread', 'unexplained', 'adopted', 'written_off', 'dismissed')
    ),
    spend_id uuid REFERENCES spends,
    settled_by text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    settled_at timestamptz,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    -- All below is what it moved: empty, 0 or false until a node has shown it. A slot shows it at once.
    -- NULL is the hot wallet's key.
    key_ordinal bigint,
    slot bigint CHECK (slot >= 0),
    currency text NOT NULL DEFAULT '',
    -- NULL moves the gas coin.
    contract text,
    decimals integer NOT NULL DEFAULT 0,
    -- Whether it is a transfer and nothing else; a call of a contract may have moved anything.
    is_transfer boolean NOT NULL DEFAULT false,
    raw bytea NOT NULL DEFAULT '',
    is_success boolean NOT NULL DEFAULT false,
    -- What the chain took, in base units of the gas coin; and from whom, '' for the sender.
    chain_fee_units numeric NOT NULL DEFAULT 0 CHECK (scale(chain_fee_units) = 0 AND abs(chain_fee_units) < 1e78),
    payer text NOT NULL DEFAULT '' CHECK (payer <> '' OR chain_fee_units >= 0),
    -- As of an attempt.
    ceiling_units units NOT NULL DEFAULT 0,
    terms jsonb NOT NULL DEFAULT '{}',
    -- [{"recipient", "units", "has_effect", "payout_id", "memo", "not_paid"}], change left out; payout_id and not_paid
    -- are an operator's word.
    outputs jsonb NOT NULL DEFAULT '[]',
    -- [[txid, vout]] of our coins that it spends.
    spends jsonb NOT NULL DEFAULT '[]',
    -- The end of its window, or of its slot.
    expires_at timestamptz,
    expires_height bigint,
    expires_block bigint,
    -- By what its transfers are known, as of an attempt; '' for its id.
    mark text NOT NULL DEFAULT '',
    UNIQUE (network, txid),
    CHECK (num_nulls(block_height, block_hash) IN (0, 2)),
    CHECK ((claim = 'counter') = (slot IS NOT NULL)),
    CHECK (claim = 'coins' OR spends = '[]'),
    CHECK (claim <> 'coins' OR expires_at IS NULL),
    CHECK (claim = 'window' OR num_nonnulls(expires_height, expires_block) = 0),
    CHECK ((raw = '') = (outputs = '[]')),
    CHECK (raw <> '' OR (status IN ('unread', 'dismissed') AND claim <> 'counter')),
    CHECK ((status IN ('adopted', 'written_off')) = (spend_id IS NOT NULL)),
    CHECK ((status IN ('adopted', 'written_off', 'dismissed')) = (settled_at IS NOT NULL)),
    CHECK (status <> 'dismissed' OR block_height IS NULL)
);
CREATE INDEX unexplained_departures_open ON unexplained_departures (network, block_height)
    WHERE status IN ('unread', 'unexplained');
CREATE INDEX unexplained_departures_by_slot ON unexplained_departures (network, sender, slot);
