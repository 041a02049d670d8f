-- A call's transaction ends with the call's life. Its own statements look at the time, but a last one, or a pause before
-- COMMIT, would pass them; so PostgreSQL looks once more, at COMMIT, by its own clock.

-- 57014 (query_canceled): what the timeouts of a step answer, too.
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

-- p_life_ms: how long somebody waits for the call; NULL for one without an end.
CREATE FUNCTION begin_call(
    p_call_id uuid, p_merchant_id uuid, p_idem_key text, p_fingerprint bytea, p_timeout_ms integer, p_life_ms integer
) RETURNS TABLE (outcome text, response text) LANGUAGE plpgsql AS $$
BEGIN
    IF p_life_ms IS NOT NULL THEN
        PERFORM set_config('sluice.call_ends_at', (clock_timestamp() + p_life_ms * interval '1 ms')::text, true);
    END IF;
    RETURN QUERY SELECT * FROM begin_call(
        p_call_id, p_merchant_id, p_idem_key, p_fingerprint, LEAST(p_timeout_ms, p_life_ms)
    );
END $$;
