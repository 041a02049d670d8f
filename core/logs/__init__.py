"""The log: what is written, what is hidden from it, and what is said only once in a while."""
