-- The outbox: webhooks that are to be delivered.

CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    url text NOT NULL,
    secret_box text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    replaced_at timestamptz
);
CREATE UNIQUE INDEX webhook_endpoints_active ON webhook_endpoints (merchant_id) WHERE replaced_at IS NULL;

CREATE TABLE webhook_deliveries (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    event text NOT NULL,
    object_id uuid NOT NULL,
    -- The object's own url_callback; NULL means the merchant's current endpoint at the time of each attempt.
    url text,
    body text NOT NULL,
    request_id text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'retrying', 'delivered', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz DEFAULT app_now(),
    lease uuid,
    leased_until timestamptz,
    last_status_code integer,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    delivered_at timestamptz,
    -- The registered endpoint of the last attempt. No foreign key: checking it would cost every delivery a lookup.
    sent_to uuid
);
CREATE INDEX webhook_deliveries_kept ON webhook_deliveries (created_at)
    WHERE body <> '' AND status IN ('delivered', 'dead');
CREATE INDEX webhook_deliveries_by_object ON webhook_deliveries (object_id);
CREATE INDEX webhook_deliveries_by_merchant ON webhook_deliveries (merchant_id, created_at DESC, id DESC);
-- How webhook deliveries are found: merchant by merchant, so that nobody's backlog stands in front of another's.
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (merchant_id, next_attempt_at)
    WHERE status IN ('pending', 'retrying');
-- Every delivery leaves two dead entries behind, and the search for due ones steps over them until they are vacuumed.
ALTER TABLE webhook_deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
-- Dead deliveries are few among many delivered ones; whoever lists them must not wade through the others.
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (merchant_id, created_at DESC, id DESC)
    WHERE status = 'dead';
-- Most deliveries are of this one event, and pay nothing for it.
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (merchant_id, event, created_at DESC, id DESC)
    WHERE event <> 'invoice.paid';

-- Leases up to p_limit due deliveries, going round the merchants in the order of their ids, from the one after p_after.
-- Each gets at most p_lane of them, or what p_allowances says for it. The cost is one index probe for each merchant
-- passed, p_walk of them at most, and one row for each delivery leased; it does not grow with what waits.
-- The last row has no id: its merchant is where to go on, NULL when the round came to its end.
-- The planner settings keep the indexes in use where the table's statistics are from an emptier day.
-- The endpoint is noted with the lease, and read once for each merchant passed.
CREATE FUNCTION lease_webhooks(
    p_lease uuid, p_lease_s integer, p_after uuid, p_limit integer, p_walk integer, p_lane integer,
    p_merchants uuid[], p_allowances integer[]
) RETURNS TABLE (
    id text, merchant_id text, event text, url text, body text, request_id text, attempts integer,
    endpoint_id text, endpoint_url text, secret_box text
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := app_now();
    reached uuid := p_after;
    head record;
    endpoint record;
    taken integer := 0;
    found_rows integer;
    allowance integer;
BEGIN
    FOR visit IN 1 .. p_walk LOOP
        SELECT d.merchant_id, d.next_attempt_at INTO head FROM webhook_deliveries d
            WHERE d.status IN ('pending', 'retrying') AND d.merchant_id > reached
            ORDER BY d.merchant_id, d.next_attempt_at LIMIT 1;
        IF NOT FOUND THEN
            reached := NULL;
            EXIT;
        END IF;
        reached := head.merchant_id;
        CONTINUE WHEN head.next_attempt_at > moment;
        allowance := COALESCE(p_allowances[array_position(p_merchants, head.merchant_id)], p_lane);
        CONTINUE WHEN allowance <= 0;
        SELECT e.id, e.url, e.secret_box INTO endpoint FROM webhook_endpoints e
            WHERE e.merchant_id = head.merchant_id AND e.replaced_at IS NULL;
        RETURN QUERY
            WITH due AS MATERIALIZED (
                SELECT d.id FROM webhook_deliveries d
                    WHERE d.merchant_id = head.merchant_id AND d.status IN ('pending', 'retrying')
                        AND d.next_attempt_at <= moment AND (d.leased_until IS NULL OR d.leased_until <= moment)
                    ORDER BY d.next_attempt_at LIMIT LEAST(allowance, p_limit - taken) FOR UPDATE SKIP LOCKED
            )
            UPDATE webhook_deliveries d
                SET lease = p_lease, leased_until = moment + make_interval(secs => p_lease_s), sent_to = endpoint.id
                FROM due WHERE d.id = due.id
                RETURNING d.id::text, d.merchant_id::text, d.event, d.url, d.body, d.request_id, d.attempts,
                    endpoint.id::text, endpoint.url, endpoint.secret_box;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        taken := taken + found_rows;
        EXIT WHEN taken >= p_limit;
    END LOOP;
    RETURN QUERY SELECT NULL::text, reached::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::integer,
        NULL::text, NULL::text, NULL::text;
END $$;

-- How many deliveries are due, counted up to p_max, and for how many seconds the oldest has been. It goes round the
-- merchants as lease_webhooks does, p_walk of them at most, so that the cost does not grow with the backlog.
CREATE FUNCTION webhook_backlog(p_walk integer, p_max integer)
RETURNS TABLE (due integer, oldest_s double precision) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    moment timestamptz := app_now();
    reached uuid := '00000000-0000-0000-0000-000000000000';
    oldest timestamptz := moment;
    head record;
    more integer;
BEGIN
    due := 0;
    FOR visit IN 1 .. p_walk LOOP
        SELECT d.merchant_id, d.next_attempt_at INTO head FROM webhook_deliveries d
            WHERE d.status IN ('pending', 'retrying') AND d.merchant_id > reached
            ORDER BY d.merchant_id, d.next_attempt_at LIMIT 1;
        EXIT WHEN NOT FOUND;
        reached := head.merchant_id;
        CONTINUE WHEN head.next_attempt_at > moment;
        oldest := LEAST(oldest, head.next_attempt_at);
        CONTINUE WHEN due >= p_max;
        SELECT count(*) INTO more FROM (
            SELECT 1 FROM webhook_deliveries d
                WHERE d.merchant_id = head.merchant_id AND d.status IN ('pending', 'retrying')
                    AND d.next_attempt_at <= moment
                ORDER BY d.next_attempt_at LIMIT p_max - due
        ) counted;
        due := due + more;
    END LOOP;
    oldest_s := extract(epoch FROM moment - oldest);
    RETURN NEXT;
END $$;
