-- Calls: queue messages whose caller waits for the answer.

CREATE TABLE calls (
    call_id uuid PRIMARY KEY,
    merchant_id uuid,
    -- NULL where the caller sent no Idempotency-Key.
    idem_key text,
    fingerprint bytea NOT NULL,
    -- abandoned is a tombstone: the caller was told gateway.busy, so this call must never take effect.
    state text NOT NULL CHECK (state IN ('done', 'abandoned')),
    -- The result as JSON, as it was answered.
    response text,
    created_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE UNIQUE INDEX calls_by_key ON calls (merchant_id, idem_key) WHERE idem_key IS NOT NULL AND state = 'done';
CREATE INDEX calls_by_age ON calls (created_at);

-- A call's transaction ends with the call's life. Its own statements look at the time, but a last one, or a pause
-- before COMMIT, would pass them; so PostgreSQL looks once more, at COMMIT, by its own clock. 57014 (query_canceled):
-- what the timeouts of a step answer, too.
CREATE FUNCTION refuse_late_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF clock_timestamp() > current_setting('sluice.call_ends_at')::timestamptz THEN
        RAISE EXCEPTION 'the call ended before its transaction' USING ERRCODE = 'query_canceled';
    END IF;
    RETURN NULL;
END $$;
-- Not for the statement that creates invoices: it is one statement, and its timeout is its end.
CREATE CONSTRAINT TRIGGER calls_end AFTER INSERT ON calls DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (current_setting('sluice.call_ends_at', true) <> '')
    EXECUTE FUNCTION refuse_late_call();

-- How a call begins. The key's lock, the order of the checks and the row are those of create_invoice().
-- outcome: new (the row is in, go on), replayed (another call of this key succeeded), repeated (this very call did),
-- abandoned (its caller was told that it never happens), in_progress (another call holds the key), key_reused.
-- p_life_ms: how long a caller waits for the answer; NULL for a call without an end.
CREATE FUNCTION begin_call(
    p_call_id uuid, p_merchant_id uuid, p_idem_key text, p_fingerprint bytea, p_timeout_ms integer, p_life_ms integer
) RETURNS TABLE (outcome text, response text) LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    IF p_life_ms IS NOT NULL THEN
        PERFORM set_config('sluice.call_ends_at', (clock_timestamp() + p_life_ms * interval '1 ms')::text, true);
    END IF;
    -- The caller's tombstone waits for this transaction, so no statement, lock or pause of it may take long.
    PERFORM set_config(name, LEAST(p_timeout_ms, p_life_ms)::text, true)
        FROM unnest(ARRAY['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) AS name;
    IF p_idem_key IS NOT NULL THEN
        IF NOT pg_try_advisory_xact_lock(hashtextextended(p_merchant_id || p_idem_key, 1)) THEN
            RETURN QUERY SELECT 'in_progress', NULL::text;
            RETURN;
        END IF;
        SELECT c.call_id, c.response, c.fingerprint INTO known FROM calls c
            WHERE c.merchant_id = p_merchant_id AND c.idem_key = p_idem_key AND c.state = 'done';
        IF FOUND AND known.fingerprint <> p_fingerprint THEN
            RETURN QUERY SELECT 'key_reused', NULL::text;
            RETURN;
        END IF;
        IF FOUND AND known.call_id <> p_call_id THEN
            RETURN QUERY SELECT 'replayed', known.response;
            RETURN;
        END IF;
    END IF;
    INSERT INTO calls (call_id, merchant_id, idem_key, fingerprint, state)
        VALUES (p_call_id, p_merchant_id, p_idem_key, p_fingerprint, 'done')
        ON CONFLICT (call_id) DO NOTHING;
    IF FOUND THEN
        RETURN QUERY SELECT 'new', NULL::text;
        RETURN;
    END IF;
    RETURN QUERY SELECT CASE c.state WHEN 'done' THEN 'repeated' ELSE 'abandoned' END, c.response
        FROM calls c WHERE c.call_id = p_call_id;
END $$;
