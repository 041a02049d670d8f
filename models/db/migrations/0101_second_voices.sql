-- What a second voice agreed to ends with its key: a share keeps who co-signed its rule, and a payout of a co-signed rule
-- has the co-signer's approval. Shares of rules that are deleted by now name no co-signer.

ALTER TABLE split_shares ADD COLUMN cosigned_by text NOT NULL DEFAULT '';
UPDATE split_shares s SET cosigned_by = r.cosigned_by FROM split_rules r
    WHERE r.id = s.rule_id AND r.cosigned_by <> '' AND s.left_units > 0;

INSERT INTO payout_approvals (payout_id, principal)
    SELECT p.id, r.cosigned_by FROM withdrawal_rules r JOIN payouts p ON p.id = r.payout_id
    WHERE r.cosigned_by NOT IN ('', p.created_by) AND p.status IN ('approved', 'broadcasting', 'sent')
    ON CONFLICT DO NOTHING;
