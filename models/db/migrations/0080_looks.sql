-- When a scan last looked at its chain, and since when it has read all that the chain had: it asked for the head then,
-- and came to it. Of the clock of app_now(); NULL before the first look of this version.
ALTER TABLE chain_cursors ADD COLUMN looked_at timestamptz;
ALTER TABLE chain_cursors ADD COLUMN head_reached_at timestamptz;

-- The block in which the scan last saw an attempt of a spend. It counts as long as the scan stands on that block.
CREATE TABLE attempts_seen (
    network text NOT NULL,
    txid text NOT NULL,
    height bigint NOT NULL,
    block_hash text NOT NULL,
    PRIMARY KEY (network, txid)
);
