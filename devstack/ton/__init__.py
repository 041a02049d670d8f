"""TON on one machine: the engine that runs messages, and a chain of blocks; no development chain serves it yet."""
