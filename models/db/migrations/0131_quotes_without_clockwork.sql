-- Quotes of open invoices are derived when somebody looks, and written where a payment or the expiry needs them. Stop
-- every process before this migration and start the new version after it: two versions would judge by different prices.
-- The version before reads requote_after, which is gone, and fails at once.

DROP INDEX IF EXISTS invoices_to_quote_anew;

-- Before this moment no further quote begins: a payment held the last one until then.
ALTER TABLE invoices RENAME COLUMN requote_after TO quoted_until;

-- While nothing ran, no rates were kept: quotes that ran out since then are renewed from the first moment that has some.
UPDATE invoices SET quoted_until = CASE WHEN rate_expires_at < expires_at AND rate_expires_at < app_now()
    THEN app_now() + interval '10 seconds' END
WHERE status IN ('select', 'check') AND (quoted_until IS NOT NULL OR rate_expires_at < app_now());
