-- A share keeps the principal that set its rule: the rule may be deleted before its key is revoked. What returns to its
-- merchant for that is counted. Shares of rules that are deleted by now name no key.

ALTER TABLE split_shares
    ADD COLUMN set_by text NOT NULL DEFAULT '',
    ADD COLUMN returned_units units NOT NULL DEFAULT 0,
    DROP CONSTRAINT split_shares_check,
    ADD CONSTRAINT split_shares_check
        CHECK (units = left_units + taken_units + released_units + reversed_units + returned_units) NOT VALID;
UPDATE split_shares s SET set_by = r.set_by FROM split_rules r WHERE r.id = s.rule_id AND s.left_units > 0;

-- Whether a rule of automatic withdrawal waits for a second principal, and which one agreed to it.
ALTER TABLE withdrawal_rules
    ADD COLUMN is_pending boolean NOT NULL DEFAULT false,
    ADD COLUMN cosigned_by text NOT NULL DEFAULT '',
    ADD CHECK (cosigned_by = '' OR cosigned_by <> set_by);

-- Where security notices about an owner's merchants go. Operators write it.
CREATE TABLE owner_emails (
    owner_id uuid PRIMARY KEY REFERENCES owners,
    email text NOT NULL CHECK (email <> '')
);
ALTER TABLE emails DROP CONSTRAINT emails_kind_check;
ALTER TABLE emails ADD CONSTRAINT emails_kind_check
    CHECK (kind IN ('cheque', 'receipt', 'payment', 'notice')) NOT VALID;
CREATE INDEX emails_notices ON emails (merchant_id, id) WHERE kind = 'notice';
