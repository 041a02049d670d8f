-- When what the chain calls final was last seen to move: only a tag that stands still is ever waited for no longer.
ALTER TABLE chain_cursors ADD COLUMN final_moved_at timestamptz;
UPDATE chain_cursors SET final_moved_at = app_now() WHERE final_height IS NOT NULL;
