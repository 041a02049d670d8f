-- Spends whose blocks leave the chain after they were settled: they are followed again.

-- How often that was: each time, what was booked is corrected under a reference of its own.
ALTER TABLE spends ADD COLUMN reopened integer NOT NULL DEFAULT 0;
-- What a merchant was charged for a failed payout that took effect after all, in the ledger's units.
ALTER TABLE spends ADD COLUMN charged_units units NOT NULL DEFAULT 0;
-- Whether it moves nothing and only uses up the slot of a failed spend, whose other bytes must not take effect.
ALTER TABLE spend_attempts ADD COLUMN is_void boolean NOT NULL DEFAULT false;
CREATE TRIGGER spend_attempts_void BEFORE UPDATE OF is_void ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
