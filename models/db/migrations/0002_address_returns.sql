-- Returned ordinals keep the time at which a stash took them: until it has surely ended they are nobody else's.

ALTER TABLE address_returns ADD COLUMN taken_at timestamptz;

-- The mark at the epoch is the reclaim job's cursor: every ordinal up to it has been looked at.
INSERT INTO address_marks (family, marked_at, ordinal) VALUES ('evm', 'epoch', -1);
