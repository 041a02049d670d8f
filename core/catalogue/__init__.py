"""Networks, assets and their pairs, as data, and what the families of chains are."""
