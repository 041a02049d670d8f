"""Reading an EVM chain: blocks, logs, receipts, traces, and second opinions."""
