-- A quote whose rate cannot be renewed: extended_generation is the quote that was extended, which happens once;
-- requote_after is set while nobody can say what the buyer owes, and is when a rate is looked for again.
ALTER TABLE invoices ADD COLUMN extended_generation integer, ADD COLUMN requote_after timestamptz;
