-- What is left of the gas that deposit addresses were given is looked for too, and swept where that is worth its fee.
ALTER TABLE treasury_walks DROP CONSTRAINT treasury_walks_walker_check;
ALTER TABLE treasury_walks ADD CONSTRAINT treasury_walks_walker_check CHECK (walker IN ('sweep', 'reconcile', 'gas'));
