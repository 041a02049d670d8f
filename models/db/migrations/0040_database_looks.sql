-- How often the signer has looked after this database: the count stands in Redis too, and tells there of an older state.

CREATE TABLE database_looks (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    looks bigint NOT NULL DEFAULT 0
);
INSERT INTO database_looks DEFAULT VALUES;
