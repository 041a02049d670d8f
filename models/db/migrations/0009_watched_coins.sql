-- no transaction
-- The invoices whose balances are compared with their deposits: those that await a network's own coin. Creation of the
-- many that await tokens pays nothing for it.

DROP INDEX CONCURRENTLY IF EXISTS invoices_in_coin;

CREATE INDEX CONCURRENTLY invoices_in_coin ON invoices (network, expires_at)
    WHERE pay_currency IN ('ETH', 'BNB', 'POL', 'AVAX');
