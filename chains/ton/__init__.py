"""TON: cells, keys and messages so far; no network of this family is served yet."""
