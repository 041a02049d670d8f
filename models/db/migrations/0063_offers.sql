-- What an attempt offers, in its family's own terms: each has others, and all have a ceiling and may have an end.

-- The most that it can cost, in base units of the gas coin.
ALTER TABLE spend_attempts ADD COLUMN ceiling_units units;
-- By name; of EVM gas_limit, price_units, tip_units and data_units.
ALTER TABLE spend_attempts ADD COLUMN terms jsonb;
-- From when on, and above which block, it can be included no more; NULL for never.
ALTER TABLE spend_attempts ADD COLUMN expires_at timestamptz;
ALTER TABLE spend_attempts ADD COLUMN expires_height bigint;
ALTER TABLE unknown_spends ADD COLUMN ceiling_units units;
ALTER TABLE unknown_spends ADD COLUMN terms jsonb;

-- gas_limit, price_units, tip_units and data_units are what the version before writes and reads. Each side is filled
-- from the other, until a later release drops these columns and this function.
CREATE FUNCTION fill_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.terms IS NULL THEN
        NEW.terms := jsonb_build_object('gas_limit', NEW.gas_limit, 'price_units', NEW.price_units,
            'tip_units', NEW.tip_units, 'data_units', 0);
        IF TG_TABLE_NAME = 'spend_attempts' THEN
            NEW.terms := NEW.terms || jsonb_build_object('data_units', NEW.data_units);
        END IF;
        NEW.ceiling_units := NEW.gas_limit * NEW.price_units + (NEW.terms ->> 'data_units')::numeric;
    ELSE
        NEW.gas_limit := COALESCE((NEW.terms ->> 'gas_limit')::bigint, 0);
        NEW.price_units := COALESCE((NEW.terms ->> 'price_units')::numeric, 0);
        NEW.tip_units := COALESCE((NEW.terms ->> 'tip_units')::numeric, 0);
        IF TG_TABLE_NAME = 'spend_attempts' THEN
            NEW.data_units := COALESCE((NEW.terms ->> 'data_units')::numeric, 0);
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER spend_attempts_offer BEFORE INSERT ON spend_attempts FOR EACH ROW EXECUTE FUNCTION fill_offer();
CREATE TRIGGER unknown_spends_offer BEFORE INSERT ON unknown_spends FOR EACH ROW EXECUTE FUNCTION fill_offer();

UPDATE spend_attempts SET ceiling_units = gas_limit * price_units + data_units, terms = jsonb_build_object(
    'gas_limit', gas_limit, 'price_units', price_units, 'tip_units', tip_units, 'data_units', data_units);
UPDATE unknown_spends SET ceiling_units = gas_limit * price_units, terms = jsonb_build_object(
    'gas_limit', gas_limit, 'price_units', price_units, 'tip_units', tip_units, 'data_units', 0);
ALTER TABLE spend_attempts ALTER COLUMN ceiling_units SET NOT NULL, ALTER COLUMN terms SET NOT NULL;
ALTER TABLE unknown_spends ALTER COLUMN ceiling_units SET NOT NULL, ALTER COLUMN terms SET NOT NULL;
CREATE TRIGGER spend_attempts_offered BEFORE UPDATE OF ceiling_units, terms, expires_at, expires_height
    ON spend_attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();
