-- The kind of obstacle behind wait_reason, for merchants; '' is also a reason that an earlier version of the code wrote.
ALTER TABLE payouts ADD COLUMN wait_kind text NOT NULL DEFAULT '' CHECK (
    wait_kind IN ('', 'liquidity', 'limit', 'freeze', 'fee', 'cosign', 'approval', 'network', 'debt')
);
