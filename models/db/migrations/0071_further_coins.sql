-- A dearer attempt of a spend may claim coins besides those of the attempts before it: from which one on a coin is
-- claimed. What all of them claim has number 0, and that alone tells, when somebody else spends it, that none of them can
-- be included any more. The version before holds coins for first attempts alone.
ALTER TABLE coins ADD COLUMN held_number integer NOT NULL DEFAULT 0 CHECK (held_number >= 0);
