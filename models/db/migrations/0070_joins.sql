-- A spend may make one coin of many of ours. The version before leaves such a spend alone, as any whose purpose it does
-- not know.
ALTER TABLE spends DROP CONSTRAINT spends_purpose_check;
ALTER TABLE spends ADD CONSTRAINT spends_purpose_check
    CHECK (purpose IN ('payout', 'gas', 'sweep', 'cold', 'filler', 'join', 'lost'));
