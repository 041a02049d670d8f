-- How far each network was scanned, and what the scan keeps besides deposits.

CREATE TABLE chain_cursors (
    network text PRIMARY KEY,
    height bigint NOT NULL,
    hash text NOT NULL,
    -- The number of blocks up to it, where windows are counted in blocks; NULL elsewhere.
    block_count bigint CHECK (block_count >= 0),
    block_time timestamptz NOT NULL,
    head_height bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT app_now(),
    -- The height that the chain itself calls final, NULL where it does not say.
    final_height bigint,
    -- Where the scan began: no deposit is looked for in that block or before it.
    started_height bigint NOT NULL,
    -- How far the second reading has come; NULL before it began.
    reread_height bigint,
    -- Why the scan stands still, '' while it does not, and since when.
    halted_reason text NOT NULL DEFAULT '',
    halted_at timestamptz,
    -- When what the chain calls final was last seen to move: only a tag that stands still is ever waited for no longer.
    final_moved_at timestamptz,
    -- When a network's pools were last looked at, for what waits in them.
    pools_read_at timestamptz,
    -- When a scan last looked at its chain, and since when it has read all that the chain had: it asked for the head
    -- then, and came to it. Of the clock of app_now(); NULL before the first look.
    looked_at timestamptz,
    head_reached_at timestamptz,
    -- The blocks that no other provider had to show before the second reading gave them up.
    unread_blocks bigint NOT NULL DEFAULT 0,
    -- The highest block that a network's scan ever stood on: deposits were credited by it. Lower only where two
    -- providers tell so, or where there is but one. Null until the scan moves on.
    peak_height bigint,
    -- The lowest block of ours in whose place another provider than the one that told it has another. The scan waits
    -- there.
    split_height bigint,
    -- Each invoice in coin that ended up to this moment was looked at for coin that contracts passed on; NULL before the
    -- first was.
    probed_until timestamptz
);

-- The last scanned blocks, for walking back after a reorg.
CREATE TABLE chain_blocks (
    network text NOT NULL,
    height bigint NOT NULL,
    hash text NOT NULL,
    parent_hash text NOT NULL,
    block_time timestamptz NOT NULL,
    -- The block upon which it stands: heights may have holes.
    parent_height bigint NOT NULL CHECK (parent_height < height),
    -- As of a cursor.
    block_count bigint CHECK (block_count >= 0),
    -- The mark of the provider that showed a block first: another one reads it a second time.
    read_by text NOT NULL DEFAULT '',
    PRIMARY KEY (network, height)
);

-- When the coin balance of an address was last compared with its deposits. Wallets are entered when they are made,
-- invoices when they are first looked at.
CREATE TABLE balance_probes (
    network text NOT NULL,
    address text NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    -- The newest height up to which two providers showed that deposits explain the balance, or the only one; NULL
    -- before the first time. The time of that block; NULL also after a reorg or a denial below it.
    height bigint,
    explained_until timestamptz,
    -- The mark of the provider that was asked last, and the height at which its balance was explained; NULL if it was
    -- not. Another one is asked next.
    read_by text NOT NULL DEFAULT '',
    read_height bigint,
    read_until timestamptz,
    -- The mark of the provider that last showed a block again in which the balance had grown. Another one is asked next.
    reread_by text NOT NULL DEFAULT '',
    probed_at timestamptz,
    -- The balance has to be explained up to a later block than this: some time after the end of its invoice, and after
    -- a surplus. NULL where only the rotation looks.
    due_until timestamptz,
    PRIMARY KEY (network, address)
);
CREATE INDEX balance_probes_open ON balance_probes (network, probed_at NULLS FIRST)
    WHERE due_until IS NOT NULL AND (explained_until IS NULL OR explained_until <= due_until);
CREATE INDEX balance_probes_rotation ON balance_probes (network, probed_at NULLS FIRST) WHERE owner_kind = 'wallet';

-- What our places held at a block that the scan had not come to when the chain told it, of networks whose nodes tell
-- balances of their newest block alone. One snapshot a network; units are the network's token units.
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
    -- Where money lies in coins, a kept snapshot tells what was left of those that a scanned block left unspent: of
    -- which block.
    asked_height bigint,
    asked_hash text,
    PRIMARY KEY (network, place, currency, address)
);

-- What was believed of one provider alone, by network and hour.
CREATE TABLE unwitnessed_credits (
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    PRIMARY KEY (network, hour)
);

-- Payments to invoices that stand in no block yet, of networks that tell everybody what waits for one. They prove
-- nothing but when they were seen, and nothing is booked by them.
CREATE TABLE sightings (
    network text NOT NULL,
    txid text NOT NULL,
    ordinal text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's units.
    units units NOT NULL CHECK (units > 0),
    address text NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind = 'invoice'),
    owner_id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    stray_reason text,
    -- What its transaction spends, as txid:vout.
    spends text[] NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT app_now(),
    -- Whether it is about to be included, as it was last told, and since when that was first said.
    is_soon boolean NOT NULL,
    soon_at timestamptz,
    -- A later transaction that spends some of the same.
    replaced_by text,
    -- No pool has it any more. Whether a block does is known once the scan has passed this height.
    lost_height bigint,
    gone_at timestamptz,
    PRIMARY KEY (network, txid, ordinal),
    CHECK (soon_at IS NOT NULL OR NOT is_soon)
);
CREATE INDEX sightings_by_owner ON sightings (owner_id);
CREATE INDEX sightings_open ON sightings (network) WHERE gone_at IS NULL;
CREATE INDEX sightings_by_age ON sightings (seen_at);

-- How many providers each network has, and how many of them have named their head within a minute.
CREATE TABLE provider_looks (
    network text PRIMARY KEY,
    providers integer NOT NULL,
    answering integer NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
