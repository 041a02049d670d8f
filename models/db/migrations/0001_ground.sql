-- What every other file uses: the domain of money, the clock, and the trigger of tables that only grow.

-- Money: whole base units in the ledger's scale. A bare CHECK (x >= 0) lets NaN in, and numeric(78, 0) would round
-- 1.5 to 2 without a word, so the domain refuses both.
CREATE DOMAIN units AS numeric CHECK (VALUE >= 0 AND VALUE <> 'NaN' AND scale(VALUE) = 0 AND VALUE < 1e78);

-- One clock. Development may move it; every lease, expiry and schedule compares with app_now() in SQL.
CREATE TABLE app_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    ahead interval NOT NULL DEFAULT '0',
    -- Set in a production gateway.
    is_real boolean NOT NULL DEFAULT false,
    CONSTRAINT app_clock_real_is_not_ahead CHECK (NOT is_real OR ahead = '0')
);
INSERT INTO app_clock DEFAULT VALUES;

-- STABLE although it reads clock_timestamp(): one value a statement, and due-row indexes stay usable.
CREATE FUNCTION app_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT clock_timestamp() + (SELECT ahead FROM app_clock) $$;

-- A production gateway's clock is the real one, for good: `sluice migrate` sets is_real there, and nothing unsets it.
CREATE FUNCTION keep_clock_real() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM app_clock WHERE is_real) THEN
        RAISE EXCEPTION 'this is a production gateway: its clock is the real one' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER app_clock_stays BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON app_clock
    FOR EACH STATEMENT EXECUTE FUNCTION keep_clock_real();

-- The latest time that the workers have read from the clock: an earlier one means that it was set back.
CREATE TABLE clock_mark (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    read_at timestamptz NOT NULL
);

-- The last write, by the server's own clock: a tick writes it, and its age shows that writes work.
CREATE TABLE write_mark (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    written_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO write_mark DEFAULT VALUES;

-- The counters of each process since its start, which replaces its row every few seconds; the row of process 0 has the
-- sums of the ended ones. By the server's own clock.
CREATE TABLE process_counts (
    process uuid PRIMARY KEY,
    -- [[metric, [label, ...], [number, ...]], ...]
    series jsonb NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The trigger of tables and columns that are written once.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

-- A moment as the API writes it.
CREATE FUNCTION iso_time(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
