-- Deposits that were swept before a deep reorg took them: their sweeps' bytes may take what is paid anew.
CREATE INDEX deposits_gone_swept ON deposits (network, currency, address)
    WHERE status = 'reversed' AND sweep_id IS NOT NULL;
