-- What each public source of rates said last, when to ask it again, and how it is doing. One row a source; a few of them.
CREATE TABLE rate_sources (
    source text PRIMARY KEY,
    -- By currency, the price of one unit as a decimal string, in what the source quotes in.
    quotes jsonb NOT NULL DEFAULT '{}',
    answered_at timestamptz,
    ask_at timestamptz NOT NULL,
    -- In a row, since its last good answer.
    failures int NOT NULL DEFAULT 0 CHECK (failures >= 0),
    problem text NOT NULL DEFAULT ''
);
