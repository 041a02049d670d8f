-- Refunds of what is in suspense: the payout that takes a deposit; NULL once that payout failed or was cancelled.

ALTER TABLE deposits ADD COLUMN refund_id uuid REFERENCES payouts;
-- What of the payout's hold came from this deposit, a multiple of the coin's precision; they add up to the hold.
ALTER TABLE deposits ADD COLUMN refund_units units;
ALTER TABLE deposits ADD CONSTRAINT deposits_refund_is_whole CHECK ((refund_id IS NULL) = (refund_units IS NULL));
CREATE INDEX deposits_of_refund ON deposits (refund_id) WHERE refund_id IS NOT NULL;

-- A refund of whatever was left then: a repeat without an amount, when nothing is left, means it.
ALTER TABLE payouts ADD COLUMN is_rest boolean NOT NULL DEFAULT false;
