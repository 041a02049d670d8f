-- Spends: what the signer sends. A spend is one intent that takes effect at most once on its chain; its attempts are
-- signed transactions of which, by construction, at most one can ever be included (EVM: same sender, same nonce).

-- The next slot of a sender (EVM: the nonce); the row's lock puts signers in line.
CREATE TABLE spend_accounts (
    network text NOT NULL,
    sender text NOT NULL,
    next_slot bigint NOT NULL CHECK (next_slot >= 0),
    PRIMARY KEY (network, sender)
);

-- token_units, left_units, arrived_units, lost_units and charged_units are sums over the outputs; effect is theirs
-- where they have the same, and else 'other'.
CREATE TABLE spends (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    -- payout: to a merchant's recipient; gas: hot wallet to a deposit address; sweep: deposit address to hot wallet;
    -- cold: hot wallet to cold address; filler: nothing to ourselves, to use up a slot; join: many of our coins to one;
    -- lost: what an operator wrote off.
    purpose text NOT NULL CHECK (purpose IN ('payout', 'gas', 'sweep', 'cold', 'filler', 'join', 'lost')),
    sender text NOT NULL,
    -- The wallet that signs too and pays the fee; '' if the sender pays.
    payer text NOT NULL DEFAULT '',
    -- The deposit address's ordinal, whose key signs; NULL is the hot wallet's.
    key_ordinal bigint,
    currency text NOT NULL,
    -- Of the coin as it was signed for, so that a later catalogue changes nothing; NULL moves the gas coin.
    contract text,
    decimals integer NOT NULL,
    -- In the network's own token units.
    token_units units NOT NULL,
    -- Only families that count what a wallet sends have one.
    slot bigint CHECK (slot >= 0),
    -- signed: committed, perhaps sent; sent: a node took it; mined: in a block, not deep enough;
    -- confirmed, failed: deep enough, with and without effect; dead: its slot was used by another transaction for good.
    state text NOT NULL CHECK (state IN ('signed', 'sent', 'mined', 'confirmed', 'failed', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    mined_txid text,
    mined_height bigint,
    mined_hash text,
    is_success boolean,
    -- What the chain took for it, in the base units of the gas coin; and what the ledger booked of it, in its own. Less
    -- than nothing where closing an account brought the payer more.
    chain_fee_units numeric CHECK (scale(chain_fee_units) = 0 AND abs(chain_fee_units) < 1e78),
    booked_fee_units numeric NOT NULL DEFAULT 0 CHECK (scale(booked_fee_units) = 0 AND abs(booked_fee_units) < 1e78),
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
    -- What an included spend moved: a hold is given back only where that is nothing. NULL while an output has not ended.
    effect text CHECK (effect IN ('none', 'exact', 'other')),
    -- Of another effect: what the token's own logs say left the sender and came to the recipient, in token units. While
    -- an output has not ended, its units count as gone.
    left_units units,
    arrived_units units,
    -- What of it the gateway bears, in the ledger's units; less than nothing where it gained.
    lost_units numeric NOT NULL DEFAULT 0 CHECK (scale(lost_units) = 0),
    -- How often its block left the chain after it was settled: each time it is followed again, and what was booked is
    -- corrected under a reference of its own.
    reopened integer NOT NULL DEFAULT 0,
    -- What a merchant was charged for a failed payout that took effect after all, in the ledger's units.
    charged_units units NOT NULL DEFAULT 0,
    -- Whether all its attempts ended in no block, so that its slot is the next spend's.
    is_slot_free boolean NOT NULL DEFAULT false CHECK (NOT is_slot_free OR slot IS NOT NULL),
    -- Of a payout's spend without effect: whether its token lets nothing leave our own wallet. Null while nobody has
    -- tried.
    is_own_refusal boolean,
    CHECK (payer <> '' OR (COALESCE(chain_fee_units, 0) >= 0 AND booked_fee_units >= 0)),
    CHECK (payer <> sender)
);
-- One slot is one spend's, unless the chain gave it to somebody else, or it was given back.
CREATE UNIQUE INDEX spends_by_slot ON spends (network, sender, slot) WHERE state <> 'dead' AND NOT is_slot_free;
CREATE INDEX spends_free ON spends (network, sender, slot) WHERE is_slot_free;
-- In no block now: signed and sent ones, and those that a deep reorg took after they were confirmed.
CREATE INDEX spends_waiting ON spends (network, sender, slot) WHERE settled_at IS NULL AND mined_txid IS NULL;
-- With those of which an output is still on its way to its recipient.
CREATE INDEX spends_on_their_way ON spends (network, purpose) WHERE settled_at IS NULL AND effect IS NULL;
CREATE INDEX spends_paid_for ON spends (network, payer)
    WHERE payer <> '' AND settled_at IS NULL AND mined_txid IS NULL;
CREATE INDEX spends_watched ON spends (network, check_at) WHERE settled_at IS NULL;
CREATE INDEX spends_by_height ON spends (network, mined_height) WHERE mined_height IS NOT NULL;
CREATE INDEX spends_by_sender ON spends (network, sender, mined_height) WHERE mined_height IS NOT NULL;
CREATE INDEX spends_lost ON spends (network, currency) WHERE lost_units <> 0;
-- With spends_by_slot: every slot that a row explains.
CREATE INDEX spends_dead ON spends (network, sender, slot) WHERE state = 'dead' AND NOT is_slot_free;

CREATE TABLE spend_attempts (
    spend_id uuid NOT NULL REFERENCES spends,
    number integer NOT NULL,
    network text NOT NULL,
    txid text NOT NULL,
    -- The signed bytes: what is sent again is this and nothing else.
    raw bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    sent_at timestamptz,
    last_error text NOT NULL DEFAULT '',
    -- Whether it moves nothing and only uses up the slot of a failed spend, whose other bytes must not take effect.
    is_void boolean NOT NULL DEFAULT false,
    -- The most that it can cost, in base units of the gas coin.
    ceiling_units units NOT NULL,
    -- The most gas coin that it brings to its payer.
    gain_units units NOT NULL DEFAULT 0,
    -- What it offers, by name, in its family's own terms; of EVM gas_limit, price_units, tip_units and data_units.
    terms jsonb NOT NULL,
    -- After which moment, height, or block by the chain's own count it can be included no more; NULL for never.
    expires_at timestamptz,
    expires_height bigint,
    expires_block bigint,
    -- By what a transfer of ours is known where that is not the transaction's id: the recipient's side of it may have
    -- another.
    mark text NOT NULL DEFAULT '',
    PRIMARY KEY (spend_id, number),
    UNIQUE (network, txid)
);
CREATE TRIGGER spend_attempts_kept BEFORE DELETE ON spend_attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER spend_attempts_signed BEFORE UPDATE OF spend_id, number, network, txid, raw ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER spend_attempts_void BEFORE UPDATE OF is_void ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER spend_attempts_offered BEFORE UPDATE OF ceiling_units, gain_units, terms, expires_at, expires_height,
    expires_block ON spend_attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE UNIQUE INDEX spend_attempts_by_mark ON spend_attempts (network, mark) WHERE mark <> '';
CREATE TRIGGER spend_attempts_marked BEFORE UPDATE OF mark ON spend_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- When a network was last signed for, before a stop: models.spends.signing_stops asks it while the network is stopped.
CREATE INDEX spend_attempts_by_age ON spend_attempts (network, created_at);

-- The block in which the scan last saw an attempt of a spend. It counts as long as the scan stands on that block.
CREATE TABLE attempts_seen (
    network text NOT NULL,
    txid text NOT NULL,
    height bigint NOT NULL,
    block_hash text NOT NULL,
    PRIMARY KEY (network, txid)
);

-- What a spend brings to whom: a transaction of some families pays many at once, each with an effect of its own.
CREATE TABLE spend_outputs (
    spend_id uuid NOT NULL REFERENCES spends,
    place integer NOT NULL CHECK (place >= 0),
    -- Of a payout's spend alone: whom it pays.
    payout_id uuid REFERENCES payouts,
    recipient text NOT NULL,
    -- In the network's own token units.
    token_units units NOT NULL,
    memo text NOT NULL DEFAULT '',
    -- open: not ended; confirmed, failed: deep enough, with and without effect, or as an operator said; dead: the spend
    -- can never be included.
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'confirmed', 'failed', 'dead')),
    -- What it moved, while its spend is in a block and it has ended; of another effect what left, and what came to the
    -- recipient.
    effect text CHECK (effect IN ('none', 'exact', 'other')),
    left_units units,
    arrived_units units,
    -- What the gateway bears of that, and what a merchant was charged for one that failed and took effect after all; in
    -- the ledger's units.
    lost_units numeric NOT NULL DEFAULT 0 CHECK (scale(lost_units) = 0),
    charged_units units NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT '',
    PRIMARY KEY (spend_id, place)
);
-- A payout is paid by one output: another may follow only one that is dead.
CREATE UNIQUE INDEX spend_outputs_by_payout ON spend_outputs (payout_id)
    WHERE payout_id IS NOT NULL AND state <> 'dead';
