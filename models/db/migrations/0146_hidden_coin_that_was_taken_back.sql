-- no transaction

-- What no transaction shows and a reorganisation or a rewind took back: its addresses are probed until it is read again.
DROP INDEX CONCURRENTLY IF EXISTS deposits_hidden_gone;

CREATE INDEX CONCURRENTLY deposits_hidden_gone ON deposits (network, address, block_height)
    WHERE status = 'reversed' AND (ordinal LIKE 'trace:%' OR ordinal LIKE 'probe:%');
