-- By what a transfer of ours is known where that is not the transaction's id: the recipient's side of it may have another.
ALTER TABLE spend_attempts ADD COLUMN mark text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX spend_attempts_by_mark ON spend_attempts (network, mark) WHERE mark <> '';
CREATE TRIGGER spend_attempts_marked BEFORE UPDATE OF mark ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
