-- Which principal set a split rule, and whether it still waits for a second one. Rules that exist are in force, and end
-- with no key, as nothing says which key made them.

ALTER TABLE split_rules
    ADD COLUMN set_by text NOT NULL DEFAULT '',
    ADD COLUMN cosigned_by text NOT NULL DEFAULT '',
    ADD COLUMN is_pending boolean NOT NULL DEFAULT false,
    ADD CHECK (cosigned_by = '' OR cosigned_by <> set_by);
