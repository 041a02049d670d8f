-- What a sweep of a coin costs, with the transaction that brings its gas; in the ledger's units of the coin. NULL where
-- the version before wrote the quote: a payout's figure counts for it then. That version leaves it as it was where it
-- writes a newer quote beside this one; what is a few minutes old judges only which addresses are looked at, and before
-- gas is sent the offer itself is judged.
ALTER TABLE network_fees ADD COLUMN sweep_units units;
