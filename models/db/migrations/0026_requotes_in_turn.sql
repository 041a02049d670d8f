-- no transaction
-- The invoices that are to be quoted anew, those included whose deposits are too small to hold their quote.

DROP INDEX CONCURRENTLY IF EXISTS invoices_to_quote_anew;

CREATE INDEX CONCURRENTLY invoices_to_quote_anew ON invoices (COALESCE(requote_after, rate_expires_at))
    WHERE status = 'check' AND detected_units * 10 < payer_units AND rate_expires_at < expires_at;

DROP INDEX CONCURRENTLY IF EXISTS invoices_to_requote;
