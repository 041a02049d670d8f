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

-- The link that an invoice was checked out by. Without a foreign key, which every invoice would pay for; the audit
-- compares instead.
ALTER TABLE invoices ADD COLUMN link_id uuid;

-- p_calls: as create_invoices() takes them, each with its link's id inside its invoice. outcome: created (response: the
-- answer); not_found (the link is off, over, or there is none); full (it has p_unpaid_max payments that wait for their
-- buyers); left (create_invoices() left it). Nothing is written but for what was created.
CREATE FUNCTION check_out(p_calls json, p_unpaid_max integer)
RETURNS TABLE (call_id uuid, outcome text, response text) LANGUAGE plpgsql AS $$
DECLARE
    wanted uuid[];
BEGIN
    SELECT array_agg(DISTINCT (c.call #>> '{invoice,link_id}')::uuid) INTO wanted
        FROM json_array_elements(p_calls) AS c (call);
    -- Locked in one order, and in a statement of their own: the next one counts what those committed who had a lock
    -- before, and sees whether the link was switched off.
    PERFORM FROM payment_links l WHERE l.id = ANY (wanted) ORDER BY l.id FOR NO KEY UPDATE;
    RETURN QUERY WITH open AS MATERIALIZED (
        SELECT l.id, (SELECT count(*) FROM (SELECT FROM invoices i
            WHERE i.link_id = l.id AND i.status IN ('select', 'check') LIMIT p_unpaid_max) u) AS unpaid
        FROM payment_links l
        WHERE l.id = ANY (wanted) AND l.is_active AND (l.expires_at IS NULL OR l.expires_at > app_now())
    ), judged AS MATERIALIZED (
        SELECT c.call, (c.call ->> 'call_id')::uuid AS call_id, CASE
                WHEN o.id IS NULL THEN 'not_found'
                WHEN o.unpaid + row_number() OVER (PARTITION BY o.id ORDER BY c.place) > p_unpaid_max THEN 'full'
            END AS refusal
        FROM json_array_elements(p_calls) WITH ORDINALITY AS c (call, place)
            LEFT JOIN open o ON o.id = (c.call #>> '{invoice,link_id}')::uuid
    ), made AS MATERIALIZED (
        SELECT m.call_id, m.response
        FROM create_invoices((SELECT json_agg(j.call) FROM judged j WHERE j.refusal IS NULL)) m
    )
    SELECT j.call_id, COALESCE(j.refusal, CASE WHEN m.call_id IS NULL THEN 'left' ELSE 'created' END), m.response
    FROM judged j LEFT JOIN made m ON m.call_id = j.call_id;
END $$;
