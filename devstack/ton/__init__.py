"""TON on one machine: the engine that runs messages, a chain of blocks, and the development chain."""
