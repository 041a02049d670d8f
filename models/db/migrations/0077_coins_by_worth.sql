-- no transaction
-- What pays is chosen among the most valuable coins: whoever sends us many small ones keeps no payout from its coin. The
-- version before reads them by depth, for which coins_unspent serves it as well.
DROP INDEX CONCURRENTLY IF EXISTS coins_by_worth;
CREATE INDEX CONCURRENTLY coins_by_worth ON coins (network, currency, units DESC, txid, vout)
    WHERE held_by IS NULL AND spent_by_txid IS NULL AND created_height IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS coins_free;
