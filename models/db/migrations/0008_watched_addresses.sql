-- no transaction
-- Every block asks for its hundreds of recipients, nearly all of them strangers. The unique index grows to some hundred
-- bytes an address and soon leaves the cache; this one stays small, and finds or denies an address in one page.

DROP INDEX CONCURRENTLY IF EXISTS pool_addresses_watched;

CREATE INDEX CONCURRENTLY pool_addresses_watched ON pool_addresses USING hash (address);
