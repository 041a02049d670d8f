-- Of the quote that revives an expired invoice: the former expiry. A payment that was seen later is judged by no earlier
-- quote. NULL: a quote of another kind, or one of an earlier version.
ALTER TABLE quotes ADD COLUMN earlier_until timestamptz;
