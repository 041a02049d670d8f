-- The time since which enough sources have given the rate; '-infinity' while they disagree. Conversions ask for it.
-- The version before writes none: conversions answer payout.convert_no_rate until the new version refreshes the rates.
ALTER TABLE rates ADD COLUMN agreed_at timestamptz NOT NULL DEFAULT '-infinity';
