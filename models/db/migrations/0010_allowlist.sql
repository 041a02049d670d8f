-- The source addresses from which a merchant's keys may sign; empty: from anywhere. Written as core.allowlist does.

ALTER TABLE merchants ADD COLUMN ip_allowlist text[] NOT NULL DEFAULT '{}'
    CHECK (cardinality(ip_allowlist) <= 100 AND array_position(ip_allowlist, NULL) IS NULL);
