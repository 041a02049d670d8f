-- no transaction
-- Dead deliveries are few among many delivered ones; whoever lists them must not wade through the others.
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_dead;
CREATE INDEX CONCURRENTLY webhook_deliveries_dead ON webhook_deliveries (merchant_id, created_at DESC, id DESC)
    WHERE status = 'dead';
