-- When a network was last signed for, before a stop: models.spends.signing asks it while the network is stopped.
CREATE INDEX spend_attempts_by_age ON spend_attempts (network, created_at);
