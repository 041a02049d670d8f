-- What the gateway adds to the network fee that a payout was charged, in US cents, so that a day of it is bounded.
ALTER TABLE signer.counted ADD COLUMN carried_cents bigint NOT NULL DEFAULT 0 CHECK (carried_cents >= 0);
