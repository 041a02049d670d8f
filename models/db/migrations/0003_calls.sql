-- How a call begins. The key's lock, the order of the checks and the row are those of create_invoice().

-- outcome: new (the row is in, go on), replayed (another call of this key succeeded), repeated (this very call did),
-- abandoned (its caller was told that it never happens), in_progress (another call holds the key), key_reused.
CREATE FUNCTION begin_call(
    p_call_id uuid, p_merchant_id uuid, p_idem_key text, p_fingerprint bytea, p_timeout_ms integer
) RETURNS TABLE (outcome text, response text) LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    -- The caller's tombstone waits for this transaction, so no statement, lock or pause of it may take long.
    PERFORM set_config(name, p_timeout_ms::text, true)
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
