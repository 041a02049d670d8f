"""TON on one machine: the engine that runs transactions; no development chain serves it yet."""
