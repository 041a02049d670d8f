-- The mark of the provider that showed a block first: another one reads it a second time.
ALTER TABLE chain_blocks ADD COLUMN read_by text NOT NULL DEFAULT '';
-- The blocks that no other provider had to show before the second reading gave them up.
ALTER TABLE chain_cursors ADD COLUMN unread_blocks bigint NOT NULL DEFAULT 0;
