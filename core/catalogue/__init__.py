"""Networks, assets and their pairs, as data, and the written forms of addresses."""
