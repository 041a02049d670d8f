-- What left our addresses without a row is told of every family alike: all its outputs, and what it claims.

-- Only senders who count have slots.
ALTER TABLE unknown_spends ALTER COLUMN slot DROP NOT NULL;
-- [{"recipient", "units", "has_effect", "payout_id"}], change left out; payout_id is an operator's word. Empty: the
-- version before wrote it, and recipient and token_units are the one output. Of several, recipient is ''.
ALTER TABLE unknown_spends ADD COLUMN outputs jsonb NOT NULL DEFAULT '[]';
-- [[txid, vout]] of our coins that it spends, where the claim is coins.
ALTER TABLE unknown_spends ADD COLUMN spends jsonb NOT NULL DEFAULT '[]';
-- The end of its window, where the claim is one.
ALTER TABLE unknown_spends ADD COLUMN expires_at timestamptz;
ALTER TABLE unknown_spends ADD COLUMN expires_height bigint;

-- Who sent it, '' where the chain names nobody.
ALTER TABLE stranger_spends ADD COLUMN sender text NOT NULL DEFAULT '';
CREATE INDEX stranger_spends_by_block ON stranger_spends (network, block_height) WHERE block_height IS NOT NULL;
