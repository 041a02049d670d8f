"""TON: cells, keys, messages and transactions so far; no network of this family is served yet."""
