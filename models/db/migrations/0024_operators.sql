-- Acts of operators, by commands: who, what, when and why. Written in the transaction of each act.
CREATE TABLE operator_acts (
    id uuid PRIMARY KEY,
    act text NOT NULL,
    subject text NOT NULL,
    details text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    done_by text NOT NULL CHECK (done_by <> ''),
    done_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE TRIGGER operator_acts_append_only BEFORE UPDATE OR DELETE ON operator_acts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operator_acts_no_truncate BEFORE TRUNCATE ON operator_acts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
