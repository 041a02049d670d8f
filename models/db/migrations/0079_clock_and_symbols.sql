-- The symbols that a source of rates does not know, and when it last said so: they are left out of its question.
ALTER TABLE rate_sources
    ADD COLUMN unknown text[] NOT NULL DEFAULT '{}',
    ADD COLUMN unknown_at timestamptz;

-- The latest time that the workers have read from the clock: an earlier one means that it was set back.
CREATE TABLE clock_mark (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    read_at timestamptz NOT NULL
);
