-- Payouts: every order for money to leave, whatever asked for it: the API, a claimed cheque, a refund.

ALTER TABLE merchants ADD COLUMN is_cosign_required boolean NOT NULL DEFAULT false;
-- What is_subtract means where a request does not say it: true charges the network fee on top.
ALTER TABLE merchants ADD COLUMN is_payout_fee_on_top boolean NOT NULL DEFAULT true;

CREATE TABLE payouts (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    order_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('payout', 'cheque', 'refund', 'resolve', 'stray', 'wallet_refund')),
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
    -- In the ledger's units: what was asked for, the network fee charged, what arrives, what was taken from the merchant.
    amount_units units NOT NULL,
    fee_units units NOT NULL,
    to_units units NOT NULL CHECK (to_units > 0),
    held_units units NOT NULL CHECK (held_units = to_units + fee_units),
    is_fee_on_top boolean NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent', 'confirmed',
        'failed', 'cancelled')),
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
    UNIQUE (merchant_id, order_id),
    CHECK ((from_currency IS NULL) = (from_units IS NULL) AND (from_currency IS NULL) = (rate IS NULL))
);
CREATE INDEX payouts_by_merchant ON payouts (merchant_id, id DESC);
CREATE INDEX payouts_of_invoice ON payouts (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payouts_of_wallet ON payouts (wallet_id) WHERE wallet_id IS NOT NULL;
-- What the broadcast has to take up: by merchant, so that nobody's crowd stands before another's.
CREATE INDEX payouts_due ON payouts (network, merchant_id, priority, due_at) WHERE status = 'approved';
CREATE INDEX payouts_open ON payouts (network, status) WHERE status IN ('pending', 'awaiting_cosign', 'approved',
    'broadcasting', 'sent');

-- Who approved a payout; nobody twice.
CREATE TABLE payout_approvals (
    payout_id uuid NOT NULL REFERENCES payouts,
    principal text NOT NULL,
    approved_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (payout_id, principal)
);

-- Who may not pay out now. scope: all ('' as name), network (its code), merchant (its id), conversion ('').
CREATE TABLE payout_freezes (
    scope text NOT NULL CHECK (scope IN ('all', 'network', 'merchant', 'conversion')),
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
