-- The highest block that a network's scan ever stood on: deposits were credited by it. Lower only where two providers
-- tell so, or where there is but one. Null until the scan moves on.
ALTER TABLE chain_cursors ADD COLUMN peak_height bigint;
-- The lowest block of ours in whose place another provider than the one that told it has another. The scan waits there.
ALTER TABLE chain_cursors ADD COLUMN split_height bigint;
