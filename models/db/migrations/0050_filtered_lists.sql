-- no transaction

-- Lists by what is rare, or what nothing has, past all that a merchant ever sold, in their own order. A sale that is open
-- is in no index by status: its creation pays nothing for it, and what is open is few.
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_status;

CREATE INDEX CONCURRENTLY invoices_by_status ON invoices (merchant_id, status, id DESC)
    WHERE status IN ('paid', 'paid_over', 'wrong_amount', 'expired');

DROP INDEX CONCURRENTLY IF EXISTS invoices_by_currency;

CREATE INDEX CONCURRENTLY invoices_by_currency ON invoices (merchant_id, price_currency, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS invoices_by_network;

CREATE INDEX CONCURRENTLY invoices_by_network ON invoices (merchant_id, network, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS payouts_by_status;

CREATE INDEX CONCURRENTLY payouts_by_status ON payouts (merchant_id, status, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS payouts_by_currency;

CREATE INDEX CONCURRENTLY payouts_by_currency ON payouts (merchant_id, currency, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS payouts_by_network;

CREATE INDEX CONCURRENTLY payouts_by_network ON payouts (merchant_id, network, id DESC);

-- Most deliveries are of this one event, and pay nothing for it.
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_by_event;

CREATE INDEX CONCURRENTLY webhook_deliveries_by_event ON webhook_deliveries (merchant_id, event, created_at DESC, id DESC)
    WHERE event <> 'invoice.paid';

-- With spends_by_slot, every slot that a row has.
DROP INDEX CONCURRENTLY IF EXISTS spends_dead;

CREATE INDEX CONCURRENTLY spends_dead ON spends (network, sender, slot) WHERE state = 'dead';

-- Made anew, and last: while nothing is known of a small table all indexes that begin with the merchant cost the same, a
-- planner takes the youngest of them, and a session keeps its plan. By another one, whoever creates an invoice would walk
-- through all of its merchant's.
DROP INDEX CONCURRENTLY IF EXISTS invoices_of_order;

CREATE INDEX CONCURRENTLY invoices_of_order ON invoices (merchant_id, order_id, created_at DESC)
    WHERE order_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS invoices_by_order;
