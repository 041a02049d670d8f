-- By what the transfers of a transaction that no row knew are known, as of an attempt: it becomes one. '' for its id.
ALTER TABLE unknown_spends ADD COLUMN mark text NOT NULL DEFAULT '';
