-- Payments to invoices that stand in no block yet, of networks that tell everybody what waits for one. They prove nothing
-- but when they were seen, and nothing is booked by them. The version before neither writes nor reads any.
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

-- When a network's pools were last looked at, for what waits in them.
ALTER TABLE chain_cursors ADD COLUMN pools_read_at timestamptz;
