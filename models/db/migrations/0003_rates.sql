-- Coins' scales, and the rates and network fees that ticks refresh.

-- The scale that stored units of a coin have; a catalogue that disagrees must not start.
CREATE TABLE ledger_scales (
    currency text PRIMARY KEY,
    scale smallint NOT NULL CHECK (scale BETWEEN 0 AND 18)
);

-- What each public source of rates said last, when to ask it again, and how it is doing. One row a source; a few of
-- them.
CREATE TABLE rate_sources (
    source text PRIMARY KEY,
    -- By currency, the price of one unit as a decimal string, in what the source quotes in.
    quotes jsonb NOT NULL DEFAULT '{}',
    answered_at timestamptz,
    ask_at timestamptz NOT NULL,
    -- In a row, since its last good answer.
    failures int NOT NULL DEFAULT 0 CHECK (failures >= 0),
    problem text NOT NULL DEFAULT '',
    -- The symbols that the source does not know, and when it last answered so: they are left out of its question.
    unknown text[] NOT NULL DEFAULT '{}',
    unknown_at timestamptz
);

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

-- The price of one unit of a currency (fiat or coin) in US dollars.
CREATE TABLE rates (
    currency text PRIMARY KEY,
    usd numeric(40, 18) NOT NULL CHECK (usd > 0 AND usd <> 'NaN'),
    source text NOT NULL,
    quoted_at timestamptz NOT NULL,
    -- The time since which enough sources have given the rate; '-infinity' while they disagree. Conversions ask for it.
    agreed_at timestamptz NOT NULL DEFAULT '-infinity'
);
-- A rate is kept when it is committed, so that it is in force a moment after that, however long its transaction took: a
-- price that a buyer saw meanwhile stays.
CREATE CONSTRAINT TRIGGER rates_kept AFTER INSERT OR UPDATE OF usd, quoted_at ON rates
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION keep_rate();

-- What one payout of a pair costs on chain now, in the ledger's units of that currency.
CREATE TABLE network_fees (
    network text NOT NULL,
    currency text NOT NULL,
    units units NOT NULL,
    quoted_at timestamptz NOT NULL,
    -- The cost of one transfer in the network's gas coin, in the ledger's units: the fee was computed from it.
    gas_units units NOT NULL,
    -- What a sweep of a coin costs, with the transaction that brings its gas; in the ledger's units of the coin. NULL:
    -- a payout's figure counts for it. It judges only which addresses are looked at; before gas is sent the offer
    -- itself is judged.
    sweep_units units,
    PRIMARY KEY (network, currency)
);

CREATE CONSTRAINT TRIGGER network_fees_kept AFTER INSERT OR UPDATE OF units, quoted_at ON network_fees
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION keep_network_fee();
