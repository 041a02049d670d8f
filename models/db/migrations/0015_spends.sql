-- Spends: what the signer sends. A spend is one intent that takes effect at most once on its chain; its attempts are
-- signed transactions of which, by construction, at most one can ever be included (EVM: same sender, same nonce).

-- The next slot of a sender (EVM: the nonce); the row's lock puts signers in line.
CREATE TABLE spend_accounts (
    network text NOT NULL,
    sender text NOT NULL,
    next_slot bigint NOT NULL CHECK (next_slot >= 0),
    PRIMARY KEY (network, sender)
);

CREATE TABLE spends (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    -- payout: to a merchant's recipient; gas: hot wallet to a deposit address; sweep: deposit address to hot wallet;
    -- cold: hot wallet to cold address; filler: nothing to ourselves, to use up a slot.
    purpose text NOT NULL CHECK (purpose IN ('payout', 'gas', 'sweep', 'cold', 'filler')),
    payout_id uuid REFERENCES payouts,
    sender text NOT NULL,
    -- The deposit address's ordinal, whose key signs; NULL is the hot wallet's.
    key_ordinal bigint,
    recipient text NOT NULL,
    currency text NOT NULL,
    -- Of the coin as it was signed for, so that a later catalogue changes nothing; NULL moves the gas coin.
    contract text,
    decimals integer NOT NULL,
    memo text NOT NULL DEFAULT '',
    -- In the network's own token units.
    token_units units NOT NULL,
    slot bigint NOT NULL CHECK (slot >= 0),
    -- signed: committed, perhaps sent; sent: a node took it; mined: in a block, not deep enough;
    -- confirmed, failed: deep enough, with and without effect; dead: its slot was used by another transaction for good.
    state text NOT NULL CHECK (state IN ('signed', 'sent', 'mined', 'confirmed', 'failed', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    mined_txid text,
    mined_height bigint,
    mined_hash text,
    is_success boolean,
    -- What the chain took for it, in the base units of the gas coin; and what the ledger booked of it, in its own.
    chain_fee_units units,
    booked_fee_units units NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT '',
    check_at timestamptz NOT NULL DEFAULT app_now(),
    sent_at timestamptz,
    bumped_at timestamptz,
    mined_at timestamptz,
    -- Up to where the chain was scanned by then.
    signed_height bigint,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    ended_at timestamptz,
    -- Too deep for any reorg: watched no more. A confirmed one is watched on until then.
    settled_at timestamptz,
    CHECK ((purpose = 'payout') = (payout_id IS NOT NULL))
);
-- One slot is one spend's, unless the chain gave it to somebody else.
CREATE UNIQUE INDEX spends_by_slot ON spends (network, sender, slot) WHERE state <> 'dead';
-- A payout is paid by one spend: another may follow only one that is dead.
CREATE UNIQUE INDEX spends_by_payout ON spends (payout_id) WHERE payout_id IS NOT NULL AND state <> 'dead';
-- In no block now: signed and sent ones, and those that a deep reorg took after they were confirmed.
CREATE INDEX spends_waiting ON spends (network, sender, slot) WHERE settled_at IS NULL AND mined_txid IS NULL;
CREATE INDEX spends_watched ON spends (network, check_at) WHERE settled_at IS NULL;
CREATE INDEX spends_by_height ON spends (network, mined_height) WHERE mined_height IS NOT NULL;

CREATE TABLE spend_attempts (
    spend_id uuid NOT NULL REFERENCES spends,
    number integer NOT NULL,
    network text NOT NULL,
    txid text NOT NULL,
    -- The signed bytes: what is sent again is this and nothing else.
    raw bytea NOT NULL,
    -- In base units of the gas coin for one unit of gas.
    price_units units NOT NULL,
    tip_units units NOT NULL,
    gas_limit bigint NOT NULL,
    -- What a rollup may add for posting the data.
    data_units units NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    sent_at timestamptz,
    last_error text NOT NULL DEFAULT '',
    PRIMARY KEY (spend_id, number),
    UNIQUE (network, txid)
);
CREATE TRIGGER spend_attempts_kept BEFORE DELETE ON spend_attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER spend_attempts_signed BEFORE UPDATE OF spend_id, number, network, txid, raw ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The signer's own counters, in a schema of its own: what left, by network and hour.
CREATE SCHEMA signer;
CREATE TABLE signer.spent (
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    PRIMARY KEY (network, hour)
);

-- What keeps an approved payout from being signed: since when the chain refuses it, and the last reason to wait.
ALTER TABLE payouts ADD COLUMN refused_since timestamptz;
ALTER TABLE payouts ADD COLUMN wait_reason text NOT NULL DEFAULT '';
-- Money that was held once pays for one payout.
CREATE UNIQUE INDEX payouts_by_hold ON payouts (hold_reference);
