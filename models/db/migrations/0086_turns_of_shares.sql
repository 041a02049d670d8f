-- no transaction
-- Due shares are read merchant by merchant, so that a frozen merchant's crowd costs the others no time. The version
-- before reads them in the order of their times and does without its index for the length of a deploy.
DROP INDEX CONCURRENTLY IF EXISTS split_shares_turns;
CREATE INDEX CONCURRENTLY split_shares_turns ON split_shares (merchant_id, release_at, id)
    WHERE left_units > 0 AND is_mature;
DROP INDEX CONCURRENTLY IF EXISTS split_shares_due;
-- E-mails of a day are counted by merchant, and by merchant and recipient.
DROP INDEX CONCURRENTLY IF EXISTS emails_of_recipient;
CREATE INDEX CONCURRENTLY emails_of_recipient ON emails (merchant_id, lower(recipient), created_at);
DROP INDEX CONCURRENTLY IF EXISTS emails_of_merchant;
CREATE INDEX CONCURRENTLY emails_of_merchant ON emails (merchant_id, created_at);