CREATE INDEX spend_outputs_dead ON spend_outputs (payout_id) WHERE payout_id IS NOT NULL AND state = 'dead';
CREATE INDEX spend_outputs_unclear ON spend_outputs (payout_id) WHERE effect = 'other' AND state = 'open';
CREATE INDEX spend_outputs_by_recipient ON spend_outputs (recipient, spend_id) WHERE payout_id IS NULL;

-- What included spends did to addresses of ours, fees and change among it: the books against the chain add these up.
CREATE TABLE spend_movements (
    spend_id uuid NOT NULL REFERENCES spends,
    network text NOT NULL,
    address text NOT NULL,
    currency text NOT NULL,
    decimals integer NOT NULL,
    -- What came, or with less than nothing what left, in the network's own token units.
    units numeric NOT NULL CHECK (scale(units) = 0 AND units <> 0),
    -- The spend's own block.
    height bigint NOT NULL,
    PRIMARY KEY (spend_id, address, currency)
);
CREATE INDEX spend_movements_by_address ON spend_movements (network, address, height)
    INCLUDE (currency, decimals, units);
-- Where something came to: deposit addresses that got gas, and few others.
CREATE INDEX spend_movements_in ON spend_movements (network, address) WHERE units > 0;

-- How an operator settled a payout of which something else was moved; units are the ledger's.
CREATE TABLE payout_settlements (
    payout_id uuid PRIMARY KEY REFERENCES payouts,
    spend_id uuid NOT NULL REFERENCES spends,
    outcome text NOT NULL CHECK (outcome IN ('paid', 'failed')),
    left_units units NOT NULL,
    arrived_units units NOT NULL,
    lost_units numeric NOT NULL CHECK (scale(lost_units) = 0),
    reason text NOT NULL DEFAULT '',
    settled_by text NOT NULL,
    settled_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE TRIGGER payout_settlements_kept BEFORE DELETE OR UPDATE ON payout_settlements
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The signer's own counters, in a schema of its own: what left, by network and hour.
CREATE SCHEMA signer;
CREATE TABLE signer.spent (
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    PRIMARY KEY (network, hour)
);

-- What left by each output of a payout's spend: the share of its merchant in signer.spent, given back where nothing
-- left.
CREATE TABLE signer.counted (
    spend_id uuid NOT NULL,
    place integer NOT NULL DEFAULT 0,
    merchant_id uuid NOT NULL,
    network text NOT NULL,
    hour timestamptz NOT NULL,
    usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
    is_given_back boolean NOT NULL DEFAULT false,
    -- What the gateway adds to the network fee that a payout was charged, in US cents, so that a day of it is bounded.
    carried_cents bigint NOT NULL DEFAULT 0 CHECK (carried_cents >= 0),
    PRIMARY KEY (spend_id, place)
);
CREATE INDEX counted_by_merchant ON signer.counted (merchant_id, hour) WHERE NOT is_given_back;

-- Whether each signer process can sign: the reason why not, '' where it can. One that cannot start writes a row, too.
CREATE TABLE signer_states (
    process text PRIMARY KEY,
    problem text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
