-- Payment links: what a merchant asks of whoever opens their page. Each checkout is an invoice of its own.
CREATE TABLE payment_links (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    title text NOT NULL DEFAULT '',
    description text NOT NULL DEFAULT '',
    amount_mode text NOT NULL CHECK (amount_mode IN ('fixed', 'open', 'range')),
    currency text NOT NULL,
    -- In the units that an invoice's price has.
    fixed_units units CHECK (fixed_units > 0),
    min_units units CHECK (min_units > 0),
    max_units units CHECK (max_units >= min_units),
    pinned_currency text,
    pinned_network text,
    is_active boolean NOT NULL DEFAULT true,
    expires_at timestamptz,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    updated_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', app_now()),
    CHECK ((amount_mode = 'fixed') = (fixed_units IS NOT NULL)),
    CHECK ((amount_mode = 'range') = (max_units IS NOT NULL)),
    CHECK (amount_mode <> 'range' OR min_units IS NOT NULL),
    CHECK (amount_mode <> 'fixed' OR min_units IS NULL),
    CHECK ((pinned_currency IS NULL) = (pinned_network IS NULL))
);
CREATE INDEX payment_links_by_merchant ON payment_links (merchant_id, id DESC);

-- p_calls: as create_invoices() takes them; p_call_ids, p_link_ids: their ids and those of their links, in their order.
-- outcome: created (response: the answer); not_found (the link is off, over, or there is none); full (it has
-- p_unpaid_max payments that wait for their buyers and whose time is not over); left (create_invoices() left it).
-- Nothing is written but what was created.
CREATE FUNCTION check_out(p_calls json, p_call_ids uuid[], p_link_ids uuid[], p_unpaid_max integer)
RETURNS TABLE (call_id uuid, outcome text, response text) LANGUAGE plpgsql AS $$
DECLARE
    refusals text[];
BEGIN
    -- Locked in one order, and in a statement of their own: the next one counts what those committed who had a lock
    -- before, and sees whether the link was switched off.
    PERFORM FROM payment_links l WHERE l.id = ANY (p_link_ids) ORDER BY l.id FOR NO KEY UPDATE;
    WITH open AS MATERIALIZED (
        SELECT l.id, (SELECT count(*) FROM (SELECT FROM invoices i
            WHERE i.link_id = l.id AND i.status IN ('select', 'check') AND i.expires_at > app_now()
            LIMIT p_unpaid_max) u) AS unpaid
        FROM payment_links l
        WHERE l.id = ANY (p_link_ids) AND l.is_active AND (l.expires_at IS NULL OR l.expires_at > app_now())
    ), judged AS (
        SELECT c.place, CASE
                WHEN o.id IS NULL THEN 'not_found'
                WHEN o.unpaid + row_number() OVER (PARTITION BY o.id ORDER BY c.place) > p_unpaid_max THEN 'full'
            END AS refusal
        FROM unnest(p_link_ids) WITH ORDINALITY AS c (link_id, place) LEFT JOIN open o ON o.id = c.link_id
    ) SELECT array_agg(j.refusal ORDER BY j.place) INTO refusals FROM judged j;
    IF array_remove(refusals, NULL) <> '{}' THEN
        SELECT COALESCE(json_agg(c.call), '[]') INTO p_calls
            FROM json_array_elements(p_calls) WITH ORDINALITY AS c (call, place) WHERE refusals[c.place] IS NULL;
    END IF;
    RETURN QUERY WITH made AS MATERIALIZED (SELECT m.call_id, m.response FROM create_invoices(p_calls) m)
        SELECT c.call_id, COALESCE(c.refusal, CASE WHEN m.call_id IS NULL THEN 'left' ELSE 'created' END), m.response
        FROM unnest(p_call_ids, refusals) AS c (call_id, refusal) LEFT JOIN made m ON m.call_id = c.call_id;
END $$;
