-- What one provider alone is not believed for, how final a chain says it is, and what only balances show.

-- A deposit that waits for a second opinion is not confirmed before agreed_at is set; no row: none is needed. One row for
-- each life of the deposit: what a reorg brought back has to be witnessed anew.
CREATE TABLE deposit_quorums (
    deposit_id uuid NOT NULL REFERENCES deposits,
    round integer NOT NULL,
    network text NOT NULL,
    -- amount: above the threshold; unpriced: its value is unknown; hourly: the small ones have used up the hour;
    -- missing: another reading of its block did not show it.
    reason text NOT NULL CHECK (reason IN ('amount', 'unpriced', 'hourly', 'missing')),
    asked_at timestamptz NOT NULL DEFAULT app_now(),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT app_now(),
    -- What stood in the way last.
    problem text NOT NULL DEFAULT '',
    agreed_at timestamptz,
    PRIMARY KEY (deposit_id, round)
);
CREATE INDEX deposit_quorums_due ON deposit_quorums (network, next_attempt_at) WHERE agreed_at IS NULL;

-- What was believed of one provider alone, by network and hour.
CREATE TABLE unwitnessed_credits (
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    PRIMARY KEY (network, hour)
);

-- The height that the chain itself calls final, NULL where it does not say.
ALTER TABLE chain_cursors ADD COLUMN final_height bigint;
-- Where the scan began: no deposit is looked for in that block or before it. NULL where that was not noted.
ALTER TABLE chain_cursors ADD COLUMN started_height bigint;
-- How far the second reading has come; NULL before it began.
ALTER TABLE chain_cursors ADD COLUMN reread_height bigint;
-- Why the scan stands still, '' while it does not, and since when.
ALTER TABLE chain_cursors ADD COLUMN halted_reason text NOT NULL DEFAULT '';
ALTER TABLE chain_cursors ADD COLUMN halted_at timestamptz;

-- When the coin balance of an address was last compared with its deposits. Wallets are entered when they are made,
-- invoices when they are first looked at.
CREATE TABLE balance_probes (
    network text NOT NULL,
    address text NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    -- The newest height at which balance and deposits agreed; NULL before the first time.
    height bigint,
    -- What has been swept from the address, in the ledger's units: it is missing from the balance and is no news.
    swept_units units NOT NULL DEFAULT 0,
    probed_at timestamptz,
    PRIMARY KEY (network, address)
);
CREATE INDEX balance_probes_rotation ON balance_probes (network, probed_at NULLS FIRST) WHERE owner_kind = 'wallet';

CREATE INDEX deposits_by_address ON deposits (network, address);
