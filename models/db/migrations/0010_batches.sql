-- Batches: up to 5000 orders taken in one call, done one by one afterwards.
CREATE TABLE batches (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    kind text NOT NULL CHECK (kind IN ('payment', 'payout', 'refund')),
    on_error text NOT NULL CHECK (on_error IN ('continue', 'stop')),
    -- How many items succeeded and failed is counted from them: a counter here would have all workers in one line.
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'completed')),
    count integer NOT NULL CHECK (count BETWEEN 1 AND 5000),
    -- Who asked: what it makes is made in this principal's name.
    created_by text NOT NULL,
    request_id text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    completed_at timestamptz,
    -- How a completed batch ended; counted from its items until then.
    succeeded integer,
    failed integer,
    CHECK ((status = 'completed') = (completed_at IS NOT NULL))
);
-- Walked merchant by merchant, so that nobody's crowd stands before another's.
CREATE INDEX batches_open ON batches (merchant_id, id) WHERE status <> 'completed';
CREATE INDEX batches_over ON batches (completed_at) WHERE status = 'completed';

CREATE TABLE batch_items (
    batch_id uuid NOT NULL REFERENCES batches,
    position integer NOT NULL,
    order_id text NOT NULL DEFAULT '',
    -- The item as JSON; emptied once it is done.
    body text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'success', 'error')),
    result text,
    error_code text,
    error_message text,
    -- How often a worker began it and did not come to its end.
    begun integer NOT NULL DEFAULT 0,
    -- How often it was put off because the gateway could not do it just then.
    put_off integer NOT NULL DEFAULT 0,
    lease uuid,
    -- Nobody takes it up before this: the end of a lease, or of a pause.
    due_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (batch_id, position),
    CHECK ((status = 'success') = (result IS NOT NULL)),
    CHECK ((status = 'error') = (error_code IS NOT NULL)),
    CHECK ((error_code IS NULL) = (error_message IS NULL))
);
CREATE INDEX batch_items_open ON batch_items (batch_id, position) WHERE status = 'pending';
