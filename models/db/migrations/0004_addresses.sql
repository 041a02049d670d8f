-- The address pool. The signer alone fills it, in signed chunks; addresses are claimed by ordinal from a sequence: no
-- scan, no dead entries.

-- Each family of chains numbers its addresses by a sequence of its own, from 0 on.
CREATE SEQUENCE address_claims_evm MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_tron MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_solana MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_ton MINVALUE 0 START 0;
CREATE SEQUENCE address_claims_bitcoin MINVALUE 0 START 0;

CREATE TABLE address_chunks (
    family text NOT NULL,
    chunk bigint NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (family, chunk)
);

CREATE TABLE pool_addresses (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (family, ordinal),
    UNIQUE (family, address)
);
-- Every block asks for its hundreds of recipients, nearly all of them strangers. The unique index grows to some hundred
-- bytes an address and soon leaves the cache; this one stays small, and finds or denies an address in one page.
CREATE INDEX pool_addresses_watched ON pool_addresses USING hash (address);

-- An address belongs to one owner for ever.
CREATE TABLE address_owners (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    owner_id uuid NOT NULL,
    assigned_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (family, ordinal),
    FOREIGN KEY (family, ordinal) REFERENCES pool_addresses
);

-- Ordinals whose claim was rolled back or whose process died, to be handed out again.
CREATE TABLE address_returns (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    -- When a stash took it: until that has surely ended, no other may.
    taken_at timestamptz,
    PRIMARY KEY (family, ordinal)
);

-- How far each family's sequence had come at a moment, so that the reclaim job knows what is old.
CREATE TABLE address_marks (
    family text NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT app_now(),
    ordinal bigint NOT NULL,
    PRIMARY KEY (family, marked_at)
);
-- The mark at the epoch is the reclaim job's cursor: every ordinal up to it has been looked at.
INSERT INTO address_marks (family, marked_at, ordinal)
    SELECT family, 'epoch', -1 FROM unnest(ARRAY['evm', 'tron', 'solana', 'ton', 'bitcoin']) AS f (family);

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
