-- What included spends did to addresses of ours, fees and change among it: the books against the chain add these up.

-- Only families that count what a wallet sends have one.
ALTER TABLE spends ALTER COLUMN slot DROP NOT NULL;

CREATE TABLE spend_movements (
    spend_id uuid NOT NULL REFERENCES spends,
    network text NOT NULL,
    address text NOT NULL,
    currency text NOT NULL,
    decimals integer NOT NULL,
    -- What came, or with less than nothing what left, in the network's own token units.
    units numeric NOT NULL CHECK (scale(units) = 0 AND units <> 0),
    -- The spend's own block.
    height bigint NOT NULL,
    PRIMARY KEY (spend_id, address, currency)
);

-- What the version before, which serves EVM alone, says of a spend that stands in a block. A later release drops this
-- with spends.recipient.
CREATE FUNCTION movements_of(s spends) RETURNS TABLE (address text, currency text, decimals integer, units numeric)
    LANGUAGE sql STABLE AS $$
    SELECT m.address, m.currency, max(m.decimals), sum(m.units) FROM (
        SELECT s.sender AS address, s.currency, s.decimals,
            -(CASE WHEN s.is_success THEN s.token_units ELSE COALESCE(s.left_units, 0) END)::numeric AS units
        UNION ALL SELECT s.recipient, s.currency, s.decimals,
            (CASE WHEN s.is_success THEN s.token_units ELSE COALESCE(s.arrived_units, 0) END)::numeric
            WHERE s.purpose NOT IN ('payout', 'lost') OR s.recipient = s.sender
                OR EXISTS (SELECT FROM treasury_addresses t WHERE t.network = s.network AND t.address = s.recipient)
                OR EXISTS (SELECT FROM pool_addresses p WHERE p.family = 'evm' AND p.address = s.recipient)
        UNION ALL SELECT s.sender,
            CASE WHEN s.contract IS NULL THEN s.currency ELSE CASE s.network WHEN 'bsc' THEN 'BNB'
                WHEN 'polygon' THEN 'POL' WHEN 'avalanche' THEN 'AVAX' ELSE 'ETH' END END,
            CASE WHEN s.contract IS NULL THEN s.decimals ELSE 18 END, -COALESCE(s.chain_fee_units, 0)::numeric
        ) m GROUP BY m.address, m.currency HAVING sum(m.units) <> 0
$$;

INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)
    SELECT s.id, s.network, m.address, m.currency, m.decimals, m.units, s.mined_height
    FROM spends s CROSS JOIN LATERAL movements_of(s) m
    WHERE s.mined_height IS NOT NULL AND s.recipient IS NOT NULL;
CREATE INDEX spend_movements_by_address ON spend_movements (network, address, height)
    INCLUDE (currency, decimals, units);

-- Of a spend that tells its one recipient; this version puts what the chain tells in its place.
CREATE FUNCTION move_as_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM spend_movements WHERE spend_id = NEW.id;
    END IF;
    IF NEW.mined_height IS NOT NULL THEN
        INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)
            SELECT NEW.id, NEW.network, m.address, m.currency, m.decimals, m.units, NEW.mined_height
            FROM movements_of(NEW) m;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER spends_mined AFTER INSERT ON spends FOR EACH ROW
    WHEN (NEW.recipient IS NOT NULL AND NEW.mined_height IS NOT NULL) EXECUTE FUNCTION move_as_told();
CREATE TRIGGER spends_moved AFTER UPDATE ON spends FOR EACH ROW
    WHEN (NEW.recipient IS NOT NULL AND (NEW.mined_txid, NEW.mined_height, NEW.mined_hash, NEW.is_success,
        NEW.left_units, NEW.arrived_units, NEW.chain_fee_units) IS DISTINCT FROM (OLD.mined_txid, OLD.mined_height,
        OLD.mined_hash, OLD.is_success, OLD.left_units, OLD.arrived_units, OLD.chain_fee_units))
    EXECUTE FUNCTION move_as_told();
