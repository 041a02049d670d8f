-- What a payout that had no effect still costs, and what the signer lets leave for one merchant.

-- What a network fee was reckoned from: what one transfer costs in the network's gas coin, in the ledger's units.
ALTER TABLE network_fees ADD COLUMN gas_units units;
-- Both as they were when the payout was made: so many of its coin's units for so many of the gas coin's. NULL: unknown.
ALTER TABLE payouts ADD COLUMN quote_units units;
ALTER TABLE payouts ADD COLUMN quote_gas_units units;
-- What of the fee stays taken although the payout failed.
ALTER TABLE payouts ADD COLUMN kept_units units NOT NULL DEFAULT 0;
ALTER TABLE payouts ADD CONSTRAINT payouts_keep_of_the_fee CHECK (kept_units <= fee_units);

-- What left by each spend of a payout: the share of its merchant in signer.spent, given back where nothing left.
CREATE TABLE signer.counted (
    spend_id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    is_given_back boolean NOT NULL DEFAULT false
);
CREATE INDEX counted_by_merchant ON signer.counted (merchant_id, hour) WHERE NOT is_given_back;
