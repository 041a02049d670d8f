-- Refunds of what is in suspense: the payout that takes a deposit; NULL once that payout failed or was cancelled.

ALTER TABLE deposits ADD COLUMN refund_id uuid REFERENCES payouts;
CREATE INDEX deposits_of_refund ON deposits (refund_id) WHERE refund_id IS NOT NULL;
