-- Payout links (cheques): money put aside; who has the token names the address later.
CREATE TABLE payout_links (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    batch_id uuid,
    -- Where it stood in its batch.
    position integer,
    status text NOT NULL CHECK (status IN ('funded', 'claiming', 'claimed', 'cancelled', 'expired')),
    currency text NOT NULL,
    network text NOT NULL,
    -- What arrives, and the network fee on top; both held.
    amount_units units NOT NULL CHECK (amount_units > 0),
    fee_units units NOT NULL,
    title text NOT NULL DEFAULT '',
    note text NOT NULL DEFAULT '',
    email text NOT NULL DEFAULT '',
    reference text,
    -- SHA-256 of the claim token, which is stored nowhere.
    token_hash bytea NOT NULL UNIQUE,
    created_by text NOT NULL,
    request_id text NOT NULL DEFAULT '',
    expires_at timestamptz NOT NULL,
    -- Of the claim under way or done; the address in the stored form.
    claim_address text,
    claim_memo text NOT NULL DEFAULT '',
    claiming_since timestamptz,
    payout_id uuid REFERENCES payouts,
    created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    updated_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    CHECK ((status = 'claimed') = (payout_id IS NOT NULL)),
    CHECK ((status = 'claiming') <= (claim_address IS NOT NULL AND claiming_since IS NOT NULL))
);
CREATE UNIQUE INDEX payout_links_by_reference ON payout_links (merchant_id, reference) WHERE reference IS NOT NULL;
CREATE INDEX payout_links_by_merchant ON payout_links (merchant_id, id DESC);
CREATE UNIQUE INDEX payout_links_by_batch ON payout_links (batch_id, position) WHERE batch_id IS NOT NULL;
-- By merchant, so that nobody's crowd stands before another's.
CREATE INDEX payout_links_to_expire ON payout_links (merchant_id, expires_at) WHERE status = 'funded';
CREATE INDEX payout_links_to_reap ON payout_links (claiming_since) WHERE status = 'claiming';
