-- What a spend brings to whom: a transaction of some families pays many at once, each with an effect of its own.

CREATE TABLE spend_outputs (
    spend_id uuid NOT NULL REFERENCES spends,
    place integer NOT NULL CHECK (place >= 0),
    -- Of a payout's spend alone: whom it pays.
    payout_id uuid REFERENCES payouts,
    recipient text NOT NULL,
    -- In the network's own token units.
    token_units units NOT NULL,
    memo text NOT NULL DEFAULT '',
    -- open: not ended; confirmed, failed: deep enough, with and without effect, or as an operator said; dead: the spend
    -- can never be included.
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'confirmed', 'failed', 'dead')),
    -- What it moved, while its spend is in a block; of another effect what left, and what came to the recipient.
    effect text CHECK (effect IN ('none', 'exact', 'other')),
    left_units units,
    arrived_units units,
    -- What the gateway bears of that, and what a merchant was charged for one that failed and took effect after all; in
    -- the ledger's units.
    lost_units numeric NOT NULL DEFAULT 0 CHECK (scale(lost_units) = 0),
    charged_units units NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT '',
    PRIMARY KEY (spend_id, place)
);

-- In spends: token_units, left_units, arrived_units, lost_units and charged_units are sums over the outputs; effect is
-- theirs where they have the same, and else 'other'. payout_id, recipient and memo are what the version before writes
-- and reads, of a spend with one output; of others they are NULL. A later release drops them with the functions below.
ALTER TABLE spends ALTER COLUMN recipient DROP NOT NULL;
ALTER TABLE spends DROP CONSTRAINT spends_check;
ALTER TABLE spends ADD CONSTRAINT spends_pay_payouts CHECK (purpose = 'payout' OR payout_id IS NULL);

INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units, memo, state, effect, left_units,
    arrived_units, lost_units, charged_units, problem)
    SELECT id, 0, payout_id, recipient, token_units, memo,
        CASE WHEN state IN ('signed', 'sent', 'mined') THEN 'open' ELSE state END,
        effect, left_units, arrived_units, lost_units, charged_units, problem FROM spends;
-- A payout is paid by one output: another may follow only one that is dead.
CREATE UNIQUE INDEX spend_outputs_by_payout ON spend_outputs (payout_id)
    WHERE payout_id IS NOT NULL AND state <> 'dead';
CREATE INDEX spend_outputs_dead ON spend_outputs (payout_id) WHERE payout_id IS NOT NULL AND state = 'dead';
CREATE INDEX spend_outputs_unclear ON spend_outputs (payout_id) WHERE effect = 'other' AND state = 'open';
CREATE INDEX spend_outputs_by_recipient ON spend_outputs (recipient, spend_id) WHERE payout_id IS NULL;

-- Who names the recipient in the spend itself is the version before.
CREATE FUNCTION take_output() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units, memo, state, effect, left_units,
        arrived_units, lost_units, charged_units, problem)
        VALUES (NEW.id, 0, NEW.payout_id, NEW.recipient, NEW.token_units, NEW.memo,
            CASE WHEN NEW.state IN ('signed', 'sent', 'mined') THEN 'open' ELSE NEW.state END,
            NEW.effect, NEW.left_units, NEW.arrived_units, NEW.lost_units, NEW.charged_units, NEW.problem);
    RETURN NULL;
END $$;
CREATE TRIGGER spends_output AFTER INSERT ON spends FOR EACH ROW WHEN (NEW.recipient IS NOT NULL)
    EXECUTE FUNCTION take_output();

-- The version before reads the spend of one output as it knows it.
CREATE FUNCTION show_output() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.place = 0 THEN
        UPDATE spends SET payout_id = NEW.payout_id, recipient = NEW.recipient, memo = NEW.memo
            WHERE id = NEW.spend_id AND recipient IS NULL;
    ELSE
        UPDATE spends SET payout_id = NULL, recipient = NULL, memo = ''
            WHERE id = NEW.spend_id AND recipient IS NOT NULL;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER spend_outputs_shown AFTER INSERT ON spend_outputs FOR EACH ROW EXECUTE FUNCTION show_output();

-- What it does to a spend it does to its one output.
CREATE FUNCTION follow_spend() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was text := CASE WHEN OLD.state IN ('signed', 'sent', 'mined') THEN 'open' ELSE OLD.state END;
    is_now text := CASE WHEN NEW.state IN ('signed', 'sent', 'mined') THEN 'open' ELSE NEW.state END;
BEGIN
    UPDATE spend_outputs SET state = CASE WHEN was = is_now THEN state ELSE is_now END,
        effect = CASE WHEN NEW.effect IS DISTINCT FROM OLD.effect THEN NEW.effect ELSE effect END,
        left_units = CASE WHEN NEW.left_units IS DISTINCT FROM OLD.left_units THEN NEW.left_units ELSE left_units END,
        arrived_units = CASE WHEN NEW.arrived_units IS DISTINCT FROM OLD.arrived_units THEN NEW.arrived_units
            ELSE arrived_units END,
        lost_units = CASE WHEN NEW.lost_units <> OLD.lost_units THEN NEW.lost_units ELSE lost_units END,
        charged_units = CASE WHEN NEW.charged_units <> OLD.charged_units THEN NEW.charged_units ELSE charged_units END,
        problem = CASE WHEN NEW.problem <> OLD.problem THEN NEW.problem ELSE problem END
        WHERE spend_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER spends_followed AFTER UPDATE ON spends FOR EACH ROW
    WHEN (NEW.recipient IS NOT NULL AND OLD.recipient IS NOT NULL
        AND (NEW.state, NEW.effect, NEW.left_units, NEW.arrived_units, NEW.lost_units, NEW.charged_units, NEW.problem)
        IS DISTINCT FROM
        (OLD.state, OLD.effect, OLD.left_units, OLD.arrived_units, OLD.lost_units, OLD.charged_units, OLD.problem))
    EXECUTE FUNCTION follow_spend();

-- What left by each output counts against the limits of its own merchant.
ALTER TABLE signer.counted ADD COLUMN place integer NOT NULL DEFAULT 0;
ALTER TABLE signer.counted DROP CONSTRAINT counted_pkey;
ALTER TABLE signer.counted ADD PRIMARY KEY (spend_id, place);
