-- What came to the hot wallet and one provider alone is not believed for: it is booked once agreed_at is set.
-- doubted_for: as in deposit_quorums; NULL: no second opinion is needed. Of the present life alone.
ALTER TABLE treasury_topups ADD COLUMN doubted_for text
    CHECK (doubted_for IN ('amount', 'unpriced', 'hourly', 'missing'));
ALTER TABLE treasury_topups ADD COLUMN agreed_at timestamptz;
ALTER TABLE treasury_topups ADD COLUMN asked_at timestamptz;
ALTER TABLE treasury_topups ADD COLUMN attempts integer NOT NULL DEFAULT 0;
ALTER TABLE treasury_topups ADD COLUMN next_attempt_at timestamptz NOT NULL DEFAULT app_now();
-- What stood in the way last.
ALTER TABLE treasury_topups ADD COLUMN problem text NOT NULL DEFAULT '';
CREATE INDEX treasury_topups_doubted ON treasury_topups (network, next_attempt_at)
    WHERE status = 'pending' AND doubted_for IS NOT NULL AND agreed_at IS NULL;
