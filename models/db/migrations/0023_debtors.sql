-- Who owes the gateway in a coin since a reorg took what he had spent. Written where a debt arises, deleted once it is
-- repaid; until then his payouts that are not signed are cancelled, as many as the debt needs.
CREATE TABLE debtors (
    merchant_id uuid NOT NULL REFERENCES merchants (id),
    currency text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT app_now(),
    looked_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (merchant_id, currency)
);
CREATE INDEX debtors_turn ON debtors (looked_at, merchant_id);

-- Those who owe already.
INSERT INTO debtors (merchant_id, currency)
SELECT a.holder, a.currency FROM accounts a JOIN merchants m ON m.id = a.holder
WHERE a.kind = 'debt'
    AND (SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t WHERE t.debit_account = a.id)
        > (SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t WHERE t.credit_account = a.id);
