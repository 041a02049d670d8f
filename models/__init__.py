"""Tables, their invariants and their reads. PostgreSQL is the truth; whatever is not here did not happen."""
