-- Owners, their merchants with API keys, and what merchants decide about how they are paid.

CREATE TABLE owners (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now()
);

-- Where security notices about an owner's merchants go. Operators write it.
CREATE TABLE owner_emails (
    owner_id uuid PRIMARY KEY REFERENCES owners,
    email text NOT NULL CHECK (email <> '')
);

CREATE TABLE merchants (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL REFERENCES owners,
    name text NOT NULL,
    -- Counts every change of the terms below: a process may use cached terms only while this still matches.
    terms_version integer NOT NULL DEFAULT 1,
    accuracy_ppm integer CHECK (accuracy_ppm BETWEEN 0 AND 50000),
    created_at timestamptz NOT NULL DEFAULT app_now(),
    -- The source addresses from which a merchant's keys may sign; empty: from anywhere. Written as core.allowlist does.
    ip_allowlist text[] NOT NULL DEFAULT '{}'
        CHECK (cardinality(ip_allowlist) <= 100 AND array_position(ip_allowlist, NULL) IS NULL),
    -- accuracy_ppm outlives being switched off.
    accuracy_enabled boolean NOT NULL DEFAULT false,
    is_cosign_required boolean NOT NULL DEFAULT false,
    -- What is_subtract means where a request does not say it: true charges the network fee on top.
    is_payout_fee_on_top boolean NOT NULL DEFAULT true,
    -- Whether its split rules divide its credits, and for how long the shares wait.
    is_split_enabled boolean NOT NULL DEFAULT true,
    split_hold_hours integer NOT NULL DEFAULT 0 CHECK (split_hold_hours BETWEEN 0 AND 2160),
    -- A merchant's own platform fee; NULL: as the gateway's settings say.
    own_fee_ppm integer CHECK (own_fee_ppm BETWEEN 0 AND 1000000),
    own_fee_fixed_usd_cents integer CHECK (own_fee_fixed_usd_cents >= 0),
    -- What buyers read: a name, '' for the merchant's own, and where they reach the shop, '' for nowhere: an e-mail address
    -- or a web address.
    display_name text NOT NULL DEFAULT '' CHECK (char_length(display_name) <= 64),
    contact text NOT NULL DEFAULT '' CHECK (char_length(contact) <= 254),
    -- The colour of its pages; '' for the gateway's own. core.merchants.accents names them.
    accent text NOT NULL DEFAULT '' CHECK (char_length(accent) <= 16),
    CONSTRAINT merchants_accuracy_in_force
        CHECK (NOT accuracy_enabled OR (accuracy_ppm IS NOT NULL AND accuracy_ppm >= 10000))
);

-- Its picture on the pages of buyers, and the SHA-256 by which browsers ask for it. core.merchants.logos checks it.
CREATE TABLE merchant_logos (
    merchant_id uuid PRIMARY KEY REFERENCES merchants,
    digest text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    png bytea NOT NULL CHECK (octet_length(png) <= 32768)
);
CREATE INDEX merchant_logos_by_digest ON merchant_logos (digest);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    public_id text NOT NULL UNIQUE,
    merchant_id uuid NOT NULL REFERENCES merchants,
    kind text NOT NULL CHECK (kind IN ('unified', 'payment', 'payout')),
    label text NOT NULL DEFAULT '',
    secret_box text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id);

-- Every change here counts merchants.terms_version up in its transaction. No row of a merchant: every method.
CREATE TABLE accepted_methods (
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    PRIMARY KEY (merchant_id, currency, network)
);

-- Positive lowers the price, negative raises it; none is no row.
CREATE TABLE discounts (
    merchant_id uuid NOT NULL REFERENCES merchants,
    currency text NOT NULL,
    network text NOT NULL,
    discount_ppm integer NOT NULL CHECK (discount_ppm BETWEEN -990000 AND 990000 AND discount_ppm <> 0),
    PRIMARY KEY (merchant_id, currency, network)
);
