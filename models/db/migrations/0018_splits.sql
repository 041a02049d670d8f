-- What a merchant gives to others of what it is paid: its rules, the shares that they make of a credit, what refunds
-- took of those, and what came of them to their recipients.

CREATE TABLE split_rules (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    recipient_id uuid NOT NULL REFERENCES merchants,
    percent_ppm integer NOT NULL CHECK (percent_ppm BETWEEN 100 AND 1000000 AND percent_ppm % 100 = 0),
    title text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT app_now(),
    -- Which principal set it, and which second one agreed; whether it still waits for that one.
    set_by text NOT NULL DEFAULT '',
    cosigned_by text NOT NULL DEFAULT '',
    is_pending boolean NOT NULL DEFAULT false,
    CHECK (recipient_id <> merchant_id),
    CHECK (cosigned_by = '' OR cosigned_by <> set_by)
);
CREATE INDEX split_rules_of ON split_rules (merchant_id, id);

-- A part of one life of a deposit that waits in its merchant's hold for its recipient, or waited there. It outlives its
-- rule, which is therefore not referred to.
CREATE TABLE split_shares (
    id uuid PRIMARY KEY,
    deposit_id uuid NOT NULL REFERENCES deposits,
    round integer NOT NULL,
    rule_id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    recipient_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    percent_ppm integer NOT NULL,
    units units NOT NULL CHECK (units > 0),
    -- Where they are: still in hold, with refunds that did not fail, with the recipient, or taken back by a reorg.
    left_units units NOT NULL,
    taken_units units NOT NULL DEFAULT 0,
    released_units units NOT NULL DEFAULT 0,
    reversed_units units NOT NULL DEFAULT 0,
    is_reversed boolean NOT NULL DEFAULT false,
    release_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    -- Whether a share's credit is mature stands in its own row, so that whoever looks for what is due reads nothing
    -- else.
    is_mature boolean NOT NULL DEFAULT false,
    -- A share keeps the principal that set its rule: the rule may be deleted before its key is revoked. What returns to
    -- its merchant for that is counted.
    set_by text NOT NULL DEFAULT '',
    returned_units units NOT NULL DEFAULT 0,
    -- What a second voice agreed to ends with its key: a share keeps who co-signed its rule, and a payout of a
    -- co-signed rule has the co-signer's approval.
    cosigned_by text NOT NULL DEFAULT '',
    CHECK (units = left_units + taken_units + released_units + reversed_units + returned_units),
    CHECK (is_reversed OR reversed_units = 0),
    CHECK (NOT is_reversed OR left_units = 0)
);
CREATE INDEX split_shares_of_deposit ON split_shares (deposit_id, round);
CREATE INDEX split_shares_open ON split_shares (release_at, id) WHERE left_units > 0;
-- Due shares are read merchant by merchant, so that a frozen merchant's crowd costs the others no time.
CREATE INDEX split_shares_turns ON split_shares (merchant_id, release_at, id)
    WHERE left_units > 0 AND is_mature;

-- What a refund took out of a share; it counts until the refund fails or is cancelled.
CREATE TABLE split_takes (
    payout_id uuid NOT NULL REFERENCES payouts,
    share_id uuid NOT NULL REFERENCES split_shares,
    units units NOT NULL CHECK (units > 0),
    PRIMARY KEY (payout_id, share_id)
);
CREATE INDEX split_takes_of_share ON split_takes (share_id);

-- What a merchant received as a recipient, so that nobody adds up shares to tell it.
CREATE TABLE split_earnings (
    recipient_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    units units NOT NULL,
    PRIMARY KEY (recipient_id, currency)
);
