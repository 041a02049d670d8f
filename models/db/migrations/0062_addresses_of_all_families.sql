-- Each family of chains numbers its addresses by a sequence of its own, from 0 on. Those that no network is served of
-- stay where they are; the older version knows the first of them alone and asks for no other.

CREATE SEQUENCE address_claims_tron MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_solana MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_ton MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_bitcoin MINVALUE 0 START 0;

INSERT INTO address_marks (family, marked_at, ordinal)
SELECT family, 'epoch', -1 FROM unnest(ARRAY['tron', 'solana', 'ton', 'bitcoin']) AS f (family)
ON CONFLICT DO NOTHING;

-- An address as it is stored, of how an invoice shows it: the audit holds the one against the other. Told by the
-- spelling alone: hexadecimal digits whose capitals are a checksum, or 48 letters of base64 around 32 bytes.
CREATE FUNCTION stored_address(shown text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE
        WHEN shown ~ '^0x[0-9a-fA-F]{40}$' THEN lower(shown)
        WHEN shown ~ '^[EUk0]Q[A-Za-z0-9_-]{46}$'
            THEN '0:' || encode(substr(decode(translate(shown, '-_', '+/'), 'base64'), 3, 32), 'hex')
        ELSE shown
    END
$$;
