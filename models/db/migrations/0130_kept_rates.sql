-- What rates and network fees were, a row a minute: the quotes of open invoices are derived from them when somebody
-- looks. network is '' for a rate. A figure holds from starts_at, until the next one or until it is stale: five minutes
-- after it was quoted. It is in force a moment after it was written, so that every reader of that moment sees it; and
-- it is written once, so that what a reader saw stays so, also where the clock goes back a little.
CREATE TABLE kept_rates (
    currency text NOT NULL,
    network text NOT NULL,
    minute timestamptz NOT NULL,
    starts_at timestamptz NOT NULL,
    stale_at timestamptz NOT NULL,
    figure numeric NOT NULL,
    PRIMARY KEY (currency, network, minute)
);
CREATE INDEX kept_rates_by_minute ON kept_rates (minute);

CREATE FUNCTION keep_figure(p_currency text, p_network text, p_quoted_at timestamptz, p_figure numeric) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO kept_rates (currency, network, minute, starts_at, stale_at, figure)
    SELECT p_currency, p_network, date_trunc('minute', n.starts_at), n.starts_at, p_quoted_at + interval '5 minutes',
        p_figure
    FROM (SELECT app_now() + interval '5 seconds' AS starts_at) n
    -- One from the future was quoted before the clock was set back.
    WHERE p_quoted_at BETWEEN app_now() - interval '5 minutes' AND app_now() + interval '1 minute'
    ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION keep_rate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM keep_figure(NEW.currency, '', NEW.quoted_at, trunc(NEW.usd * 10::numeric ^ 18));
    RETURN NULL;
END
$$;

CREATE FUNCTION keep_network_fee() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM keep_figure(NEW.currency, NEW.network, NEW.quoted_at, NEW.units);
    RETURN NULL;
END
$$;

CREATE TRIGGER rates_kept AFTER INSERT OR UPDATE OF usd, quoted_at ON rates FOR EACH ROW EXECUTE FUNCTION keep_rate();
CREATE TRIGGER network_fees_kept AFTER INSERT OR UPDATE OF units, quoted_at ON network_fees
    FOR EACH ROW EXECUTE FUNCTION keep_network_fee();

-- Those that are fresh now.
UPDATE rates SET usd = usd;
UPDATE network_fees SET units = units;
