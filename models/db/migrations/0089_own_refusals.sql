-- Of a payout's spend without effect: whether its token lets nothing leave our own wallet. Null while nobody has tried.
ALTER TABLE spends ADD COLUMN is_own_refusal boolean;
