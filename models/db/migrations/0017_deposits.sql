-- Deposits, the second opinions that they need, and their credits that mature.
CREATE TABLE deposits (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    -- EVM: 'native', or the ordinal of the log within its own receipt.
    ordinal text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's scale of the currency.
    amount_units units NOT NULL,
    address text NOT NULL,
    sender text NOT NULL DEFAULT '',
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    owner_id uuid NOT NULL,
    merchant_id uuid NOT NULL REFERENCES merchants,
    -- pending: on chain, not deep enough; confirmed: in suspense; credited: given to the merchant; reversed: reorged
    -- away.
    status text NOT NULL CHECK (status IN ('pending', 'confirmed', 'credited', 'reversed')),
    -- Why it does not count towards its invoice, if so.
    stray_reason text CHECK (stray_reason IN ('asset', 'network', 'dust')),
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    block_time timestamptz NOT NULL,
    -- The deposit's time for quote and expiry: its block's, or the earlier one at which it was first seen.
    seen_at timestamptz NOT NULL,
    detected_at timestamptz NOT NULL DEFAULT app_now(),
    confirmed_at timestamptz,
    -- Counts its lives: one more each time a reorg took it and it came back. Names its ledger bookings.
    round integer NOT NULL DEFAULT 0,
    -- How its credit was divided; what a reversal takes back.
    net_units units NOT NULL DEFAULT 0,
    fee_units units NOT NULL DEFAULT 0,
    fee_fixed_units units NOT NULL DEFAULT 0,
    rounding_units units NOT NULL DEFAULT 0,
    -- wallet.paid was written for this very deposit. A reorg that includes the transaction again must not repeat it.
    is_announced boolean NOT NULL DEFAULT false,
    -- Refunds of what is in suspense: the payout that takes a deposit; NULL once that payout failed or was cancelled.
    refund_id uuid REFERENCES payouts,
    -- What of the payout's hold came from this deposit, a multiple of the coin's precision; they add up to the hold.
    refund_units units,
    -- The sweep that took a deposit to the hot wallet; NULL while it lies at its own address. It is written before the
    -- spend, in one transaction.
    sweep_id uuid REFERENCES spends DEFERRABLE INITIALLY DEFERRED,
    -- So many confirmations a deposit takes at least, whatever its network asks for: a miner's reward.
    depth_min integer NOT NULL DEFAULT 0 CHECK (depth_min >= 0),
    UNIQUE (network, txid, ordinal),
    CONSTRAINT deposits_refund_is_whole CHECK ((refund_id IS NULL) = (refund_units IS NULL))
);
CREATE INDEX deposits_pending ON deposits (network, block_height) WHERE status = 'pending';
CREATE INDEX deposits_by_block ON deposits (network, block_height);
CREATE INDEX deposits_by_owner_newest ON deposits (owner_id, seen_at DESC, id DESC);
CREATE INDEX deposits_by_address ON deposits (network, address);
CREATE INDEX deposits_of_refund ON deposits (refund_id) WHERE refund_id IS NOT NULL;
CREATE INDEX deposits_to_sweep ON deposits (network, currency, address)
    WHERE sweep_id IS NULL AND status IN ('confirmed', 'credited');
CREATE INDEX deposits_of_sweep ON deposits (sweep_id) WHERE sweep_id IS NOT NULL;
-- Deposits that were swept before a deep reorg took them: their sweeps' bytes may take what is paid anew.
CREATE INDEX deposits_gone_swept ON deposits (network, currency, address)
    WHERE status = 'reversed' AND sweep_id IS NOT NULL;
-- What is open of a crowded invoice or wallet, in the order in which it is worked off, past all that is done.
CREATE INDEX deposits_of_owner_pending ON deposits (owner_id, seen_at, id) WHERE status = 'pending';
CREATE INDEX deposits_of_owner_held ON deposits (owner_id, seen_at, id)
    WHERE status = 'confirmed' AND stray_reason IS NULL AND refund_id IS NULL;
-- What the audit compares suspense with: the deposits that wait there, past all that are done.
CREATE INDEX deposits_in_suspense ON deposits (merchant_id, currency) INCLUDE (amount_units)
    WHERE status = 'confirmed' AND refund_id IS NULL;
-- And custody with: all that came, without reading its rows.
CREATE INDEX deposits_in_custody ON deposits (network, currency) INCLUDE (amount_units)
    WHERE status IN ('confirmed', 'credited');
-- Coin that was taken back: its addresses are probed until it is read again, since no transaction may show it.
CREATE INDEX deposits_hidden_gone ON deposits (network, address, block_height)
    WHERE status = 'reversed' AND (ordinal LIKE 'trace:%' OR ordinal LIKE 'probe:%' OR ordinal = 'native');

-- A deposit that waits for a second opinion is not confirmed before agreed_at is set; no row: none is needed. One row
-- for each life of the deposit: what a reorg brought back has to be witnessed anew.
CREATE TABLE deposit_quorums (
    deposit_id uuid NOT NULL REFERENCES deposits,
    round integer NOT NULL,
    network text NOT NULL,
    -- amount: above the threshold; unpriced: its value is unknown; hourly: the small ones have used up the hour;
    -- missing: another reading of its block did not show it; hidden: no transaction shows it.
    reason text NOT NULL CHECK (reason IN ('amount', 'unpriced', 'hourly', 'missing', 'hidden')),
    asked_at timestamptz NOT NULL DEFAULT app_now(),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT app_now(),
    -- What stood in the way last.
    problem text NOT NULL DEFAULT '',
    agreed_at timestamptz,
    -- Providers denied this life: a payment is not recorded again from the same block, and nothing is dated by it.
    is_denied boolean NOT NULL DEFAULT false,
    PRIMARY KEY (deposit_id, round)
);
CREATE INDEX deposit_quorums_due ON deposit_quorums (network, next_attempt_at) WHERE agreed_at IS NULL;

-- Credits that wait for the network's maturity depth before they are available.
CREATE TABLE maturing_credits (
    deposit_id uuid NOT NULL REFERENCES deposits,
    round integer NOT NULL,
    merchant_id uuid NOT NULL REFERENCES merchants,
    network text NOT NULL,
    block_height bigint NOT NULL,
    currency text NOT NULL,
    units units NOT NULL,
    PRIMARY KEY (deposit_id, round)
);
CREATE INDEX maturing_credits_due ON maturing_credits (network, block_height);
