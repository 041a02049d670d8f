-- Of the hot wallet: the spends that the rows show in no block, and that were in none up to this height. Their money was
-- not part of the balance yet. NULL is unknown: the version before wrote it.
ALTER TABLE reconciliations ADD COLUMN waiting_ids uuid[];
