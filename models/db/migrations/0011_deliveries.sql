-- The delivery log: where each webhook went, and how much waits, told without counting all of it.

-- The registered endpoint of the last attempt. No foreign key: checking it would cost every delivery a lookup.
ALTER TABLE webhook_deliveries ADD COLUMN sent_to uuid;

-- As before, and notes the endpoint with the lease. It is read once for each merchant passed.
CREATE OR REPLACE FUNCTION lease_webhooks(
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
