-- Whether a share's credit is mature stands in its own row, so that whoever looks for what is due reads nothing else.
ALTER TABLE split_shares ADD COLUMN is_mature boolean NOT NULL DEFAULT false;

UPDATE split_shares s SET is_mature = true WHERE NOT EXISTS
    (SELECT 1 FROM maturing_credits c WHERE c.deposit_id = s.deposit_id AND c.round = s.round);

CREATE INDEX split_shares_due ON split_shares (release_at, id) WHERE left_units > 0 AND is_mature;
