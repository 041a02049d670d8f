-- Payouts: every order for money to leave, whatever asked for it: the API, a claimed cheque, a refund.
CREATE TABLE payouts (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    order_id text NOT NULL,
    kind text NOT NULL CHECK (
        kind IN ('payout', 'cheque', 'refund', 'resolve', 'stray', 'wallet_refund', 'autowithdraw')
    ),
    -- Where the money came from, and goes back to when it does not leave.
    funded_from text NOT NULL DEFAULT 'available' CHECK (funded_from IN ('available', 'suspense')),
    -- The ledger reference under which it is held: the signer signs for nothing that is not.
    hold_reference text NOT NULL,
    invoice_id uuid REFERENCES invoices,
    wallet_id uuid REFERENCES wallets,
    currency text NOT NULL,
    network text NOT NULL,
    -- In the stored form of its family.
    address text NOT NULL,
    memo text NOT NULL DEFAULT '',
    -- In the ledger's units: what was asked for, the network fee charged, what arrives, what was taken from the
    -- merchant.
    amount_units units NOT NULL,
    fee_units units NOT NULL,
    to_units units NOT NULL CHECK (to_units > 0),
    held_units units NOT NULL CHECK (held_units = to_units + fee_units),
    is_fee_on_top boolean NOT NULL,
    status text NOT NULL CHECK (
        status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent', 'confirmed', 'failed', 'cancelled')
    ),
    source text NOT NULL DEFAULT 'api' CHECK (source IN ('api', 'manual')),
    priority text NOT NULL DEFAULT 'normal' CHECK (priority IN ('normal', 'high')),
    is_approval_required boolean NOT NULL DEFAULT false,
    -- The principal: an API key's public id, or 'user:…' of the cabinet.
    created_by text NOT NULL,
    url_callback text,
    request_id text NOT NULL DEFAULT '',
    -- The conversion that paid for it; NULL without one.
    from_currency text,
    from_units units,
    -- Payout units for one unit of from_currency, as it was told.
    rate text,
    txid text NOT NULL DEFAULT '',
    -- Where the transaction stands in the chain; with the network's cursor it gives the confirmations shown.
    block_height bigint,
    error text,
    -- Not taken up by the broadcast before this.
    due_at timestamptz NOT NULL DEFAULT app_now(),
    created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    updated_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    -- What keeps an approved payout from being signed: since when the chain refuses it, and the last reason to wait.
    refused_since timestamptz,
    wait_reason text NOT NULL DEFAULT '',
    -- A refund of whatever was left then: a repeat without an amount, when nothing is left, means it.
    is_rest boolean NOT NULL DEFAULT false,
    -- Both as they were when the payout was made: so many of its coin's units for so many of the gas coin's. NULL:
    -- unknown.
    quote_units units,
    quote_gas_units units,
    -- What of the fee stays taken although the payout failed.
    kept_units units NOT NULL DEFAULT 0,
    -- The kind of obstacle behind wait_reason, for merchants.
    wait_kind text NOT NULL DEFAULT '' CHECK (
        wait_kind IN ('', 'liquidity', 'limit', 'freeze', 'fee', 'cosign', 'approval', 'network', 'debt')
    ),
    UNIQUE (merchant_id, order_id),
    CHECK ((from_currency IS NULL) = (from_units IS NULL) AND (from_currency IS NULL) = (rate IS NULL)),
    CONSTRAINT payouts_keep_of_the_fee CHECK (kept_units <= fee_units),
    CONSTRAINT payouts_made_by_a_rule CHECK (
        kind <> 'autowithdraw'
        OR (order_id = 'autowithdraw:' || id AND funded_from = 'available' AND source = 'manual' AND NOT is_fee_on_top)
    )
);
CREATE INDEX payouts_by_merchant ON payouts (merchant_id, id DESC);
CREATE INDEX payouts_of_invoice ON payouts (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payouts_of_wallet ON payouts (wallet_id) WHERE wallet_id IS NOT NULL;
-- What the broadcast has to take up: by merchant, so that nobody's crowd stands before another's.
CREATE INDEX payouts_due ON payouts (network, merchant_id, priority, due_at) WHERE status = 'approved';
CREATE INDEX payouts_open ON payouts (network, status) WHERE status IN ('pending', 'awaiting_cosign', 'approved',
    'broadcasting', 'sent');
-- Money that was held once pays for one payout.
CREATE UNIQUE INDEX payouts_by_hold ON payouts (hold_reference);
CREATE INDEX payouts_by_status ON payouts (merchant_id, status, id DESC);
CREATE INDEX payouts_by_currency ON payouts (merchant_id, currency, id DESC);
CREATE INDEX payouts_by_network ON payouts (merchant_id, network, id DESC);
-- A rule has one open payout at most, whoever runs twice.
CREATE UNIQUE INDEX payouts_open_withdrawal ON payouts (merchant_id, currency)
    WHERE kind = 'autowithdraw' AND status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent');
-- The few approved refunds, to say of them that what they send back is not mature.
CREATE INDEX payouts_of_refunds ON payouts (network)
    WHERE status = 'approved' AND (kind = 'refund' OR funded_from = 'suspense');

-- Who approved a payout; nobody twice.
CREATE TABLE payout_approvals (
    payout_id uuid NOT NULL REFERENCES payouts,
    principal text NOT NULL,
    approved_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (payout_id, principal)
);

-- Who may not pay out now. scope: all ('' as name), network (its code), merchant (its id), conversion (''),
-- coin (one coin on one network, as 'USDT:ethereum').
CREATE TABLE payout_freezes (
    scope text NOT NULL CHECK (scope IN ('all', 'network', 'merchant', 'conversion', 'coin')),
    name text NOT NULL DEFAULT '',
    reason text NOT NULL,
    -- An operator's command, or the reconciler.
    frozen_by text NOT NULL,
    frozen_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (scope, name, frozen_by)
);

-- What the sanctions oracle of a network said of an address, and when.
CREATE TABLE sanction_verdicts (
    network text NOT NULL,
    address text NOT NULL,
    is_sanctioned boolean NOT NULL,
    checked_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, address)
);
CREATE INDEX sanction_verdicts_over ON sanction_verdicts (checked_at);

-- When a coin that a network's payouts lack was last logged.
CREATE TABLE liquidity_alarms (
    network text NOT NULL,
    currency text NOT NULL,
    logged_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (network, currency)
);
