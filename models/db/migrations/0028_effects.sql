-- What an included spend moved: a hold is given back only where that is nothing.

ALTER TABLE spends ADD COLUMN effect text CHECK (effect IN ('none', 'exact', 'other'));
-- Of another effect: what the token's own logs say left the sender and came to the recipient, in token units.
ALTER TABLE spends ADD COLUMN left_units units;
ALTER TABLE spends ADD COLUMN arrived_units units;
-- What of it the gateway bears, in the ledger's units; less than nothing where it gained.
ALTER TABLE spends ADD COLUMN lost_units numeric NOT NULL DEFAULT 0 CHECK (scale(lost_units) = 0);
-- Of those that are said to have had no effect, the chain is asked again before anything is given back.
UPDATE spends SET effect = 'exact' WHERE is_success;
UPDATE spends SET effect = 'none' WHERE NOT is_success AND settled_at IS NOT NULL;
CREATE INDEX spends_unclear ON spends (network, payout_id) WHERE effect = 'other' AND state = 'mined';
CREATE INDEX spends_lost ON spends (network, currency) WHERE lost_units <> 0;

-- A coin on one network may be frozen, as 'USDT:ethereum'.
ALTER TABLE payout_freezes DROP CONSTRAINT payout_freezes_scope_check;
ALTER TABLE payout_freezes ADD CONSTRAINT payout_freezes_scope_check
    CHECK (scope IN ('all', 'network', 'merchant', 'conversion', 'coin'));

-- How an operator settled a payout of which something else was moved; units are the ledger's.
CREATE TABLE payout_settlements (
    payout_id uuid PRIMARY KEY REFERENCES payouts,
    spend_id uuid NOT NULL REFERENCES spends,
    outcome text NOT NULL CHECK (outcome IN ('paid', 'failed')),
    left_units units NOT NULL,
    arrived_units units NOT NULL,
    lost_units numeric NOT NULL CHECK (scale(lost_units) = 0),
    reason text NOT NULL DEFAULT '',
    settled_by text NOT NULL,
    settled_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE TRIGGER payout_settlements_kept BEFORE DELETE OR UPDATE ON payout_settlements
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
