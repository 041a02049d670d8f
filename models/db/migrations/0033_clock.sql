-- A production gateway's clock is the real one, for good: `sluice migrate` says there that it is, and nothing unsays it.

ALTER TABLE app_clock ADD COLUMN is_real boolean NOT NULL DEFAULT false;
ALTER TABLE app_clock ADD CONSTRAINT app_clock_real_is_not_ahead CHECK (NOT is_real OR ahead = '0');

CREATE FUNCTION keep_clock_real() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM app_clock WHERE is_real) THEN
        RAISE EXCEPTION 'this is a production gateway: its clock is the real one' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER app_clock_stays BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON app_clock
    FOR EACH STATEMENT EXECUTE FUNCTION keep_clock_real();
