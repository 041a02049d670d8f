-- What happens to an invoice and leaves no row of its own with its moment. The rest of its timeline is told from the rows
-- that there are, so that creating an invoice writes nothing for it.
CREATE TABLE invoice_events (
    invoice_id uuid NOT NULL REFERENCES invoices,
    id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT app_now(),
    event text NOT NULL CHECK (event IN ('selected', 'reorged', 'expired', 'resolved')),
    -- As its merchant is shown it.
    detail jsonb NOT NULL,
    PRIMARY KEY (invoice_id, id)
);

CREATE TRIGGER invoice_events_append_only BEFORE UPDATE OR DELETE ON invoice_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER invoice_events_no_truncate BEFORE TRUNCATE ON invoice_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
