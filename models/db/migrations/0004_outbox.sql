-- How webhook deliveries are found: merchant by merchant, so that nobody's backlog stands in front of another's.

CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (merchant_id, next_attempt_at)
    WHERE status IN ('pending', 'retrying');
DROP INDEX webhook_deliveries_due;

-- Every delivery leaves two dead entries behind, and the search for due ones steps over them until they are vacuumed.
ALTER TABLE webhook_deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- Leases up to p_limit due deliveries, going round the merchants in the order of their ids, from the one after p_after.
-- Each gets at most p_lane of them, or what p_allowances says for it. The cost is one index probe for each merchant
-- passed, p_walk of them at most, and one row for each delivery leased; it does not grow with what waits.
-- The last row has no id: its merchant is where to go on, NULL when the round came to its end.
-- The planner settings keep the indexes in use where the table's statistics are from an emptier day.
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
        RETURN QUERY
            WITH due AS MATERIALIZED (
                SELECT d.id FROM webhook_deliveries d
                    WHERE d.merchant_id = head.merchant_id AND d.status IN ('pending', 'retrying')
                        AND d.next_attempt_at <= moment AND (d.leased_until IS NULL OR d.leased_until <= moment)
                    ORDER BY d.next_attempt_at LIMIT LEAST(allowance, p_limit - taken) FOR UPDATE SKIP LOCKED
            ), leased AS (
                UPDATE webhook_deliveries d SET lease = p_lease, leased_until = moment + make_interval(secs => p_lease_s)
                    FROM due WHERE d.id = due.id RETURNING d.*
            )
            SELECT l.id::text, l.merchant_id::text, l.event, l.url, l.body, l.request_id, l.attempts,
                    e.id::text, e.url, e.secret_box
                FROM leased l LEFT JOIN webhook_endpoints e ON e.merchant_id = l.merchant_id AND e.replaced_at IS NULL;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        taken := taken + found_rows;
        EXIT WHEN taken >= p_limit;
    END LOOP;
    RETURN QUERY SELECT NULL::text, reached::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::integer,
        NULL::text, NULL::text, NULL::text;
END $$;
